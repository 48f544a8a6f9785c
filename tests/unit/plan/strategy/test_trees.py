"""Trees of operators: what feeds what, whose watermarks go where, how a row's changes are kept."""

from typing import Any

import pytest

from spark_jobs.options.settings import declared_settings
from spark_jobs.plan.nodes.parts import TopicTime
from spark_jobs.plan.nodes.physical import (
    Aggregate,
    Deduplicate,
    IntervalJoin,
    KafkaScan,
    KafkaSink,
    MultiJoin,
    Normalize,
    QueryPlan,
    RegularJoin,
    Rekey,
    Results,
    SinkMaterializer,
    TemporalJoin,
)
from spark_jobs.plan.planner import plan, plan_query
from spark_jobs.sql.bind.binder import bind, bind_query
from tests.unit.plan.conftest import KAFKA, TABLES, UPSERT, of_kind

MORE = (
    TABLES
    + f"""
CREATE TABLE clicks (
  id INT, url STRING, at TIMESTAMP(3), now_ AS PROCTIME(), WATERMARK FOR at AS at
) WITH ({KAFKA}, 'topic' = 'clicks;old', 'format' = 'json', 'scan.watermark.idle-timeout' = '8 s');
CREATE TABLE views_ (
  id INT, page STRING, seen TIMESTAMP(3), now_ AS PROCTIME(), WATERMARK FOR seen AS seen
) WITH ({KAFKA}, 'topic' = 'views', 'format' = 'json');
CREATE TABLE carts (
  id INT, code STRING, at TIMESTAMP(3), PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR at AS at
) WITH ({KAFKA}, 'topic' = 'carts', 'format' = 'changelog-json');
CREATE TABLE by_code (code STRING, id INT, PRIMARY KEY (code) NOT ENFORCED)
WITH ({UPSERT}, 'topic' = 'by_code');
"""
)


def query(sql: str, **settings: str) -> QueryPlan:
    bound = bind_query(MORE + sql)
    return plan_query(bound.query, declared_settings({**bound.settings.given, **settings}))


def insert(sql: str) -> QueryPlan:
    (found,) = plan(bind(MORE + sql))
    return found


def one(found: QueryPlan, kind: type) -> Any:
    (node,) = of_kind(found.root, kind)
    return node


SPELLINGS = (
    "v.seen BETWEEN c.at - INTERVAL '1' MINUTE AND c.at + INTERVAL '5' SECOND",
    "v.seen >= c.at - INTERVAL '1' MINUTE AND v.seen <= c.at + INTERVAL '5' SECOND",
    "c.at BETWEEN v.seen - INTERVAL '5' SECOND AND v.seen + INTERVAL '1' MINUTE",
    "c.at - INTERVAL '1' MINUTE <= v.seen AND v.seen - INTERVAL '5' SECOND <= c.at",
    "c.at < v.seen + INTERVAL '60.001' SECOND AND c.at > v.seen - INTERVAL '5.001' SECOND",
    "v.seen + INTERVAL '1' MINUTE >= c.at AND c.at + INTERVAL '5' SECOND >= v.seen",
)


@pytest.mark.parametrize("bounds", SPELLINGS)
def test_every_spelling_of_an_interval_is_one_plan(bounds: str) -> None:
    select = "SELECT url, page FROM clicks AS c JOIN views_ AS v ON c.id = v.id AND "
    found, first = (query(f"{select}{b};") for b in (bounds, SPELLINGS[0]))
    join = one(found, IntervalJoin)
    assert (join.machine.lower_ms, join.machine.upper_ms, join.machine.pair.residual) == (
        -5_000,
        60_000,
        None,
    )
    assert found.root == first.root


def test_interval_in_where_and_with_sides_swapped() -> None:
    swapped = query(
        "SELECT page FROM views_ AS v, clicks AS c WHERE v.id = c.id"
        " AND c.at BETWEEN v.seen - INTERVAL '5' SECOND AND v.seen + INTERVAL '1' MINUTE;"
    )
    join = one(swapped, IntervalJoin)
    assert (join.machine.lower_ms, join.machine.upper_ms) == (-60_000, 5_000)


def test_a_late_topic_that_no_operator_uses_is_warned_about() -> None:
    sql = "SELECT url FROM clicks AS c JOIN views_ AS v ON c.id = v.id;"
    said = [
        w for w in query(sql, **{"rejoin.late.topic": "late"}).warnings if "rejoin.late.topic" in w
    ]
    assert len(said) == 1
    assert not any("rejoin.late.topic" in w for w in query(sql).warnings)


