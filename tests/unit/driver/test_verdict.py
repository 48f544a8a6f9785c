"""Which changes of a job go on from its checkpoint, and what a refusal names."""

from typing import Any

import pytest

from spark_jobs.driver.launch import present
from spark_jobs.driver.verdict import Present, accepted, judge, refuse, verdict, written_now
from spark_jobs.errors import StateError
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Environment, Overrides, job_settings
from spark_jobs.sql.bind.binder import bind
from spark_jobs.streaming.manifest import STATE_FORMAT, VERSION, Manifest, Writer
from spark_jobs.streaming.sources import ScanStart

JOB = """
SET 'rejoin.key-groups' = '8';
CREATE TABLE orders (id INT, k INT, amount BIGINT, note STRING, `at` TIMESTAMP(3), p AS PROCTIME(),
  WATERMARK FOR `at` AS `at` - INTERVAL '5' SECOND)
WITH ('connector' = 'kafka', 'topic' = 'orders', 'format' = 'json',
  'properties.bootstrap.servers' = 'b:1', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE people (k INT, name STRING, city STRING, `at` TIMESTAMP(3),
  WATERMARK FOR `at` AS `at`, PRIMARY KEY (k) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 'people', 'key.format' = 'json',
  'value.format' = 'json', 'properties.bootstrap.servers' = 'b:1');
CREATE TABLE pay (id INT, paid BIGINT, `at` TIMESTAMP(3), WATERMARK FOR `at` AS `at`)
WITH ('connector' = 'kafka', 'topic' = 'pay', 'format' = 'json',
  'properties.bootstrap.servers' = 'b:1', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE s (a INT, b STRING)
WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'changelog-json',
  'properties.bootstrap.servers' = 'b:1');
INSERT INTO s """
NAMED = "SELECT o.id, r.name FROM orders AS o LEFT JOIN people AS r ON o.k = r.k"
PAID = "SELECT o.id, o.note FROM orders AS o JOIN pay AS q ON o.id = q.id AND q.paid < o.amount"
NEAR = (
    "SELECT o.id, o.note FROM orders AS o JOIN pay AS q ON o.id = q.id"
    " AND q.`at` BETWEEN o.`at` AND o.`at` + INTERVAL '1' HOUR"
)
AS_OF = (
    "SELECT o.id, r.name FROM orders AS o"
    " LEFT JOIN people FOR SYSTEM_TIME AS OF o.`at` AS r ON o.k = r.k"
)
SUMS = "SELECT k, CAST(SUM(amount) AS STRING) FROM orders GROUP BY k"
FIRST = (
    "SELECT id, note FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY p) AS n"
    " FROM orders) WHERE n = 1"
)
TREE = NAMED + " JOIN pay AS q ON o.id = q.id"


def job(query: str, settings: str = "", change: tuple[str, str] = ("", "")) -> Present:
    """The query after a change of the text before it, which has to be there."""
    assert change[0] in JOB
    text = settings + (JOB.replace(*change) if change[0] else JOB) + query + ";"
    bound = bind(text, "job.sql")
    [planned] = plan(bound)
    assert isinstance(planned.root, KafkaSink)
    return present(planned.root, job_settings(bound.settings, "job", Overrides(), Environment()))


def manifest(of: Present, **changes: Any) -> Manifest:
    start = ScanStart(starts={}, ends=None)
    topics = {place: name for scan in of.plan.scans for name, place in scan.topics.items()}
    made = Manifest(
        version=VERSION,
        checkpoint="c",
        query="s",
        topics=tuple(name for _, name in sorted(topics.items())),
        groups=of.groups,
        parallelism=2,
        state=of.digest,
        scans={
            scan.id: start.model_copy(update={"starts": {topic: {0: -2} for topic in scan.topics}})
            for scan in of.plan.scans
        },
        plan=of.plan,
        written_by=written_now(),
    ).model_copy(update=changes)
    return Manifest.read(made.model_dump_json(), "s", "/c/s")


def told(then: Manifest, now: Present, sources: int | None = None) -> str:
    found = judge(then, now, sources)
    return "\n".join([verdict(found), *(d.text() for d in found)])


@pytest.mark.parametrize("query", [NAMED, PAID, NEAR, AS_OF, SUMS, FIRST, TREE])
def test_the_same_job_is_identical(query: str) -> None:
    assert told(manifest(job(query)), job(query)) == "identical"


