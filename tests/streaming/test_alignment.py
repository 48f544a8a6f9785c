"""Watermark alignment through a broker: the fast table waits while the slow one has more."""

import json
import time
import uuid
from datetime import UTC, datetime, timedelta
from pathlib import Path

from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from spark_jobs.driver.launch import open_query
from spark_jobs.driver.queries import shape, sinks_of
from spark_jobs.driver.report import query_status
from spark_jobs.embedded.broker import Broker
from spark_jobs.kernel.calls import Kernel
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.sql.bind.binder import bind
from spark_jobs.status import QueryStatus

ROWS = 100
PER_EPOCH = 20
START = datetime(2024, 1, 1, tzinfo=UTC)
STEP = {"fast": timedelta(minutes=1), "slow": timedelta(seconds=1)}
END_S = 240.0

JOB = """
CREATE TABLE {name} (k INT, at TIMESTAMP(3), WATERMARK FOR at AS at) WITH ('connector' = 'kafka',
  'topic' = '{topic}', 'properties.bootstrap.servers' = '{servers}', 'format' = 'json',
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset',
  'scan.watermark.alignment.group' = '{group}', 'scan.watermark.alignment.max-drift' = '5 min');
"""
QUERY = """
CREATE TABLE joined (k INT) WITH ('connector' = 'kafka', 'topic' = '{sink}',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'json');
INSERT INTO joined SELECT fast.k FROM fast JOIN slow ON fast.k = slow.k
  AND fast.at BETWEEN slow.at AND slow.at + INTERVAL '1' SECOND;
"""


def prepared(broker: Broker) -> KafkaSink:
    """Two topics of as many rows, of which one covers sixty times as much event time."""
    mark = uuid.uuid4().hex[:8]
    topics = {name: f"{name}-{mark}" for name in (*STEP, "sink")}
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    for made in admin.create_topics([NewTopic(t, 1) for t in topics.values()]).values():
        made.result(60)
    producer = Producer({"enable.idempotence": True, "bootstrap.servers": broker.bootstrap_servers})
    for name, step in STEP.items():
        for i in range(ROWS):
            at = (START + i * step).strftime("%Y-%m-%d %H:%M:%S.000")
            producer.produce(topics[name], json.dumps({"k": i, "at": at}))
    assert producer.flush(60) == 0
    servers = broker.bootstrap_servers
    tables = [JOB.format(name=n, topic=topics[n], servers=servers, group=mark) for n in STEP]
    text = "".join(tables) + QUERY.format(sink=topics["sink"], servers=servers)
    [sink] = sinks_of(plan(bind(text, "alignment"))).values()
    return sink


def watermark(status: QueryStatus, table: str) -> timedelta:
    [source] = [s for s in status.sources if s.table == table]
    at = source.partitions[0].watermark_ms
    return timedelta(0) if at is None else timedelta(milliseconds=at - START.timestamp() * 1000)


def test_the_fast_table_waits(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    sink = prepared(broker)
    given = {
        "rejoin.parallelism": "1",
        "rejoin.key-groups": "4",
        "rejoin.checkpoint": str(tmp_path),
        "rejoin.max-offsets-per-trigger": str(PER_EPOCH),
    }
    settings = job_settings(given, "alignment", Overrides(), read_environment())
    life = open_query(spark, "alignment", sink, settings).life()
    seen: list[tuple[timedelta, timedelta]] = []
    deadline = time.monotonic() + END_S
    while life.phase != "finished":
        assert time.monotonic() < deadline, f"still runs; {seen[-3:]}"
        life.poll()
        seen += _watermarks(spark, sink, life.query)
        time.sleep(0.05)
    slow_end = (ROWS - PER_EPOCH) * STEP["slow"]
    # what an epoch reads is decided before its watermarks are known: one epoch, and no more
    ahead = [(fast, slow) for fast, slow in seen if slow < slow_end]
    assert ahead
    assert all(fast <= PER_EPOCH * STEP["fast"] for fast, _ in ahead), ahead
    assert seen[-1] == ((ROWS - 1) * STEP["fast"], (ROWS - 1) * STEP["slow"])


def _watermarks(
    spark: SparkSession, sink: KafkaSink, query: object
) -> list[tuple[timedelta, timedelta]]:
    progress = query._jsq.lastProgress() if query is not None else None  # type: ignore[attr-defined]
    if progress is None:
        return []
    counted = Kernel.of(spark).counters(spark)
    status = query_status(shape(sink, "alignment"), json.loads(progress.json()), counted)
    if len(status.sources) < len(STEP):
        return []
    return [(watermark(status, "fast"), watermark(status, "slow"))]
