"""W3C trace context goes from a record to the results of its row by SQL alone (docs/sql.md)."""

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from tests.e2e.topics import read_all
from tests.harness.drivers import Drivers

_SQL = """
CREATE TABLE o (id BIGINT, k BIGINT, headers MAP<STRING, BYTES> METADATA VIRTUAL,
  parent AS headers['traceparent'], state AS headers['tracestate'],
  PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '{prefix}-o', 'properties.bootstrap.servers' = '{servers}',
  'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE r (k BIGINT, v BIGINT, PRIMARY KEY (k) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{prefix}-r',
  'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE sink (id BIGINT, v BIGINT, headers MAP<STRING, BYTES> METADATA) WITH (
  'connector' = 'kafka', 'topic' = '{prefix}-out',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'changelog-json');
"""
_LEFT_JOIN = """
INSERT INTO sink SELECT o.id, r.v, MAP['traceparent', o.parent, 'tracestate', o.state]
FROM o LEFT JOIN r ON o.k = r.k;
"""
_COUNT = """
INSERT INTO sink SELECT k, COUNT(*),
  MAP['traceparent', LAST_VALUE(parent), 'tracestate', LAST_VALUE(state)] FROM o GROUP BY k;
"""
_FIRST = "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"
_SECOND = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"
_OF_RATE = "00-11111111111111111111111111111111-2222222222222222-01"


class Traced:
    """The drivers of a query, the records they get, and the trace of each result."""

    def __init__(self, spark: SparkSession, broker: Broker, folder: Path) -> None:
        self._given = (spark, broker.bootstrap_servers, folder)
        self.job = Drivers(*self._given, _SQL)

    def start(self, query: str) -> None:
        self.job = Drivers(*self._given, _SQL + query)
        self.job.create("o", "r", "out")
        self.job.driver()

    def send(self, name: str, key: int, value: int | None, trace: str | None, end: int) -> None:
        """Return once an epoch that has it is committed; `end` is the offset behind it."""
        columns = {"o": ("id", "k"), "r": ("k", "v")}[name]
        row = None if value is None else json.dumps(dict(zip(columns, (key, value), strict=True)))
        headers = [("traceparent", trace), ("tracestate", "a=1"), ("other", b"x")] if trace else []
        producer = Producer({"bootstrap.servers": self.job.servers})
        producer.produce(
            self.job.topic(name), row, json.dumps({columns[0]: key}), 0, headers=headers
        )
        assert producer.flush(30) == 0
        self.job.until_read(name, end)

    def results(self) -> list[tuple[object, ...]]:
        """Each change, as the kind, the row and the trace."""
        found: list[tuple[object, ...]] = []
        for message in read_all(self.job.servers, [self.job.topic("out")]):
            change = json.loads(message.value() or b"")
            headers = {name: value.decode() for name, value in message.headers() or []}
            assert headers.keys() in ({"traceparent", "tracestate"}, set())
            row = change["data"]
            found.append((change["op"], row["id"], row["v"], headers.get("traceparent")))
        return found


@pytest.fixture
def traced(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Traced]:
    made = Traced(spark, broker, tmp_path)
    yield made
    made.job.end()


def test_a_result_has_the_trace_of_the_row_that_the_query_names(traced: Traced) -> None:
    """Paddings, corrections and retractions included; the other side's trace starts nothing."""
    traced.start(_LEFT_JOIN)
    traced.send("o", 1, 7, _FIRST, 1)
    traced.send("o", 2, 7, None, 2)
    traced.send("r", 7, 70, _OF_RATE, 1)
    traced.job.end()
    traced.job.driver()
    traced.send("o", 1, 7, _SECOND, 3)
    traced.send("o", 1, None, _OF_RATE, 4)
    found = traced.results()
    assert found[:2] == [("+I", 1, None, _FIRST), ("+I", 2, None, None)]
    assert sorted(found[2:4]) == [("-D", 1, None, _FIRST), ("-D", 2, None, None)]
    assert sorted(found[4:6]) == [("+I", 1, 70, _FIRST), ("+I", 2, 70, None)]
    # the same row in another trace is a change; a deletion takes back what was there
    assert found[6:8] == [("-D", 1, 70, _FIRST), ("+I", 1, 70, _SECOND)]
    assert found[8:] == [("-D", 1, 70, _SECOND)]


def test_an_aggregate_has_the_trace_of_its_last_row(traced: Traced) -> None:
    traced.start(_COUNT)
    traced.send("o", 1, 7, _FIRST, 1)
    traced.send("o", 2, 7, _SECOND, 2)
    assert traced.results() == [
        ("+I", 7, 1, _FIRST),
        ("-U", 7, 1, _FIRST),
        ("+U", 7, 2, _SECOND),
    ]