LATER = "SET 'table.exec.state.ttl' = '2 d';"
DAY = "SET 'table.exec.state.ttl' = '1 d';"
SKIP = "'topic' = 'people', 'rejoin.on-error' = 'skip'"
NONE = "'topic' = 's', 'sink.delivery-guarantee' = 'none'"
# before, after, what is said
COMPATIBLE = {
    "SELECT list": ((NAMED,), (NAMED.replace("r.name", "UPPER(r.name)"),), "sink, SELECT: then "),
    "WHERE behind": (
        (NAMED,),
        (NAMED + " WHERE r.name IS NULL",),
        "regular-join, WHERE behind it: then none, now (`name` IS NULL)",
    ),
    "WHERE in front": (
        (NAMED,),
        (NAMED + " WHERE o.id > 7",),
        "scan 0-orders, WHERE in front: then none, now (`id` > 7)",
    ),
    "table name": (
        (NAMED,),
        (NAMED.replace("people", "users"), "", ("TABLE people", "TABLE users")),
        "scan 1-users, table: then people, now users (only names",
    ),
    "sink topic": (
        (NAMED,),
        (NAMED, "", ("'topic' = 's'", "'topic' = 's2'")),
        "sink, topic: then s, now s2 (the new topic",
    ),
    "sink format": (
        (NAMED,),
        (NAMED, "", ("changelog-json", "debezium-json")),
        "sink, value format: then changelog-json, now debezium-json",
    ),
    "delivery": (
        (NAMED,),
        (NAMED, "", ("'topic' = 's'", NONE)),
        "sink, delivery: then exactly-once, now none",
    ),
    "bad records": (
        (NAMED,),
        (NAMED, "", ("'topic' = 'people'", SKIP)),
        "scan 1-people, bad records: then fail, now skip",
    ),
    "start": (
        (NAMED,),
        (NAMED, "", ("earliest-offset", "latest-offset")),
        "starts: then earliest-offset, now latest-offset (without effect",
    ),
    "NOT NULL in a row": (
        (NAMED.replace("r.name", "r.city"),),
        (NAMED.replace("r.name", "r.city"), "", ("city STRING", "city STRING NOT NULL")),
        "columns read: then (k INT NOT NULL, city STRING), now (k INT NOT NULL, city STRING NOT",
    ),
    "TTL length": (
        (NAMED, LATER),
        (NAMED, DAY),
        "regular-join, TTL of left: then 172800000 ms, now 86400000 ms",
    ),
    "watermark": (
        (AS_OF,),
        (AS_OF, "", ("INTERVAL '5'", "INTERVAL '7'")),
        "scan 0-orders, watermark: then ",
    ),
    "idle timeout": (
        (NEAR,),
        (NEAR, "SET 'table.exec.source.idle-timeout' = '1 min';"),
        "interval-join, idle timeouts: then ((0), (0)), now ((60000), (60000))",
    ),
    "policy": (
        (NEAR,),
        (NEAR, "SET 'rejoin.watermark.policy' = 'max';"),
        "interval-join, watermark policy: then min, now max",
    ),
}

SWAPPED = (
    "SELECT j.id, r.name FROM (SELECT o.id, o.k FROM orders AS o JOIN pay AS q ON o.id = q.id)"
    " AS j LEFT JOIN people AS r ON j.k = r.k"
)
BOUND = ("earliest-offset'", "earliest-offset', 'scan.bounded.mode' = 'latest-offset'")
# before, after, code, what is said
INCOMPATIBLE = {
    "join type": (
        (NAMED,),
        (NAMED.replace("LEFT ", ""),),
        "STATE_INCOMPATIBLE",
        "regular-join, join type: then left, now inner",
    ),
    "key": (
        (NAMED,),
        (NAMED.replace("o.k", "o.id"),),
        "STATE_INCOMPATIBLE",
        "regular-join, input 0: key, column 1: then `k`, now `id`",
    ),
    "key type": (
        (NAMED,),
        (NAMED, "", ("people (k INT", "people (k BIGINT")),
        "STATE_INCOMPATIBLE",
        "regular-join, key, column 1: then k0 INT, now k0 BIGINT",
    ),
    "column type": (
        (NAMED,),
        (NAMED.replace("r.name", "CAST(r.name AS STRING)"), "", ("name STRING", "name BIGINT")),
        "STATE_INCOMPATIBLE",
        "regular-join, right row, column 1: then name STRING, now name BIGINT",
    ),
    "another column": (
        (NAMED,),
        (NAMED.replace("r.name", "r.name || o.note"),),
        "STATE_INCOMPATIBLE",
        "regular-join, left row, column 2: then none, now note STRING",
    ),
    "the same type from another column": (
        (NAMED,),
        (NAMED.replace("r.name", "r.city"),),
        "STATE_INCOMPATIBLE",
        "regular-join, input 1: row, column 1: then `name`, now `city`",
    ),
    "primary key": (
        (NAMED,),
        (NAMED, "", ("PRIMARY KEY (k)", "PRIMARY KEY (k, name)")),
        "STATE_INCOMPATIBLE",
        "regular-join, right layout: then join-key-contains-unique-key, now has-unique-key",
    ),
    "residual": (
        (PAID,),
        (PAID.replace("<", "<="),),
        "STATE_INCOMPATIBLE",
        "regular-join, residual: then (`paid` < `amount`), now (`paid` <= `amount`)",
    ),
    "TTL": (
        (NAMED,),
        (NAMED, DAY),
        "STATE_INCOMPATIBLE",
        "regular-join, TTL: then none, now (left, right)",
    ),
    "interval": (
        (NEAR,),
        (NEAR.replace("'1' HOUR", "'2' HOUR"),),
        "STATE_INCOMPATIBLE",
        "interval-join, lower ms: then -3600000, now -7200000",
    ),
    "aggregate": (
        (SUMS,),
        (SUMS.replace("SUM(", "MAX("),),
        "STATE_INCOMPATIBLE",
        "aggregate, calls: then (function SUM",
    ),
    "time": (
        (FIRST,),
        (FIRST.replace("BY p", "BY `at`"),),
        "STATE_INCOMPATIBLE",
        "deduplicate, clock: then no, now yes (a clock is one of the query's sources",
    ),
    "join in front": (
        (NAMED,),
        (TREE,),
        "STATE_INCOMPATIBLE",
        "sources to the sink: then regular-join, now regular-join, regular-join-2",
    ),
    "joins in another order": (
        (TREE,),
        (SWAPPED,),
        "STATE_INCOMPATIBLE",
        "regular-join, right row, column 1: then name STRING, now id0 INT",
    ),
    "topic appended": (
        (NAMED,),
        (NAMED, "", ("'topic' = 'orders'", "'topic' = 'orders;more'")),
        "CHECKPOINT_MISMATCH",
        "scan 1-people, topics: then people (place 1), now people (place 2)",
    ),
    "end of input": (
        (SUMS,),
        (SUMS, "", BOUND),
        "CHECKPOINT_MISMATCH",
        "scan 0-orders, ends: then unbounded, now bounded",
    ),
    "key groups": (
        (NAMED,),
        (NAMED, "", ("'8'", "'16'")),
        "CHECKPOINT_MISMATCH",
        "'rejoin.key-groups': then 8, now 16",
    ),
    "parallelism": (
        (NAMED,),
        (NAMED, "SET 'rejoin.parallelism' = '3';"),
        "CHECKPOINT_MISMATCH",
        "'rejoin.parallelism': then 2, now 3",
    ),
}


