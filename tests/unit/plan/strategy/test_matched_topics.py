"""Topics that patterns match: their indexes, and the plan that reads them."""

from dataclasses import replace

import pytest

from spark_jobs.errors import ConfigError
from spark_jobs.plan.check.fingerprint import fingerprint
from spark_jobs.plan.nodes.parts import FIRST_FORWARD
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.plan.planner import plan
from spark_jobs.plan.strategy.matched_topics import numbered_after, with_topics
from spark_jobs.sql.bind.binder import bind

TABLES = """\
CREATE TABLE o (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka',
  'topic-pattern' = 'o-.*', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json',
  'scan.watermark.idle-timeout' = '7 s');
CREATE TABLE p (id INT, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) WITH ('connector' = 'kafka',
  'topic' = 'p;q', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
CREATE TABLE s (id INT) WITH ('connector' = 'kafka', 'topic' = 's',
  'properties.bootstrap.servers' = 'b:1', 'format' = 'json');
INSERT INTO s SELECT o.id FROM o JOIN p ON o.id = p.id AND o.ts BETWEEN p.ts AND p.ts;
"""


@pytest.fixture(scope="module")
def sink() -> KafkaSink:
    (found,) = plan(bind(TABLES, "job.sql"))
    assert isinstance(found.root, KafkaSink)
    return found.root


def test_a_pattern_has_a_place_among_the_topics_of_the_plan(sink: KafkaSink) -> None:
    named = [(t.name, t.index) for scan in scans(sink) for t in scan.topics]
    assert named == [("/o-.*/", 0), ("p", 1), ("q", 2)]


def test_topics_get_indexes_behind_those_of_the_plan_and_keep_them(sink: KafkaSink) -> None:
    first = numbered_after(sink, {}, {"0-o": ["o-b", "o-a"]})
    assert first == {"0-o": {"o-a": 3, "o-b": 4}}
    later = numbered_after(sink, first, {"0-o": ["o-0"]})
    assert later == {"0-o": {"o-a": 3, "o-b": 4, "o-0": 5}}
    assert first == {"0-o": {"o-a": 3, "o-b": 4}}


def test_more_topics_than_indexes(sink: KafkaSink) -> None:
    with pytest.raises(ConfigError, match="TOO_MANY_TOPICS"):
        numbered_after(sink, {}, {"0-o": map(str, range(FIRST_FORWARD))})


def test_operators_follow_the_watermarks_of_all_matched_topics(sink: KafkaSink) -> None:
    read = with_topics(sink, {"0-o": {"o-a": 3, "o-b": 4}})
    assert [t.name for t in scans(read)[0].topics] == ["o-a", "o-b"]
    (join,) = stateful_nodes(read)
    streams = [[(s.topic, s.idle_timeout_ms) for s in side] for side in join.timing.inputs]
    assert streams == [[(3, 7_000), (4, 7_000)], [(1, 0), (2, 0)]]


def test_what_a_pattern_matches_changes_no_fingerprint_but_the_pattern_does(
    sink: KafkaSink,
) -> None:
    (other,) = plan(bind(TABLES.replace("o-.*", "o-[ab]"), "job.sql"))
    assert isinstance(other.root, KafkaSink)
    assert fingerprint(other.root).scans[0].topics == {"/o-[ab]/": 0}
    read = with_topics(sink, {"0-o": {"o-a": 3}})
    assert replace(read, inputs=sink.inputs) == sink
