"""OAUTHBEARER with a real token endpoint: signed tokens, which expire while a job runs."""

import json
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from spark_jobs.access.acls import Need
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child
from tests.harness.protected import USER, create_topics, grant, protected_broker, signed_login
from tests.harness.shop import wait_until
from tests.harness.tokens import TokenEndpoint, token_endpoint
from tests.streaming.test_security import BOTH, Client

SECRET = "cl-Pw-90aa"  # noqa: S105
LIFETIME_S = 20
LEAST = [
    Need("Read", "topic", "orders", ""),
    Need("Write", "topic", "joined", ""),
    Need("Read", "topic", "joined", ""),
    Need("Write", "transactional-id", "tokens-joined-", "", prefixed=True),
    Need("Read", "group", "tokens-joined-", "", prefixed=True),
]
SQL = """
SET 'pipeline.name' = 'tokens';
CREATE TABLE orders (id INT) WITH (KAFKA 'topic' = 'orders', 'connector' = 'kafka',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE joined (id INT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (KAFKA
  'topic' = 'joined', 'connector' = 'upsert-kafka', 'key.format' = 'json',
  'value.format' = 'json');
INSERT INTO joined SELECT id, COUNT(*) FROM orders GROUP BY id;
"""


@dataclass(slots=True)
class Stage:
    folder: Path
    broker: Broker
    endpoint: TokenEndpoint
    trusted: Path

    def properties(self, secret: str = SECRET) -> dict[str, str]:
        file = self.folder / f"secret-{secret}"
        file.write_text(secret + "\n")
        return {
            "bootstrap.servers": self.broker.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            **signed_login(self.endpoint, f"${{file:{file}}}"),
        }

    def command(self, verb: str, secret: str = SECRET) -> list[str]:
        options = {f"properties.{k}": v for k, v in self.properties(secret).items()}
        told = "".join(f"'{name}' = '{value}', " for name, value in options.items())
        job = self.folder / "job.sql"
        job.write_text(SQL.replace("KAFKA", told))
        line = [sys.executable, "-m", "spark_jobs.cli", verb, str(job)]
        return [*line, "--checkpoint", str(self.folder / "checkpoint")]

    def send(self, ids: range) -> None:
        producer = Producer({**self.broker.admin_config()})
        for i in ids:
            producer.produce("orders", json.dumps({"id": i}).encode())
        assert producer.flush(30) == 0

    def results(self) -> dict[int, int]:
        """The newest count of each id."""
        reading = {"group.id": "judge", "enable.auto.commit": False, "enable.partition.eof": True}
        consumer = Consumer({**self.broker.admin_config(), **reading})
        consumer.assign([TopicPartition("joined", 0, OFFSET_BEGINNING)])
        found: dict[int, int] = {}
        while (record := consumer.poll(30.0)) is not None and record.error() is None:
            row = json.loads(record.value() or b"null")
            found[row["id"]] = row["n"]
        consumer.close()
        return found


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    folder = tmp_path_factory.mktemp("tokens")
    with token_endpoint({USER: SECRET}, LIFETIME_S) as endpoint:
        broker, authority = protected_broker(folder / "broker", "SASL_SSL", endpoint.issuer())
        with broker:
            create_topics(broker, "orders", "joined")
            grant(broker, LEAST)
            yield Stage(folder, broker, endpoint, authority.truststore("PEM"))


@BOTH
def test_signed_tokens(stage: Stage, client: Client) -> None:
    assert client(stage.properties(), "orders") == "orders"


@pytest.mark.timeout(600)
def test_a_job_outlives_its_tokens(stage: Stage) -> None:
    stage.send(range(5))
    job = Child([*stage.command("run"), "--no-sidecar"], stage.folder / "run.log")
    try:
        wait_until(lambda: len(stage.results()) == 5, job)
        # by then every token that the job has got so far is worthless, and it has asked for more
        expired = stage.endpoint.issued_at[-1] + LIFETIME_S
        wait_until(lambda: stage.endpoint.issued_at[-1] > expired, job)
        stage.send(range(3, 8))
        wait_until(lambda: len(stage.results()) == 8, job)
    finally:
        job.stop(60.0)
    assert job.exit_code == 0, job.log_tail()
    assert stage.results() == {0: 1, 1: 1, 2: 1, 3: 2, 4: 2, 5: 1, 6: 1, 7: 1}
    written = [path for path in (stage.folder / "checkpoint").rglob("*") if path.is_file()]
    assert not [path for path in written if SECRET.encode() in path.read_bytes()]
    assert SECRET not in job.log_path.read_text()


def test_a_wrong_secret_is_told_at_the_start(stage: Stage) -> None:
    run = [*stage.command("run", "wrong"), "--no-sidecar"]
    ended = subprocess.run(run, capture_output=True, text=True, timeout=200, check=False)
    assert ended.returncode == 3
    assert "KAFKA_LOGIN_FAILED" in ended.stderr, ended.stderr
