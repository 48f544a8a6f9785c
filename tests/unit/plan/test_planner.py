"""The physical plan: layouts, how upserts enter, sinks, and the JSON that the kernel reads."""

from collections.abc import Callable
from typing import Any

import pytest

from spark_jobs.plan.nodes.parts import TopicTime
from spark_jobs.plan.nodes.physical import (
    KafkaScan,
    KafkaSink,
    Normalize,
    QueryPlan,
    RegularJoin,
    Rekey,
    TemporalJoin,
)
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.planner import plan
from spark_jobs.plan.text.explain import masked, plan_json
from spark_jobs.sql.bind.binder import Job

Jobs = Callable[[str], Job]


def only(job: Job) -> QueryPlan:
    (found,) = plan(job)
    return found


def sink_of(found: QueryPlan) -> KafkaSink:
    assert isinstance(found.root, KafkaSink)
    return found.root


def operator(found: QueryPlan) -> Any:
    (project,) = sink_of(found).inputs
    return project.input


def regular(found: QueryPlan) -> Any:
    join = operator(found)
    assert isinstance(join.machine, RegularJoin)
    return join


def temporal(found: QueryPlan) -> Any:
    join = operator(found)
    assert isinstance(join.machine, TemporalJoin)
    return join


@pytest.mark.parametrize(
    ("query", "left", "right"),
    [
        ("a1, b3 FROM a JOIN b ON a1 = b1", "no-unique-key", "no-unique-key"),
        ("a1, c2 FROM a JOIN changes ON a1 = c1", "no-unique-key", "join-key-contains-unique-key"),
        ("c1, b3 FROM changes JOIN b ON c2 = b3", "has-unique-key", "no-unique-key"),
        # Flink's rule: a key that nobody selects is lost
        ("b1, c2 FROM b JOIN changes ON b3 = c2", "no-unique-key", "no-unique-key"),
    ],
)
def test_layouts(query: str, left: str, right: str, job: Jobs) -> None:
    join = regular(only(job(f"INSERT INTO retract_sink SELECT {query};")))
    assert (join.sides[0].layout, join.sides[1].layout) == (left, right)


def test_unique_key_is_stored_and_addressed(job: Jobs) -> None:
    join = regular(
        only(job("INSERT INTO retract_sink SELECT a1, name FROM a JOIN users ON a3 = city;"))
    )
    names = [f.name for f in join.sides[1].schema.fields]
    assert [names[i] for i in join.sides[1].unique_key] == ["id"]


def test_upserts_enter_as_they_are_where_the_key_tells_the_join_key(job: Jobs) -> None:
    found = only(job("INSERT INTO retract_sink SELECT a1, name FROM a JOIN users ON a1 = id;"))
    join = regular(found)
    scan = join.inputs[1]
    assert isinstance(scan, KafkaScan)
    assert join.sides[1].upsert
    assert not join.sides[0].upsert
    assert (scan.changelog, scan.primary_key) == ("upsert", ("id",))


def test_upserts_are_stored_by_unique_key_under_part_of_it(job: Jobs) -> None:
    join = regular(
        only(job("INSERT INTO retract_sink SELECT a1, a3 FROM a JOIN items ON a1 = order_id;"))
    )
    assert join.sides[1].upsert
    assert join.sides[1].layout == "has-unique-key"
    assert [join.sides[1].schema.fields[i].name for i in join.sides[1].unique_key] == [
        "order_id",
        "line",
    ]


def test_other_upserts_are_normalised(job: Jobs) -> None:
    join = regular(
        only(
            job(
                "INSERT INTO retract_sink SELECT a1, name FROM a JOIN users ON a3 = city"
                " WHERE name <> 'x';"
            )
        )
    )
    rekey = join.inputs[1]
    assert isinstance(rekey, Rekey)
    assert not join.sides[1].upsert
    assert (rekey.key, rekey.drop_null_keys) == (("`city`",), (0,))
    normalize = rekey.input
    assert isinstance(normalize.machine, Normalize)
    assert [normalize.machine.schema.fields[i].name for i in normalize.machine.key] == ["id"]
    assert normalize.output.pair_by is None
    below = normalize.inputs[0]
    assert isinstance(below, KafkaScan)
    assert below.key == ("`id`",)
    assert below.filter is not None


