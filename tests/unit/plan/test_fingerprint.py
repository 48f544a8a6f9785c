"""What a checkpoint remembers of plans that other tests do not keep."""

from spark_jobs.operators.running import scans
from spark_jobs.plan.fingerprint import fingerprint
from spark_jobs.plan.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.sql.binder import bind

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1'"
TABLE = (
    "CREATE TABLE {0} (id INT, other INT, t STRING, PRIMARY KEY (id) NOT ENFORCED)"
    " WITH (" + KAFKA + ", 'topic' = '{0}', 'format' = 'debezium-json');\n"
)
SINK = (
    "CREATE TABLE s (id INT, t STRING)"
    " WITH (" + KAFKA + ", 'topic' = 's', 'format' = 'debezium-json');\n"
)
QUERY = "INSERT INTO s SELECT a.id, b.t FROM a LEFT JOIN b ON a.other = b.other;"


def test_normalisers_of_both_sides_are_remembered() -> None:
    [planned] = plan(bind("".join((TABLE.format("a"), TABLE.format("b"), SINK, QUERY))))
    assert isinstance(planned.root, KafkaSink)
    found = fingerprint(planned.root, [(scan.id, scan.node) for scan in scans(planned.root)])
    assert [o.kind for o in found.operators] == ["regular-join", "normalize", "normalize"]
