"""`rejoin check` against a real broker: topics, their settings, their newest records."""

import json
import uuid
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from spark_jobs.cli import app
from spark_jobs.embedded.broker import Broker

JOB = """
CREATE TABLE o (id INT, k INT) WITH ('connector' = 'kafka', 'topic' = '{t}-o', 'format' = 'json',
  'properties.bootstrap.servers' = '{b}', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE r (k INT, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '{t}-r', 'key.format' = 'json', 'value.format' = 'json',
  'properties.bootstrap.servers' = '{b}');
CREATE TABLE s (a INT, b INT) WITH ('connector' = 'kafka', 'topic' = '{t}-s',
  'format' = 'changelog-json', 'properties.bootstrap.servers' = '{b}');
INSERT INTO s SELECT o.id, r.v FROM o LEFT JOIN r ON o.k = r.k;
"""


class Topics:
    """Of one test."""

    def __init__(self, broker: Broker, folder: Path) -> None:
        self.servers = broker.bootstrap_servers
        self.mark = f"check-{uuid.uuid4().hex[:8]}"
        self.folder = folder

    def create(self, name: str, partitions: int = 2, **config: str) -> None:
        settings = {key.replace("_", "."): value for key, value in config.items()}
        admin = AdminClient({"bootstrap.servers": self.servers})
        topic = NewTopic(f"{self.mark}-{name}", partitions, 1, config=settings)
        for made in admin.create_topics([topic]).values():
            made.result(30)

    def send(self, name: str, *values: bytes) -> None:
        producer = Producer({"bootstrap.servers": self.servers})
        for value in values:
            producer.produce(f"{self.mark}-{name}", value)
        assert producer.flush(30) == 0

    def check(self) -> tuple[int, list[dict[str, Any]]]:
        job = self.folder / "job.sql"
        job.write_text(JOB.format(t=self.mark, b=self.servers), encoding="utf-8")
        result = CliRunner().invoke(app, ["check", str(job), "--json"])
        return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def topics(broker: Broker, tmp_path: Path) -> Topics:
    return Topics(broker, tmp_path)


def test_topics_and_records_of_a_job(topics: Topics) -> None:
    topics.create("o")
    topics.create("r", cleanup_policy="compact")
    topics.create("s")
    good = [b'{"id": %d, "k": 1}' % n for n in range(7)]
    topics.send("o", *good, b"not json", b'{"id": "x", "k": 1}')
    code, found = topics.check()
    told = "\n".join(f"{f['level']} {f['about']}: {f['text']}" for f in found)
    assert code == 0, told
    assert f"ok table o: topic {topics.mark}-o: 2 partitions, 9 offsets in use" in told
    assert "warning table o: 2 of the 9 newest records cannot be read: " in told
    assert "'rejoin.on-error' stops the job" in told
    assert f"ok sink s: topic {topics.mark}-s: 2 partitions, cleanup.policy delete" in told


def test_a_missing_topic_and_a_sink_that_would_lose_changes(topics: Topics) -> None:
    topics.create("o")
    topics.create("s", cleanup_policy="compact")
    code, found = topics.check()
    errors = {f["about"]: f["text"] for f in found if f["level"] == "error"}
    assert code == 3
    assert f"no topic {topics.mark}-r" in errors["table r"]
    assert "compaction would take changes away" in errors["sink s"]
    assert set(errors) == {"table r", "sink s"}