def test_null_keys_are_dropped_where_they_cannot_show(job: Jobs) -> None:
    inner = regular(only(job("INSERT INTO retract_sink SELECT a1, b3 FROM a JOIN b ON a1 = b1;")))
    left = regular(
        only(job("INSERT INTO retract_sink SELECT a1, b3 FROM a LEFT JOIN b ON a1 = b1;"))
    )
    safe = regular(
        only(
            job(
                "INSERT INTO retract_sink SELECT a1, b3 FROM a JOIN b"
                " ON a1 IS NOT DISTINCT FROM b1 AND a2 = b2;"
            )
        )
    )
    assert [i.drop_null_keys for i in inner.inputs] == [(0,), (0,)]
    assert [i.drop_null_keys for i in left.inputs] == [(), (0,)]
    assert [i.drop_null_keys for i in safe.inputs] == [(1,), (1,)]
    assert safe.machine.pair.filter_nulls == (False, True)


def test_topics_are_numbered_through(job: Jobs) -> None:
    join = regular(only(job("INSERT INTO retract_sink SELECT a1, b3 FROM b JOIN a ON a1 = b1;")))
    scans = [i for i in join.inputs if isinstance(i, KafkaScan)]
    assert [[(t.name, t.index) for t in s.topics] for s in scans] == [
        [("b", 0), ("b-old", 1)],
        [("a", 2)],
    ]


def test_rows_hold_only_what_result_and_condition_read(job: Jobs) -> None:
    join = regular(
        only(job("INSERT INTO retract_sink SELECT 1, b3 FROM a JOIN b ON a1 = b1 AND a2 > b2;"))
    )
    assert [f.name for f in join.sides[0].schema.fields] == ["a2"]
    assert [f.name for f in join.sides[1].schema.fields] == ["b2", "b3"]


def test_self_join_makes_names_different(job: Jobs) -> None:
    join = regular(
        only(
            job(
                "INSERT INTO retract_sink SELECT x.a1, y.a3 FROM a AS x JOIN a AS y ON x.a2 = y.a1;"
            )
        )
    )
    names = [f.name for side in join.sides for f in side.schema.fields]
    assert len(set(names)) == len(names)


def test_upsert_sink_pairs_updates_by_its_key(job: Jobs) -> None:
    found = only(job("INSERT INTO upsert_sink SELECT id, c2 FROM users JOIN changes ON id = c1;"))
    join = regular(found)
    assert join.output.pair_by == ("`id`",)
    assert join.changelog_mode == "I,UA,D"
    assert not sink_of(found).exchange


def test_sink_key_without_the_join_key_is_exchanged(job: Jobs) -> None:
    moving = only(
        job("INSERT INTO upsert_sink SELECT c1, land FROM changes LEFT JOIN rates ON c2 = code;")
    )
    assert sink_of(moving).exchange


KEYED = (
    "CREATE TABLE keyed (x INT, y STRING) WITH ('connector' = 'kafka', 'topic' = 'keyed',"
    " 'properties.bootstrap.servers' = 'localhost:9092', 'key.format' = 'json',"
    " 'key.fields' = 'x', 'value.format' = 'changelog-json');"
)


@pytest.mark.parametrize(
    ("query", "exchange"),
    [
        ("c1, land FROM changes LEFT JOIN rates ON c2 = code", True),
        ("id, c2 FROM users JOIN changes ON id = c1", False),
        ("a1, b3 FROM a JOIN b ON a1 = b1", False),
        ("c1, c2 FROM changes UNION ALL SELECT id, name FROM users", False),
    ],
)
def test_keys_of_a_retract_sink_meet_again(job: Jobs, query: str, exchange: bool) -> None:
    """Not where a branch emits the changes of a key as they come: only their order is right."""
    found = only(job(f"{KEYED} INSERT INTO keyed SELECT {query};"))
    assert sink_of(found).exchange == exchange


def test_insertions_need_no_pairs(job: Jobs) -> None:
    found = only(job("INSERT INTO upsert_sink SELECT a1, b3 FROM a JOIN b ON a1 = b1;"))
    assert regular(found).output.pair_by is None
    assert not sink_of(found).exchange