def test_table_idle_timeout_goes_before_the_jobs() -> None:
    join = one(
        query(
            "SELECT url FROM clicks AS c JOIN views_ AS v ON c.id = v.id AND c.at = v.seen;",
            **{"table.exec.source.idle-timeout": "1 min"},
        ),
        IntervalJoin,
    )
    assert join.timing.inputs == (
        (TopicTime(0, 8_000), TopicTime(1, 8_000)),
        (TopicTime(2, 60_000),),
    )
    assert join.timing.tick_ms == 4_000


def test_watermarks_go_on_where_somebody_above_needs_them() -> None:
    found = query(
        "SELECT c.url FROM clicks AS c"
        " JOIN views_ AS v ON c.id = v.id AND c.at BETWEEN v.seen AND v.seen + INTERVAL '1' MINUTE"
        " JOIN rates FOR SYSTEM_TIME AS OF c.at AS r ON v.page = r.code;"
    )
    temporal, interval = one(found, TemporalJoin), one(found, IntervalJoin)
    assert interval.timing.forward == 16_384
    assert temporal.timing.forward is None
    assert temporal.timing.inputs == ((TopicTime(16_384, 0),), (TopicTime(3, 0),))
    assert temporal.timing.tick_ms == 0
    rekey = temporal.inputs[0]
    assert isinstance(rekey, Rekey)
    assert rekey.rowtime == "`at`"


def test_no_watermark_without_need() -> None:
    found = query("SELECT url FROM clicks AS c JOIN views_ AS v ON c.id = v.id;")
    join = one(found, RegularJoin)
    assert (join.timing.inputs, join.timing.tick_ms, join.timing.forward) == ((), None, None)
    assert not any(scan.marks for scan in of_kind(found.root, KafkaScan))


def test_the_row_of_no_rows_needs_the_clock_to_start_and_nothing_else() -> None:
    found = query(
        "SELECT COUNT(*) AS n FROM clicks WHERE FALSE;", **{"table.exec.state.ttl": "1 h"}
    )
    aggregate = one(found, Aggregate)
    assert aggregate.machine.no_input
    assert aggregate.changelog_mode == "I"
    assert (aggregate.timing.inputs, aggregate.timing.tick_ms) == ((), 0)
    assert (aggregate.timing.ttl_ms, found.warnings) == ((0,), ())


def test_union_feeds_one_side_with_all_its_watermarks() -> None:
    join = one(
        query(
            "SELECT x.id FROM (SELECT id, at FROM clicks UNION ALL SELECT id, seen FROM views_) x"
            " JOIN rates FOR SYSTEM_TIME AS OF x.at AS r ON r.code = 'EUR';"
        ),
        TemporalJoin,
    )
    assert [i.side for i in join.inputs] == [0, 0, 1]
    assert [t.topic for t in join.timing.inputs[0]] == [0, 1, 2]
    assert [t.topic for t in join.timing.inputs[1]] == [3]


def test_union_of_stateless_queries_needs_no_operator() -> None:
    found = query("SELECT a1 FROM a UNION ALL SELECT b1 + 1 FROM b WHERE b2 > 0;")
    assert isinstance(found.root, Results)
    assert [type(p.input) for p in found.root.inputs] == [KafkaScan, KafkaScan]


@pytest.mark.parametrize(
    ("sql", "dropped"),
    [
        ("SELECT a3, b3 FROM a JOIN b ON a1 = b1;", [(0,), (0,)]),
        ("SELECT a3, b3 FROM a LEFT JOIN b ON a1 = b1;", [(), (0,)]),
        ("SELECT a3, b3 FROM a RIGHT JOIN b ON a1 = b1;", [(0,), ()]),
        ("SELECT a3, b3 FROM a FULL JOIN b ON a1 = b1;", [(), ()]),
    ],
)
def test_null_keys_stay_where_they_show(sql: str, dropped: list[tuple[int, ...]]) -> None:
    join = one(query(sql), RegularJoin)
    assert [i.drop_null_keys for i in join.inputs] == dropped


def test_null_keys_of_semi_and_anti_joins() -> None:
    semi = one(query("SELECT a3 FROM a WHERE a1 IN (SELECT b1 FROM b);"), RegularJoin)
    anti = one(
        query("SELECT a3 FROM a WHERE NOT EXISTS (SELECT * FROM b WHERE b1 = a1);"), RegularJoin
    )
    assert [i.drop_null_keys for i in semi.inputs] == [(0,), (0,)]
    assert [i.drop_null_keys for i in anti.inputs] == [(), (0,)]


