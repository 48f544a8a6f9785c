"""A whole run over SASL_SSL with a protected registry: least rights suffice, no secret stays."""

import io
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import fastavro
import pytest
from confluent_kafka import Producer

from spark_jobs.access.acls import Need
from spark_jobs.embedded.registry import RegistrySecurity, RegistryServer
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.written_schema import WrittenSchema
from spark_jobs.options.declared import read_options
from spark_jobs.options.formats import RegistryOptions
from tests.harness.certificates import STORE_PASSWORD
from tests.harness.protected import (
    USER_PASSWORD,
    create_topics,
    grant,
    login,
    protected_broker,
    without,
)

pytestmark = pytest.mark.timeout(600)  # three runs on a busy machine

REGISTRY_PASSWORD = "reg-Pw-b8d4"  # noqa: S105
ORDER = {
    "type": "record", "name": "o",
    "fields": [{"name": "id", "type": "int"}, {"name": "cur", "type": "string"}],
}  # fmt: skip
WRITER = Need("Write", "transactional-id", "secret-run-joined-", "", prefixed=True)
SOURCE = Need("Read", "topic", "orders", "")
LEAST = [
    SOURCE,
    WRITER,
    Need("Write", "topic", "joined", ""),
    Need("Read", "topic", "joined", ""),
    Need("Read", "group", "secret-run-joined-", "", prefixed=True),
]
SQL = """
SET 'pipeline.name' = 'secret-run';
CREATE TABLE orders (id INT, cur STRING) WITH (KAFKA 'topic' = 'orders', 'connector' = 'kafka',
  'format' = 'avro-confluent', REGISTRY
  'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset');
CREATE TABLE joined (id INT, n BIGINT, PRIMARY KEY (id) NOT ENFORCED) WITH (KAFKA
  'topic' = 'joined', 'connector' = 'upsert-kafka', 'key.format' = 'json',
  'value.format' = 'avro-confluent', VALUE-REGISTRY 'value.fields-include' = 'ALL');
INSERT INTO joined SELECT id, COUNT(*) FROM orders GROUP BY id;
"""


