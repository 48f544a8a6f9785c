"""A planned job as it is drawn: boxes, arrows, time, and no secrets."""

from pathlib import Path

import pytest

from spark_jobs.job_record import JobRecord, QueryRecord
from spark_jobs.plan.planner import plan
from spark_jobs.plan.text.explain import MASK
from spark_jobs.plan.text.graph import job_record
from spark_jobs.sql.bind.binder import bind

PLANS = Path(__file__).resolve().parents[3] / "plans"
EXAMPLE = Path(__file__).resolve().parents[4] / "examples" / "shop.sql"
KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json'"
TABLE = "CREATE TABLE {0} (id INT, v INT) WITH ({1}, 'topic' = '{0}');\n"


def record(text: str) -> JobRecord:
    job = bind(text)
    return job_record(job, plan(job), "job", {"rejoin.key-groups": "128"})


def arrows(query: QueryRecord) -> set[tuple[str, str, str]]:
    titles = {n.id: n.title for n in query.nodes}
    return {(titles[e.source], titles[e.target], e.side) for e in query.edges}


def test_a_temporal_join() -> None:
    found = record(EXAMPLE.read_text())
    [query] = found.queries
    assert arrows(query) == {
        ("orders", "temporal join, left", "left"),
        ("product_changelog", "temporal join, left", "right"),
        ("temporal join, left", "enriched_orders", ""),
    }
    assert all(n.tells_time for n in query.nodes if n.kind == "source")
    assert [n.operator for n in query.nodes if n.operator] == ["enriched_orders/temporal-join"]
    assert "== Rejoin Plan ==" in query.text
    assert found.servers == ("localhost:9092",)
    assert not found.secured


SIDES = "".join(TABLE.format(name, KAFKA) for name in ("a", "b", "c"))
OUT = "CREATE TABLE out_ (x INT, y BIGINT) WITH ({}, 'topic' = 'o');\nINSERT INTO out_ ".format(
    KAFKA.replace("'json'", "'changelog-json'")
)


@pytest.mark.parametrize(
    ("select", "keys"),
    [
        ("SELECT a.id, 1 FROM a JOIN b ON a.id = b.id", ["x"]),
        # a left row without a partner shows NULL, and its key cannot be told
        ("SELECT b.id, 1 FROM a LEFT JOIN b ON a.id = b.id", ["x"]),
        ("SELECT a.v, 1 FROM a JOIN b ON a.id = b.id", [""]),
        ("SELECT a.id + 1, 1 FROM a JOIN b ON a.id = b.id", [""]),
        ("SELECT a.id, a.id FROM a JOIN b ON a.id = b.id", ["x"]),
        ("SELECT 1, a.id FROM a JOIN b ON a.id = b.id", [""]),  # a cast to BIGINT
        # the first join's key is passed on by the second
        ("SELECT c.v, 1 FROM a JOIN b ON a.id = b.id JOIN c ON b.v = c.v", ["", "x"]),
        ("SELECT a.id, 1 FROM a JOIN b ON a.id = b.id JOIN c ON b.v = c.v", ["x", ""]),
        # what is equal to a column that is shown
        ("SELECT c.id, 1 FROM a JOIN b ON a.v = b.v LEFT JOIN c ON c.id = a.v", ["x"]),
        ("SELECT id, COUNT(*) FROM a GROUP BY id", ["x"]),
        ("SELECT v, COUNT(*) FROM (SELECT a.v FROM a JOIN b ON a.v = b.v) GROUP BY v", ["x", "x"]),
        ("SELECT id, MAX(v) FROM a GROUP BY id, v", [""]),
    ],
)
def test_the_columns_of_a_result_that_hold_an_operators_key(select: str, keys: list[str]) -> None:
    [query] = record(f"{SIDES}{OUT}{select};").queries
    assert [",".join(n.key_columns) for n in query.nodes if n.operator] == keys


@pytest.mark.parametrize(
    ("golden", "titles"),
    [
        ("chain_inner", ["join of 3 tables, inner, inner"]),
        ("deduplicate_last_event", ["last row of each key"]),
        ("aggregate_over_join", ["regular join, inner", "aggregate of groups"]),
        ("materializer_over_scan", ["changes by user_id", "rows by key of the sink"]),
        (
            "interval_changes",
            ["changes by order_id", "changes by pay_id", "interval join, left"],
        ),
    ],
)
def test_operators_are_named_in_words(golden: str, titles: list[str]) -> None:
    [query] = record((PLANS / f"{golden}.sql").read_text()).queries
    operators = [n for n in query.nodes if n.kind == "operator"]
    assert [n.title for n in operators] == titles
    assert all(n.details[0] in query.text for n in operators)  # the name that explain prints


def test_a_table_that_is_read_twice_has_two_boxes() -> None:
    query = "INSERT INTO s SELECT x.id, y.v FROM a AS x JOIN a AS y ON x.id = y.id"
    found = record("".join(TABLE.format(name, KAFKA) for name in ("a", "s")) + query)
    sources = [n for n in found.queries[0].nodes if n.kind == "source"]
    assert [(n.id, n.table) for n in sources] == [("source-1", "a"), ("source-2", "a")]
    assert not any(n.tells_time for n in sources)


def test_the_idle_timeout_of_each_table() -> None:
    text = EXAMPLE.read_text().replace(
        "'topic' = 'orders'", "'topic' = 'orders', 'scan.watermark.idle-timeout' = '7 s'"
    )
    nodes = {n.table: n for n in record(text).queries[0].nodes if n.kind == "source"}
    assert nodes["orders"].idle_timeout_ms == 7000
    assert nodes["product_changelog"].idle_timeout_ms == 0


def test_secrets_are_masked() -> None:
    own = "'properties.security.protocol' = 'SASL_SSL', 'properties.sasl.jaas.config' = '${env:H}'"
    tables = [TABLE.format(name, f"{KAFKA}, {own}") for name in ("a", "s")]
    found = record("".join((*tables, "INSERT INTO s SELECT * FROM a")))
    assert found.secured
    assert found.tables["a"]["properties.sasl.jaas.config"] == MASK
