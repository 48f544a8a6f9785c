"""`rejoin check` against a real broker: topics, their settings, their newest records."""

import json
import re
import time
import uuid
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from spark_jobs.cli import app
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer

JOB = """
CREATE TABLE o (id INT, k INT) WITH ('connector' = 'kafka', 'topic' = '{t}-o', 'format' = 'json',
  'properties.bootstrap.servers' = '{b}', 'rejoin.dead-letter.topic' = '{t}-letters');
CREATE TABLE r (k INT, v INT, PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = '{t}-r', 'key.format' = 'json', 'value.format' = 'avro-confluent',
  'value.avro-confluent.url' = '{r}', 'properties.bootstrap.servers' = '{b}');
CREATE TABLE s (a INT, b INT) WITH ('connector' = 'kafka', 'topic' = '{t}-s',
  'format' = 'changelog-json', 'properties.bootstrap.servers' = '{b}');
INSERT INTO s SELECT o.id, r.v FROM o LEFT JOIN r ON o.k = r.k;
"""


class Topics:
    """Of one test."""

    def __init__(self, broker: Broker, registry: RegistryServer, folder: Path) -> None:
        self.registry = registry.url
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
        """A second apart, the last one from the future."""
        producer = Producer({"enable.idempotence": True, "bootstrap.servers": self.servers})
        begin_ms = int(time.time() * 1000) + 60_000 - len(values) * 1000
        for i, value in enumerate(values):
            producer.produce(f"{self.mark}-{name}", value, timestamp=begin_ms + i * 1000)
        assert producer.flush(30) == 0

    def check(self) -> tuple[int, list[dict[str, Any]]]:
        job = self.folder / "job.sql"
        job.write_text(JOB.format(t=self.mark, b=self.servers, r=self.registry), encoding="utf-8")
        result = CliRunner().invoke(app, ["check", str(job), "--json"])
        return result.exit_code, [json.loads(line) for line in result.stdout.splitlines()]


@pytest.fixture
def topics(broker: Broker, registry: RegistryServer, tmp_path: Path) -> Topics:
    return Topics(broker, registry, tmp_path)


def test_topics_and_records_of_a_job(topics: Topics) -> None:
    topics.create("o")
    topics.create("r", cleanup_policy="compact")
    topics.create("s")
    topics.create("letters", partitions=1)
    fields = [{"name": "v", "type": ["null", "int"], "default": None}]
    schema = {"type": "record", "name": "r", "fields": fields}
    subject = f"{topics.registry}/subjects/{topics.mark}-r-value/versions"
    assert httpx.post(subject, json={"schema": json.dumps(schema)}).is_success
    good = [b'{"id": %d, "k": 1}' % n for n in range(7)]
    topics.send("o", *good, b"not json", b'{"id": "x", "k": 1}')
    code, found = topics.check()
    told = "\n".join(f"{f['level']} {f['code']} {f['about']}: {f['text']}" for f in found)
    assert code == 0, told
    assert f"ok TOPIC_FOUND table o: topic {topics.mark}-o: 2 partitions, 9 offsets in use" in told
    assert "warning SAMPLE_REJECTED table o: 2 of the 9 newest records cannot be read: " in told
    assert "'rejoin.on-error' is 'dead-letter'" in told
    found_codes = {f["code"] for f in found}
    assert {"READER_FITS", "REGISTRY_ANSWERS", "RIGHTS_TOPICS", "RIGHTS_WRITERS"} <= found_codes
    assert {"LETTERS_PARTITIONS", "STATE_UNBOUNDED", "STATE_UNKNOWN"} <= found_codes
    assert re.search(
        r"TOPIC_PACE table o: .* 9 offsets in 0\.1 min up to then: 3600 records/h", told
    )
    assert re.search(r"STATE_UNBOUNDED .* 3600 records/h x 0\.78 new rows each x \(row 16 \+", told)
    assert "CLOCK_SKEW table o: " in told
    assert re.search(r"CLOCK_AGREES clock of .*: 0\.\d\d s .* \(the controller's own clock\)", told)
    assert (
        f"ok TOPIC_FOUND sink s: topic {topics.mark}-s: 2 partitions, cleanup.policy delete" in told
    )


def test_a_missing_topic_and_a_sink_that_would_lose_changes(topics: Topics) -> None:
    topics.create("o")
    topics.create("s", cleanup_policy="compact")
    code, found = topics.check()
    errors = {f["about"]: f for f in found if f["level"] == "error"}
    assert code == 3
    table, sink, letters = (errors.pop(about) for about in ("table r", "sink s", "query s"))
    assert table["code"] == letters["code"] == "TOPIC_MISSING"
    assert f"no topic {topics.mark}-r" in table["text"]
    assert f"--create --topic {topics.mark}-letters --partitions 2" in letters["hint"]
    assert sink["code"] == "SINK_COMPACTED"
    assert errors == {}
    assert "RIGHTS_UNKNOWN" in {f["code"] for f in found}
