"""What is read off a plan before it runs: names of scans, gates, operators."""

from spark_jobs.driver.queries import needs_clock, shape
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind

TABLES = """
CREATE TABLE o (id INT, k INT, p AS PROCTIME()) WITH ('connector' = 'kafka', 'topic' = 'o',
  'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
CREATE TABLE r (k INT, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = 'r', 'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json',
  'value.format' = 'json');
CREATE TABLE s (a INT, b INT) WITH ('connector' = 'kafka', 'topic' = 's',
  'properties.bootstrap.servers' = 'b:1', 'format' = 'changelog-json');
"""


def sink(query: str, settings: str = "") -> KafkaSink:
    [planned] = plan(bind(f"{settings}{TABLES}INSERT INTO s {query};", "job"))
    assert isinstance(planned.root, KafkaSink)
    return planned.root


def test_a_table_that_is_read_twice_has_two_names() -> None:
    root = sink("SELECT id, k FROM o UNION ALL SELECT k, id FROM o UNION ALL SELECT k, v FROM r")
    names = [scan.id for scan in scans(root)]
    assert len(set(names)) == len(names) == 3


def test_only_the_build_side_of_a_gate_is_loaded() -> None:
    lookup = "SELECT o.id, r.v FROM o LEFT JOIN r FOR SYSTEM_TIME AS OF o.p AS r ON o.k = r.k"
    found = {scan.table: scan.gated for scan in scans(sink(lookup))}
    assert found == {"o": False, "r": True}
    [operator] = [o for o in shape(sink(lookup), "q").operators if o.kind == "temporal-join"]
    topics = {t.name: t.index for scan in scans(sink(lookup)) for t in scan.topics}
    assert (operator.waits, operator.gated) == (True, (topics["r"],))
    assert needs_clock(sink(lookup))


def test_plans_without_time_need_no_clock() -> None:
    assert not needs_clock(sink("SELECT o.id, r.v FROM o LEFT JOIN r ON o.k = r.k"))


def test_operators_stand_as_spark_reports_them_the_last_one_first() -> None:
    query = "SELECT o.k, SUM(r.v) FROM o JOIN r ON o.k = r.k GROUP BY o.k"
    assert [node.kind for node in stateful_nodes(sink(query))] == ["aggregate", "regular-join"]
