"""`rejoin run --json` through a real broker: how far the build side is loaded, then rows."""

import json
import subprocess
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.embedded.broker import Broker

RATES = 24_000
STOP_S = 60.0
JOB = """SET 'rejoin.parallelism' = '2';
SET 'rejoin.max-offsets-per-trigger' = '2000';
CREATE TABLE orders (id INT, currency INT, at AS PROCTIME()) WITH ('topic' = '{id}-orders', {kafka},
  'connector' = 'kafka', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE rates (currency INT, rate INT, PRIMARY KEY (currency) NOT ENFORCED) WITH (
  'topic' = '{id}-rates', {kafka}, 'connector' = 'upsert-kafka', 'key.format' = 'json',
  'value.format' = 'json');
CREATE TABLE paid (id INT, rate INT) WITH ('topic' = '{id}-paid', {kafka}, 'connector' = 'kafka',
  'format' = 'json');
INSERT INTO paid SELECT o.id, r.rate
FROM orders AS o JOIN rates FOR SYSTEM_TIME AS OF o.at AS r ON o.currency = r.currency;
"""


@pytest.fixture
def job(broker: Broker, tmp_path: Path) -> Path:
    """One order, and many rates that it waits for."""
    name, servers = uuid.uuid4().hex[:8], broker.bootstrap_servers
    topics = [NewTopic(f"{name}-{t}", 1, 1) for t in ("orders", "rates", "paid")]
    admin = AdminClient({"bootstrap.servers": servers})
    for made in admin.create_topics(topics).values():
        made.result(30)
    producer = Producer(
        {
            "enable.idempotence": True,
            "bootstrap.servers": servers,
            "queue.buffering.max.messages": 2 * RATES,
        }
    )
    for n in range(RATES):
        value = json.dumps({"currency": n, "rate": n})
        producer.produce(f"{name}-rates", value, json.dumps({"currency": n}))
    producer.produce(f"{name}-orders", json.dumps({"id": 1, "currency": 7}))
    assert producer.flush(30) == 0
    file = tmp_path / "job.sql"
    file.write_text(JOB.format(id=name, kafka=f"'properties.bootstrap.servers' = '{servers}'"))
    return file


def events(process: "subprocess.Popen[str]") -> Iterator[dict[str, object]]:
    assert process.stdout is not None
    for line in process.stdout:
        yield json.loads(line)


def test_loading_is_told_until_the_first_row_may_leave(job: Path) -> None:
    command = [sys.executable, "-m", "spark_jobs.cli", "run", str(job), "--json", "--no-sidecar"]
    command += ["--checkpoint", str(job.parent / "ck"), "--status-dir", str(job.parent / "status")]
    shares: list[float] = []
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            for event in events(process):
                if event["event"] != "progress":
                    continue
                [query] = event["queries"]  # type: ignore[misc]
                shares += [table["share"] for table in query["loading"]]
                if query["rows_out"] and not query["loading"]:
                    break
        finally:
            process.terminate()
        rest = list(events(process))
        assert process.wait(STOP_S) == 0
    assert len(set(shares)) >= 2
    assert shares == sorted(shares)
    assert 0 < shares[-1] < 1
    assert rest[-1]["state"] == "stopped"
    assert query["records_per_second"] > 0