class Stage:
    """Broker and registry with what a job has to know of them, secrets by reference."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker, self.authority = protected_broker(folder / "broker", "SASL_SSL")
        basic = "Basic c2hvcDpyZWctUHctYjhkNA=="  # shop:reg-Pw-b8d4
        identity = self.broker.security.identity if self.broker.security else None
        security = RegistrySecurity(identity, self.authority.truststore("PEM"), frozenset({basic}))
        self.registry = RegistryServer(folder / "schemas", security=security)

    def secret(self, name: str, text: str) -> str:
        path = self.folder / "secrets" / name
        path.parent.mkdir(exist_ok=True)
        path.write_text(text + "\n")
        return f"${{file:{path}}}"

    def kafka_options(self) -> dict[str, str]:
        properties = {
            "bootstrap.servers": self.broker.bootstrap_servers,
            "security.protocol": "SASL_SSL",
            "ssl.truststore.type": "PKCS12",
            "ssl.truststore.location": str(self.authority.truststore("PKCS12")),
            "ssl.truststore.password": self.secret("stores", STORE_PASSWORD),
            **login("SCRAM-SHA-512", self.secret("kafka", USER_PASSWORD)),
        }
        return {f"properties.{name}": value for name, value in properties.items()}

    def registry_options(self) -> dict[str, str]:
        own = self.authority.keystore(self.authority.sign("shop"), "shop", "JKS")
        return {
            "url": self.registry.url,
            "ssl.truststore.location": str(self.authority.truststore("PEM")),
            "ssl.keystore.location": str(own),
            "ssl.keystore.password": self.secret("stores", STORE_PASSWORD),
            "basic-auth.credentials-source": "USER_INFO",
            "basic-auth.user-info": f"shop:{self.secret('registry', REGISTRY_PASSWORD)}",
        }

    def fill(self) -> None:
        create_topics(self.broker, "orders", "joined")
        grant(self.broker, LEAST)
        schema = json.dumps(ORDER)
        registry = RegistryClient(read_options(RegistryOptions, self.registry_options()))
        schema_id = registry.register("orders-value", WrittenSchema(schema))
        producer = Producer({**self.broker.admin_config()})
        for i in range(20):
            body = io.BytesIO()
            fastavro.schemaless_writer(body, ORDER, {"id": i % 5, "cur": "EUR"})
            producer.produce("orders", b"\x00" + schema_id.to_bytes(4, "big") + body.getvalue())
        assert producer.flush(30) == 0

    def run(self, name: str) -> tuple[int, str]:
        """A job of its own checkpoint; exit code and everything it printed."""
        home = self.folder / "runs" / name
        home.mkdir(parents=True)
        kafka, registry = self.kafka_options(), self.registry_options()
        sql = SQL.replace("VALUE-REGISTRY", _told("value.avro-confluent.", registry))
        sql = sql.replace("REGISTRY", _told("avro-confluent.", registry))
        (home / "job.sql").write_text(sql.replace("KAFKA", _told("", kafka)))
        return self.command(name, "run", "--status-dir", str(home / "status"))

    def command(self, name: str, verb: str, *options: str) -> tuple[int, str]:
        """Of the job of a run; exit code and everything it printed."""
        home = self.folder / "runs" / name
        line = [sys.executable, "-c", "from spark_jobs.cli import main; main()", verb]
        line += [str(home / "job.sql"), "--checkpoint", str(home / "checkpoint"), *options]
        ended = subprocess.run(
            line, capture_output=True, text=True, stdin=subprocess.DEVNULL, timeout=400
        )
        (home / f"{verb}.txt").write_text(ended.stdout + ended.stderr)
        return ended.returncode, ended.stdout + ended.stderr

    def spilled(self) -> list[str]:
        """Files of runs in which a secret stands."""
        secrets = (USER_PASSWORD, STORE_PASSWORD, REGISTRY_PASSWORD, "c2hvcDpyZWctUHctYjhkNA")
        files = [path for path in (self.folder / "runs").rglob("*") if path.is_file()]
        assert any(path.name == "driver.log" for path in files)
        return [
            f"{path}: {secret}"
            for path in files
            for secret in secrets
            if secret.encode() in path.read_bytes()
        ]


def _told(prefix: str, options: dict[str, str]) -> str:
    return "".join(f"'{prefix}{name}' = '{value}', " for name, value in options.items())


@pytest.fixture(scope="module")
def stage(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stage]:
    stage = Stage(tmp_path_factory.mktemp("secret-run"))
    with stage.broker, stage.registry:
        stage.fill()
        yield stage


def test_least_rights_suffice_and_no_secret_stays(stage: Stage) -> None:
    code, output = stage.run("all-rights")
    assert code == 0, output
    status = json.loads((stage.folder / "runs/all-rights/status/status.json").read_text())
    [query] = status["queries"]
    assert query["output_rows_total"] == sum(query["changes"].values()) == 5
    assert query["transactions_committed_total"] > 0
    assert status["registry_calls_total"] > status["registry_failures_total"] == 0
    code, output = stage.command("all-rights", "check", "--json")
    found = {json.loads(line)["code"] for line in output.splitlines()}
    assert code == 0, output
    assert {"RIGHTS_TOPICS", "RIGHTS_WRITERS", "SUBJECT_SAME", "READER_FITS"} <= found
    assert {"SETTINGS_UNKNOWN", "CLOCK_UNKNOWN"} <= found, "what the least rights hide"
    assert stage.spilled() == []


def test_a_right_that_is_missing_while_it_runs_is_named(stage: Stage) -> None:
    with without(stage.broker, WRITER):
        code, output = stage.run("no-transactions")
    assert code == 3
    assert "KAFKA_ACL_MISSING" in output
    assert "Write on every transactional-id 'secret-run-joined-...'" in output
    assert "--operation Write --transactional-id 'secret-run-joined-'" in output
    status = json.loads((stage.folder / "runs/no-transactions/status/status.json").read_text())
    assert status["error"]["code"] == "KAFKA_ACL_MISSING"
    assert stage.spilled() == []


def test_a_right_that_is_missing_at_the_start_needs_no_spark(stage: Stage) -> None:
    with without(stage.broker, SOURCE):
        code, output = stage.run("no-source")
    assert code == 3
    assert "Read on topic 'orders' (source orders)" in output
    log = stage.folder / "runs" / "no-source" / "status" / "driver.log"
    assert "org.apache.spark" not in log.read_text(encoding="utf-8")