@pytest.mark.parametrize(("then", "now", "says"), COMPATIBLE.values(), ids=list(COMPATIBLE))
def test_what_state_does_not_depend_on_may_change(then: Any, now: Any, says: str) -> None:
    found = told(manifest(job(*then)), job(*now))
    assert found.startswith("compatible\n"), found
    assert says in found
    assert told(accepted(manifest(job(*then)), job(*now)), job(*now)) == "identical"


@pytest.mark.parametrize(
    ("then", "now", "code", "says"), INCOMPATIBLE.values(), ids=list(INCOMPATIBLE)
)
def test_a_refusal_names_what_differs(then: Any, now: Any, code: str, says: str) -> None:
    found = judge(manifest(job(*then)), job(*now), None)
    assert verdict(found) == "incompatible"
    with pytest.raises(StateError) as refused:
        refuse("s", found)
    assert refused.value.code == code
    assert says in refused.value.message
    assert refused.value.hint


@pytest.mark.parametrize(
    ("then", "now"), [c[:2] for c in INCOMPATIBLE.values()], ids=list(INCOMPATIBLE)
)
def test_a_manifest_of_the_first_release_refuses_the_same(then: Any, now: Any) -> None:
    old = manifest(job(*then), version=1, plan=None, written_by=None)
    assert verdict(judge(old, job(*now), job(*then).sources())) == "incompatible"


def test_a_manifest_of_the_first_release_is_accepted_and_completed() -> None:
    old = manifest(job(NAMED), version=1, plan=None, written_by=None)
    assert told(old, job(NAMED), 2).startswith("compatible\nmanifest: then version 1, now version")
    assert told(accepted(old, job(NAMED)), job(NAMED)) == "identical"


def test_a_renamed_table_keeps_where_its_input_began() -> None:
    old = manifest(job(NAMED))
    now = job(NAMED.replace("people", "users"), "", ("TABLE people", "TABLE users"))
    assert [*accepted(old, now).scans.values()] == [*old.scans.values()]
    assert [*accepted(old, now).scans] == ["0-orders", "1-users"]
    matched = old.model_copy(update={"matched_topics": {"1-people": {"p": 3}}})
    assert accepted(matched, now).matched_topics == {"1-users": {"p": 3}}


def test_going_back_to_an_older_state_format_is_refused() -> None:
    newer = Writer(rejoin="9.0.0", spark="4.3.0", state_format=STATE_FORMAT + 1)
    found = judge(manifest(job(NAMED), written_by=newer), job(NAMED), None)
    with pytest.raises(StateError, match=r"(?s)STATE_FORMAT_NEWER .*release 9\.0\.0 wrote it"):
        refuse("s", found)


def test_a_manifest_of_a_later_release_is_not_guessed_at() -> None:
    with pytest.raises(StateError, match="MANIFEST_NEWER"):
        manifest(job(NAMED), version=VERSION + 1)


def test_another_spark_is_said() -> None:
    writer = written_now().model_copy(update={"spark": "4.2.0"})
    found = told(manifest(job(NAMED), written_by=writer), job(NAMED))
    assert found.startswith("compatible\nSpark: then 4.2.0, now ")


def test_a_field_with_its_default_is_not_recorded() -> None:
    operator = job(NAMED).plan.operators[0]
    assert "input faults" not in operator.state
    trusting = job(NAMED, "SET 'rejoin.input-faults' = 'trust';").plan.operators[0]
    assert trusting.state["input faults"] == "trust"