@pytest.mark.parametrize(
    ("query", "shown"),
    [
        ("id, c2 FROM users JOIN changes ON id = c1", None),
        ("c1, name FROM users JOIN changes ON id = c1 WHERE city <> c2", ("`c1`", "`name`")),
        ("id, name FROM users LEFT JOIN changes ON id = c1", ("`id`", "`name`")),
        ("id, UPPER(name) FROM users WHERE name <> 'x'", ("`id`", "upper(`name`)")),
        ("id, name FROM users WHERE name <> 'x'", None),
        ("a1, b3 FROM a JOIN b ON a1 = b1 WHERE a2 > 1", None),
    ],
)
def test_an_operator_knows_what_the_select_list_shows(
    job: Jobs, query: str, shown: tuple[str, ...] | None
) -> None:
    found = operator(only(job(f"INSERT INTO retract_sink SELECT {query};")))
    assert found.output.shown == shown


def test_upserts_pass_into_an_upsert_sink_of_the_same_key(job: Jobs) -> None:
    found = only(job("INSERT INTO upsert_sink SELECT id, name FROM users;"))
    assert isinstance(operator(found), KafkaScan)


def test_upserts_into_other_sinks_are_normalised(job: Jobs) -> None:
    found = only(job("INSERT INTO retract_sink SELECT id, name FROM users;"))
    node = operator(found)
    assert isinstance(node.machine, Normalize)
    assert node.output.pair_by is None


def test_temporal_join_reads_time_and_marks(job: Jobs) -> None:
    found = only(
        job(
            "SET 'table.exec.source.idle-timeout' = '1 min';"
            "INSERT INTO append_sink SELECT id, land FROM pay"
            " LEFT JOIN rates FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code;"
        )
    )
    join = temporal(found)
    assert join.timing.inputs == ((TopicTime(0, 60_000),), (TopicTime(1, 60_000),))
    assert join.timing.tick_ms == 30_000
    assert (join.sides[0].upsert, join.sides[1].upsert) == (False, True)
    pay = join.inputs[0]
    assert isinstance(pay, KafkaScan)
    assert pay.marks
    assert pay.rowtime == "`at`"
    assert [f.name for f in pay.schema.fields] == ["id"]
    assert {c.name for c in pay.columns} == {"id", "currency", "at"}
    assert found.warnings == ()


def test_finer_temporal_key_is_normalised_and_told(job: Jobs) -> None:
    found = only(
        job(
            "INSERT INTO append_sink SELECT id, land FROM pay"
            " JOIN rates FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code AND country = land;"
        )
    )
    rekey = temporal(found).inputs[1]
    assert isinstance(rekey, Rekey)
    assert rekey.rowtime == "`since`"
    below = rekey.input.inputs[0]
    assert isinstance(below, KafkaScan)
    assert below.marks
    assert len(found.warnings) == 1


def test_constant_key_of_versions(job: Jobs) -> None:
    found = only(
        job(
            "INSERT INTO append_sink SELECT id, land FROM pay"
            " JOIN rates FOR SYSTEM_TIME AS OF pay.at AS r ON code = 'EUR';"
        )
    )
    join = temporal(found)
    assert join.inputs[0].key == ("'EUR'",)
    assert join.inputs[1].key == ("`code`",)


def test_warnings(job: Jobs) -> None:
    keyed = only(job("INSERT INTO append_sink SELECT a1, b3 FROM a JOIN b ON a1 = b1;"))
    theta = only(job("INSERT INTO append_sink SELECT a1, b3 FROM a JOIN b ON a1 < b1;"))
    assert [w.split(":")[0] for w in keyed.warnings] == ["state grows without bound"]
    assert [w.split(":")[0] for w in theta.warnings] == [
        "state grows without bound",
        "no equality between the inputs",
    ]


def test_second_query_into_a_sink_has_its_own_name(job: Jobs) -> None:
    found = plan(
        job(
            "INSERT INTO append_sink SELECT a1, a3 FROM a;"
            "INSERT INTO append_sink SELECT b1, b3 FROM b;"
        )
    )
    assert [p.name for p in found] == ["append_sink", "append_sink_2"]


