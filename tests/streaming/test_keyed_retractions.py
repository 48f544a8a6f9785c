"""A retract sink with a key: of each key, retractions stand before additions in the partition, also
where the results of an epoch do not fit into memory.
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from tests.e2e.topics import read_all
from tests.harness.drivers import Drivers

_SQL = """
CREATE TABLE o (id BIGINT, k BIGINT) WITH ('connector' = 'kafka', 'topic' = '{prefix}-o',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'changelog-json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE r (k BIGINT, v BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp' VIRTUAL) WITH (
  'connector' = 'kafka', 'topic' = '{prefix}-r',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE sink (id BIGINT, k BIGINT, v BIGINT, at TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',
  h MAP<STRING, BYTES> METADATA FROM 'headers') WITH (
  'connector' = 'kafka', 'topic' = '{prefix}-out',
  'properties.bootstrap.servers' = '{servers}', 'key.format' = 'json', 'key.fields' = 'id',
  'value.format' = 'changelog-json');
INSERT INTO sink SELECT o.id, o.k, r.v, r.at,
  CASE WHEN MOD(r.v, 2) = 0 THEN MAP['v', CAST(CAST(r.v AS STRING) AS BYTES)] END
FROM o LEFT JOIN r ON o.k = r.k;
"""
_IDS = range(200)
_MOVES = 4
_MATCHES = 1_500  # by all ids: more results than a task keeps in memory


@pytest.fixture
def job(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Drivers]:
    made = Drivers(spark, broker.bootstrap_servers, tmp_path, _SQL)
    made.create("o", "r", "out")
    yield made
    made.end()


def test_rows_that_move_between_join_keys_are_taken_back_first(job: Drivers) -> None:
    """A reader by key, for which the last record of a key counts, keeps every row."""
    job.driver()
    job.send("o", [{"op": "+I", "data": {"id": i, "k": i}} for i in _IDS])
    job.until_read("o", len(_IDS))
    for move in range(1, _MOVES + 1):
        job.send(
            "o",
            [
                {"op": op, "data": {"id": i, "k": i + 1000 * step}}
                for i in _IDS
                for op, step in (("-U", move - 1), ("+U", move))
            ],
        )
        job.until_read("o", len(_IDS) * (1 + 2 * move))
    by_key: dict[int, int] = {}
    for change in map(json.loads, job.records()):
        row = change["data"]
        if change["op"] in ("+I", "+U"):
            by_key[row["id"]] = row["k"]
        else:
            by_key.pop(row["id"], None)
    assert by_key == {i: i + 1000 * _MOVES for i in _IDS}


def test_results_that_do_not_fit_into_memory_leave_in_order(
    job: Drivers, spark: SparkSession
) -> None:
    """All rows lose their padding and meet all matches in one epoch."""
    jvm: Any = spark._jvm

    def files() -> int:
        counts = json.loads(jvm.org.apache.spark.sql.rejoin.run.JvmCounts.json())
        return int(counts.get("overflow", {}).get("files", 0))

    job.driver()
    job.send("o", [{"op": "+I", "data": {"id": i, "k": 1}} for i in _IDS])
    job.until_read("o", len(_IDS))
    job.end()
    job.send("r", [{"k": 1, "v": v} for v in range(_MATCHES)])
    before, sent = files(), {m.timestamp()[1] for m in read_all(job.servers, [job.topic("r")])}
    job.driver()
    job.until_read("r", _MATCHES)
    padded, rows = len(_IDS), []
    for message in read_all(job.servers, [job.topic("out")]):
        change = json.loads(message.value() or b"")
        value = change["data"]["v"]
        rows.append((change["op"], change["data"]["id"], value))
        is_even = value is not None and value % 2 == 0
        assert message.headers() == ([("v", str(value).encode())] if is_even else None)
        assert value is None or message.timestamp()[1] in sent
    assert {*rows[:padded]} == {("+I", i, None) for i in _IDS}
    assert {*rows[padded : 2 * padded]} == {("-D", i, None) for i in _IDS}
    added = rows[2 * padded :]
    assert len(added) == padded * _MATCHES
    assert {*added} == {("+I", i, v) for i in _IDS for v in range(_MATCHES)}
    assert files() > before + 2  # of the changes of the key, of the results, of the records
