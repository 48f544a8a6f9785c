"""What a checkpoint remembers of plans that other tests do not keep."""

from spark_jobs.plan.check.compatibility import differences
from spark_jobs.plan.check.fingerprint import Fingerprint, fingerprint
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind

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


def _printed(job: str) -> Fingerprint:
    [planned] = plan(bind(job))
    assert isinstance(planned.root, KafkaSink)
    return fingerprint(planned.root)


def test_normalisers_of_both_sides_are_remembered() -> None:
    found = _printed("".join((TABLE.format("a"), TABLE.format("b"), SINK, QUERY)))
    assert [o.kind for o in found.operators] == ["regular-join", "normalize", "normalize"]


def test_following_keys_is_another_operator_and_the_wait_is_free() -> None:
    query = QUERY.replace("b.t", "a.t")
    table = "".join((TABLE.format("b"), SINK, query))
    prints = []
    for options in ("", "heal", "heal', 'rejoin.debezium.key-change-wait' = '1 h"):
        given = f", 'rejoin.debezium.key-changes' = '{options or 'reject'}'"
        declared = TABLE.format("a").replace("'debezium-json'", f"'debezium-json'{given}")
        prints.append(_printed(declared + table))
    off, on, longer = prints
    for then, now in ((off, on), (on, off)):
        (told,) = (d for d in differences(then, now) if d.effect == "incompatible")
        assert told.code == "STATE_INCOMPATIBLE"
        assert "key-changes" in told.text()
    (told,) = differences(on, longer)
    assert (told.effect, told.then, told.now) == ("compatible", "600000", "3600000")