def test_chain_by_one_key_is_one_operator() -> None:
    found = query(
        "SELECT name, a3, b3 FROM users JOIN a ON id = a1 LEFT JOIN b ON a1 = b1 AND b2 > a2;"
    )
    join = one(found, MultiJoin)
    assert join.machine.join_types == ("inner", "left")
    assert [s.layout for s in join.sides] == [
        "join-key-contains-unique-key",
        "no-unique-key",
        "no-unique-key",
    ]
    assert join.machine.residuals == (None, "(`b2` > `a2`)")
    assert [i.side for i in join.inputs] == [0, 1, 2]
    assert [f.name for f in join.machine.schema.fields] == [
        f.name for s in join.sides for f in s.schema.fields
    ]


@pytest.mark.parametrize(
    "sql",
    [
        "SELECT a3, b3, c2 FROM a LEFT JOIN b ON a1 = b1 LEFT JOIN changes ON b1 = c1;",
        "SELECT a3, b3, c2 FROM a JOIN b ON a1 = b1 JOIN changes ON b2 = c1;",
        "SELECT a3, b3, c2 FROM a JOIN b ON a1 = b1 AND a2 = b2 JOIN changes ON a1 = c1;",
        "SELECT a3, b3, c2 FROM a JOIN b ON a1 = b1 JOIN changes ON a1 IS NOT DISTINCT FROM c1;",
        "SELECT a3, b3, c2 FROM a FULL JOIN b ON a1 = b1 JOIN changes ON a1 = c1;",
    ],
)
def test_chain_by_other_keys_is_a_chain(sql: str) -> None:
    """The first: a padded B has no key, so it meets no row of the third, whatever A's key is."""
    found = query(sql)
    assert of_kind(found.root, MultiJoin) == []
    assert len(of_kind(found.root, RegularJoin)) == 2


def test_longer_part_of_a_chain_is_one_operator() -> None:
    found = query(
        "SELECT a3, b3, c2, land FROM a JOIN b ON a1 = b1 JOIN changes ON c1 = b1"
        " JOIN rates ON a3 = code;"
    )
    assert len(one(found, MultiJoin).sides) == 3
    rekey = one(found, RegularJoin).inputs[0]
    assert isinstance(rekey, Rekey)
    assert isinstance(rekey.input.machine, MultiJoin)


def test_multi_join_can_be_switched_off() -> None:
    sql = "SELECT a3, b3, c2 FROM a JOIN b ON a1 = b1 JOIN changes ON c1 = b1;"
    assert of_kind(query(sql, **{"rejoin.multi-join": "false"}).root, MultiJoin) == []


def test_expression_keys_make_a_chain_too() -> None:
    found = query("SELECT a3 FROM a JOIN b ON a1 + 1 = b1 JOIN changes ON a1 + 1 = c1;")
    assert [i.key for i in one(found, MultiJoin).inputs] == [("(`a1` + 1)",), ("`b1`",), ("`c1`",)]


def test_ttl_hint_goes_before_the_setting() -> None:
    join = one(
        query(
            "SELECT /*+ STATE_TTL('b' = '10 s') */ a3, b3 FROM a JOIN b ON a1 = b1;",
            **{"table.exec.state.ttl": "1 h"},
        ),
        RegularJoin,
    )
    assert join.timing.ttl_ms == (3_600_000, 10_000)
    assert join.timing.tick_ms == 2_500


@pytest.mark.parametrize(("ttl", "tick_ms"), [("2 s", 1_000), ("1 d", 60_000)])
def test_ttl_ticks_within_bounds(ttl: str, tick_ms: int) -> None:
    found = query("SELECT a3 FROM a JOIN b ON a1 = b1;", **{"table.exec.state.ttl": ttl})
    assert one(found, RegularJoin).timing.tick_ms == tick_ms


BY_VIEW = """
CREATE VIEW w AS SELECT id, page, seen FROM (
  SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY seen DESC) AS n FROM views_
) WHERE n = 1;
SELECT page FROM clicks AS c JOIN w FOR SYSTEM_TIME AS OF c.at AS v ON c.id = v.id;
"""


def test_last_rows_by_time_are_versions_themselves() -> None:
    found = query(BY_VIEW)
    assert of_kind(found.root, Deduplicate) == []
    assert one(found, TemporalJoin).inputs[1].rowtime == "`seen`"


def test_first_rows_are_kept_below_a_temporal_join() -> None:
    found = query(BY_VIEW.replace("DESC", ""))
    rows = one(found, Deduplicate)
    assert (rows.machine.keep, rows.machine.on_watermark, rows.timing.forward) == (
        "first",
        True,
        16_384,
    )


