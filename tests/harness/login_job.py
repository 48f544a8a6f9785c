"""`rejoin run` as a protected broker's user: the rights it needs, its records and results."""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import OFFSET_BEGINNING, Consumer, Producer, TopicPartition

from spark_jobs.access.acls import Need
from spark_jobs.embedded.broker import Broker
from tests.harness.protected import create_topics, grant

_LEAST = [
    Need("Read", "topic", "orders", ""),
    Need("Write", "topic", "joined", ""),
    Need("Read", "topic", "joined", ""),
    Need("Write", "transactional-id", "login-joined-", "", prefixed=True),
    Need("Read", "group", "login-joined-", "", prefixed=True),
]
_SQL = """
SET 'pipeline.name' = 'login';
CREATE TABLE orders (id INT) WITH (KAFKA 'topic' = 'orders', 'connector' = 'kafka',
  'format' = 'json', 'scan.startup.mode' = 'earliest-offset');
CREATE TABLE joined (id INT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (KAFKA
  'topic' = 'joined', 'connector' = 'upsert-kafka', 'key.format' = 'json',
  'value.format' = 'json');
INSERT INTO joined SELECT id, COUNT(*) FROM orders GROUP BY id;
"""


@dataclass(slots=True)
class LoginJob:
    """The broker runs. `environment` is added to that of the job's process."""

    folder: Path
    broker: Broker
    trusted: Path
    environment: Mapping[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        create_topics(self.broker, "orders", "joined")
        grant(self.broker, _LEAST)

    def properties(self, login: Mapping[str, str]) -> dict[str, str]:
        return {
            "bootstrap.servers": self.broker.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(self.trusted),
            **login,
        }

    def run(self, login: Mapping[str, str]) -> list[str]:
        """The command."""
        options = {f"properties.{k}": v for k, v in self.properties(login).items()}
        told = "".join(f"'{name}' = '{value}', " for name, value in options.items())
        job = self.folder / "job.sql"
        job.write_text(_SQL.replace("KAFKA", told))
        environment = [f"{name}={value}" for name, value in self.environment.items()]
        line = ["env", *environment, sys.executable, "-m", "spark_jobs.cli", "run", str(job)]
        return [*line, "--checkpoint", str(self.folder / "checkpoint"), "--no-sidecar"]

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