def test_no_two_queries_have_one_name(job: Jobs) -> None:
    """They would share a checkpoint, and be counted as one."""
    table = (
        "CREATE TABLE append_sink_2 (x INT) WITH ('connector' = 'kafka', 'topic' = 's2',"
        " 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');"
    )
    into = "INSERT INTO append_sink (x) SELECT a1 FROM a;"
    into_2 = into.replace("sink", "sink_2")
    inserts = into + into + into_2 + into + into_2
    assert [p.name for p in plan(job(table + inserts))] == [
        "append_sink",
        "append_sink_2",
        "append_sink_2_2",
        "append_sink_3",
        "append_sink_2_3",
    ]


SHOWN = {"changelogMode", "uniqueKeys"}
SCAN_KEYS = SHOWN | {
    *("kind", "table", "side", "topics", "groups", "changelog", "keyFormat", "valueFormat"),
    *("columns", "primaryKey", "filter", "rowtime", "watermark", "key", "dropNullKeys", "row"),
    *("schema", "marks", "onError", "deadLetterTopic", "startup", "bounded", "properties"),
    *("timeZone", "alignment", "debezium", "rejectLimit"),
}
OPERATOR_KEYS = SHOWN | {"kind", "id", "output", "timing", "inputs"}
TWO_INPUTS = OPERATOR_KEYS | {"joinType", "left", "right", "key", "filterNulls", "residual"}
JOIN_KEYS = TWO_INPUTS | {"inputFaults"}
TEMPORAL_KEYS = TWO_INPUTS | {"time", "gate", "lateProbe"}
REKEY_KEYS = SHOWN | {
    *("kind", "side", "groups", "key", "dropNullKeys", "rowtime", "row", "schema", "input"),
    *("ordered", "timeZone"),
}
NORMALIZE_KEYS = OPERATOR_KEYS | {"schema", "key", "positions", "keyChanges"}
SINK_KEYS = {
    *("kind", "name", "table", "topic", "mode", "keyFormat", "valueFormat", "keyFields"),
    *("keyPrefix", "valueIncludesKey", "schema", "guarantee", "transactionalIdPrefix"),
    *("properties", "exchange", "inputs", "onError", "deadLetterTopic"),
}


def test_json_has_the_names_that_the_kernel_reads(job: Jobs) -> None:
    sink: Any = to_json(
        only(job("INSERT INTO retract_sink SELECT a1, b3 FROM a JOIN b ON a1 = b1;")).root
    )
    assert set(sink) == SINK_KEYS
    project = sink["inputs"][0]
    assert set(project) == {"kind", "select", "schema", "timeZone", "input"} | SHOWN
    assert project["select"][0] == {"name": "x", "expr": "`a1`"}
    join = project["input"]
    assert set(join) == JOIN_KEYS
    assert set(join["left"]) == {"schema", "layout", "uniqueKey", "upsert"}
    scan = join["inputs"][0]
    assert set(scan) == SCAN_KEYS
    assert scan["columns"][0] == {
        "name": "a1",
        "type": "integer",
        "sqlType": "INT",
        "nullable": True,
        "from": "value",
        "field": "a1",
    }
    assert scan["valueFormat"]["name"] == "json"
    assert scan["schema"]["type"] == "struct"


def test_json_of_a_temporal_join(job: Jobs) -> None:
    found = only(
        job(
            "INSERT INTO append_sink SELECT id, land FROM pay JOIN rates"
            " FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code AND country = land;"
        )
    )
    join: Any = to_json(temporal(found))
    assert set(join) == TEMPORAL_KEYS
    assert set(join["right"]) == {"schema", "layout", "uniqueKey", "upsert"}
    assert set(join["timing"]) == {"inputs", "policy", "forward", "tickMs", "ttlMs"}
    assert set(join["output"]) == {"where", "pairBy", "timeZone", "lateTopic"}
    rekey = join["inputs"][1]
    assert set(rekey) == REKEY_KEYS
    normalize = rekey["input"]
    assert set(normalize) == NORMALIZE_KEYS


def test_shown_plan_hides_secrets() -> None:
    shown = masked(
        {"properties": {"sasl.jaas.config": "user=x", "group.id": "g"}, "key": ["`token`"]}
    )
    assert shown == {"properties": {"sasl.jaas.config": "***", "group.id": "g"}, "key": ["`token`"]}
    assert plan_json(()) == {"version": 1, "queries": []}