def test_lookup_waits_for_the_build_sides_topics() -> None:
    found = query(
        "SELECT c.url, r.land FROM clicks AS c JOIN rates FOR SYSTEM_TIME AS OF c.now_ AS r"
        " ON c.url = r.code;",
        **{"rejoin.bootstrap.timeout": "5 min", "rejoin.bootstrap.on-timeout": "go"},
    )
    join = one(found, TemporalJoin)
    gate = join.machine.gate
    assert (join.machine.time, gate.kind, gate.timeout_ms, gate.on_timeout, gate.table) == (
        *("processing", "loaded"),
        *(300_000, "go", "rates"),
    )
    assert join.timing.inputs == ((), (TopicTime(2, 0),))
    assert join.timing.tick_ms == 1_000


def test_lookup_in_a_derived_table_waits_for_what_it_is_read_from() -> None:
    found = query(
        "CREATE VIEW w AS SELECT b1, COUNT(*) AS n FROM b GROUP BY b1;"
        " SELECT c.url, r.n FROM clicks AS c JOIN w FOR SYSTEM_TIME AS OF c.now_ AS r"
        " ON c.id = r.b1;"
    )
    join = one(found, TemporalJoin)
    assert join.timing.inputs == ((), (TopicTime(2, 0), TopicTime(3, 0)))
    assert one(found, Aggregate).timing.forward is None


def test_changes_of_a_probe_side_keep_their_order() -> None:
    found = query(
        "SELECT t.id, t.land, b3 FROM ("
        "  SELECT c.id, r.land FROM carts AS c"
        "  JOIN rates FOR SYSTEM_TIME AS OF c.at AS r ON c.code = r.code) AS t"
        " LEFT JOIN b ON t.id = b1;"
    )
    join = one(found, RegularJoin)
    rekey = join.inputs[0]
    assert isinstance(rekey, Rekey)
    assert rekey.ordered
    # by id a cart's changes may come from several tasks, in no order
    assert join.sides[0].layout == "no-unique-key"


def test_append_only_probe_sides_need_no_order() -> None:
    found = query(
        "SELECT t.land, b3 FROM ("
        "  SELECT p.id, r.land FROM pay AS p"
        "  JOIN rates FOR SYSTEM_TIME AS OF p.at AS r ON p.currency = r.code) AS t"
        " LEFT JOIN b ON t.id = b1;"
    )
    rekey = one(found, RegularJoin).inputs[0]
    assert isinstance(rekey, Rekey)
    assert not rekey.ordered


def test_aggregate_reads_each_argument_once() -> None:
    node = one(
        query(
            "SELECT a3, COUNT(*), SUM(a2), COUNT(a2), MAX(a2 + 1) FILTER (WHERE a1 > 0)"
            " FROM a GROUP BY a3;"
        ),
        Aggregate,
    )
    assert len(node.machine.input_schema.fields) == 3
    assert [c.argument for c in node.machine.calls] == [None, 0, 0, 1]
    assert [c.filter for c in node.machine.calls] == [None, None, None, 2]
    assert node.inputs[0].key == ("`a3`",)


def test_having_filters_what_the_aggregate_emits() -> None:
    node = one(query("SELECT a3 FROM a GROUP BY a3 HAVING SUM(a2) > 10;"), Aggregate)
    assert node.output.where is not None


def test_upserts_are_normalised_below_an_aggregate() -> None:
    found = query("SELECT city, COUNT(*) FROM users GROUP BY city;")
    rekey = one(found, Aggregate).inputs[0]
    assert isinstance(rekey, Rekey)
    assert isinstance(rekey.input.machine, Normalize)


def test_sink_key_that_tells_nothing_apart_is_materialised() -> None:
    found = insert("INSERT INTO by_code SELECT land, 1 FROM rates;")
    node = one(found, SinkMaterializer)
    assert (node.machine.strategy, node.machine.upsert_key, node.output.pair_by) == (
        "deduplicate",
        (),
        ("`code`",),
    )
    assert isinstance(found.root, KafkaSink)
    assert not found.root.exchange


def test_materialiser_tells_rows_apart_by_a_key_that_the_query_has() -> None:
    node = one(insert("INSERT INTO by_code SELECT name, id FROM users;"), SinkMaterializer)
    assert node.machine.upsert_key == (1,)


def test_conflicts_wait_for_the_watermark() -> None:
    found = insert("INSERT INTO by_code SELECT code, id FROM carts ON CONFLICT DO ERROR;")
    node = one(found, SinkMaterializer)
    assert (node.machine.strategy, node.timing.inputs) == ("error", ((TopicTime(0, 0),),))
    assert one(found, KafkaScan).marks


def test_operators_of_a_kind_have_different_ids() -> None:
    found = query(
        "SELECT a3, b3, land FROM a JOIN b ON a1 = b1 JOIN rates ON a3 = land AND b2 = a2;"
    )
    ids = [n.id for n in of_kind(found.root, RegularJoin)]
    assert sorted(ids) == ["regular-join", "regular-join-2"]
