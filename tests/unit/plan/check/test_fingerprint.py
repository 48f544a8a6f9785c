"""What a checkpoint remembers of plans that other tests do not keep."""

from spark_jobs.plan.check.compatibility import differences
from spark_jobs.plan.check.fingerprint import Fingerprint, OperatorPrint, fingerprint
from spark_jobs.plan.nodes.physical import KafkaSink, Stateful
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.nodes.walk import stateful_nodes
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


TEMPORAL = """
CREATE TABLE o (id INT, k INT, v INT, p AS PROCTIME(), PRIMARY KEY (id) NOT ENFORCED)
WITH ({kafka}, 'topic' = 'o', 'format' = '{format}');
CREATE TABLE r (k INT, rate INT, PRIMARY KEY (k) NOT ENFORCED)
WITH ({kafka}, 'topic' = 'r', 'format' = 'debezium-json');
CREATE TABLE s (v INT, rate INT, id INT) WITH ({kafka}, 'topic' = 's', 'format' = 'debezium-json');
INSERT INTO s SELECT v, rate, {selected}
FROM o JOIN r FOR SYSTEM_TIME AS OF o.p AS r ON o.k = r.k;
"""


def _temporal(format_: str, selected: str) -> tuple[Stateful, OperatorPrint]:
    [planned] = plan(bind(TEMPORAL.format(kafka=KAFKA, format=format_, selected=selected)))
    assert isinstance(planned.root, KafkaSink)
    return stateful_nodes(planned.root)[0], fingerprint(planned.root).operators[0]


def test_what_a_temporal_join_remembers_of_its_left_rows_is_in_no_fingerprint() -> None:
    """So that checkpoints from before it did so go on."""
    grows, before = _temporal("json", "id")
    changes, after = _temporal("changelog-json", "id")
    assert to_json(changes)["probeChanges"] is True
    assert "probeChanges" not in to_json(grows)
    assert before.state == after.state


def test_only_left_rows_that_change_keep_a_key_that_is_not_read() -> None:
    _, grows = _temporal("json", "1")
    _, changes = _temporal("changelog-json", "1")
    assert grows.state["left row"] == ["v INT"]
    assert changes.state["left row"] == ["id INT", "v INT"]


def test_the_row_of_no_rows_is_another_state_than_a_count() -> None:
    """A count that goes on from it, or it from a count, would leave a wrong row in the sink."""
    count = "INSERT INTO s SELECT CAST(COUNT(*) AS INT), MAX(t) FROM a WHERE {};"
    then, now = (
        _printed("".join((TABLE.format("a"), SINK, count.format(condition))))
        for condition in ("id > 0", "FALSE")
    )
    for before, after in ((then, now), (now, then)):
        assert "no input" in {
            d.place.partition(", ")[2] for d in differences(before, after) if d.code
        }


INTERVAL = """
CREATE TABLE a (id INT, at TIMESTAMP(3), WATERMARK FOR at AS at)
WITH ({kafka}, 'topic' = 'a', 'format' = 'json');
CREATE TABLE s (id INT) WITH ({kafka}, 'topic' = 's', 'format' = 'debezium-json');
INSERT INTO s SELECT {hint} a.id FROM a LEFT JOIN a AS b ON a.id = b.id AND a.at = b.at;
"""


def test_early_padding_is_another_state() -> None:
    """Which rows have been padded is known by the delay alone."""
    hints = ("", "/*+ EARLY_FIRE('delay' = '1s') */", "/*+ EARLY_FIRE('delay' = '2s') */")
    off, on, later = (_printed(INTERVAL.format(kafka=KAFKA, hint=hint)) for hint in hints)
    assert "early fire ms" not in off.operators[0].state
    for then, now in ((off, on), (on, off), (on, later)):
        [told] = [d for d in differences(then, now) if d.effect == "incompatible"]
        assert told.code == "STATE_INCOMPATIBLE"
        assert "early fire ms" in told.text()
