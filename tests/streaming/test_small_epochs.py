"""An epoch of few records: how many tasks it has, that they read all, and what they are told."""

import json
import time
import uuid
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.driver.launch import open_query
from spark_jobs.driver.queries import sinks_of
from spark_jobs.embedded.broker import Broker
from spark_jobs.operators import kafka_scan
from spark_jobs.options.settings import declared_settings
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.scenario.records import Record
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.sql.bind.binder import bind
from tests.harness.bounded import create_topics, produce, read_committed

PARTITIONS = 3
ROWS = 12
END_S = 240.0

TABLE = """
CREATE TABLE {name} (k INT) WITH ('connector' = 'kafka', 'topic' = '{name}{mark}',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'json');
"""
READ = "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset', "
JOIN = "INSERT INTO result SELECT a.k FROM a JOIN b ON a.k = b.k;"
COPY = "INSERT INTO result SELECT k FROM a;"


@pytest.mark.parametrize(
    ("query", "records_per_task", "tasks"),
    [
        (JOIN, 5_000, 2),  # one for each table
        (JOIN, 6, 4),  # 12 records are worth two
        (JOIN, 1, 2 * PARTITIONS),  # more than there are partitions
        (COPY, 5_000, PARTITIONS),  # the writers of its results are known by their numbers
    ],
)
def test_tasks_are_as_many_as_the_records_are_worth(
    broker: Broker,
    spark: SparkSession,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    query: str,
    records_per_task: int,
    tasks: int,
) -> None:
    monkeypatch.setattr(kafka_scan, "_RECORDS_PER_TASK", records_per_task)
    mark = uuid.uuid4().hex[:8]
    sink = prepared(broker, mark, query)
    given = {"rejoin.parallelism": "1", "rejoin.checkpoint": str(tmp_path)}
    settings = job_settings(declared_settings(given), "small", Overrides(), read_environment())
    life = open_query(spark, f"small{mark}", sink, settings).life()
    deadline = time.monotonic() + END_S
    while life.phase != "finished":
        assert time.monotonic() < deadline
        life.poll()
        time.sleep(0.05)
    assert life.query is not None
    assert tasks in first_stages(spark, life.query.runId)
    read = read_committed(broker.bootstrap_servers, f"result{mark}", PARTITIONS)
    assert sorted(json.loads(r.value or b"")["k"] for r in read) == list(range(ROWS))


def test_the_origins_of_settings_are_not_written_for_tasks(spark: SparkSession) -> None:
    settings = spark._jsparkSession.sessionState().newHadoopConf()
    assert settings.get("fs.defaultFS") == "file:///"  # Hadoop's own default
    assert list(settings.getPropertySources("fs.defaultFS") or []) == []


def first_stages(spark: SparkSession, run_id: str) -> list[int]:
    """The number of tasks of the first stage of each job that a query has run."""
    tracker = spark.sparkContext.statusTracker()
    jobs = [tracker.getJobInfo(job) for job in tracker.getJobIdsForGroup(run_id)]
    stages = [tracker.getStageInfo(min(job.stageIds)) for job in jobs if job is not None]
    return [stage.numTasks for stage in stages if stage is not None]


def prepared(broker: Broker, mark: str, query: str) -> KafkaSink:
    servers = broker.bootstrap_servers
    create_topics(servers, [f"{name}{mark}" for name in ("a", "b", "result")], PARTITIONS)
    records = [Record(None, json.dumps({"k": k}).encode(), k % PARTITIONS) for k in range(ROWS)]
    sent = [(f"{name}{mark}", record) for name in "ab" for record in records]
    produce(servers, sent, keeps_partitions=True)
    tables = [TABLE.format(name=n, mark=mark, servers=servers) for n in ("a", "b", "result")]
    bounded = [text.replace("'format'", READ + "'format'") for text in tables[:2]]
    [sink] = sinks_of(plan(bind("".join([*bounded, tables[2], query]), "small"))).values()
    return sink
