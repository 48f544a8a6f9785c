"""Kafka Connect, standalone, with Debezium's PostgreSQL connector as its only one."""

import time
from pathlib import Path

from spark_jobs.embedded.process import LOOPBACK, Child, free_ports
from spark_jobs.kernel.build import java
from tests.e2e.artifacts import CONNECT_JARS, PLUGINS
from tests.e2e.postgres import DATABASE, USER, Postgres

PREFIX = "e2e"
TABLES = ("customers", "products", "orders")
_HEAP = "-Xmx512m"
_START_TIMEOUT_S = 180.0
_STOP_GRACE_S = 60.0
_STREAMS = "SELECT count(*) FROM pg_replication_slots WHERE active"

_JSON = {
    "converter": "org.apache.kafka.connect.json.JsonConverter",
    "converter.schemas.enable": "false",
    # else a NULL in a column with a default arrives as that default
    "converter.replace.null.with.default": "false",
}


def topic_of(table: str) -> str:
    return f"{PREFIX}.public.{table}"


def json_converter() -> dict[str, str]:
    """Events as JSON without a schema; decimals as text, which needs no schema to be read."""
    return _for_keys_and_values(_JSON) | {"decimal.handling.mode": "string"}


def avro_converter(own_url: str) -> dict[str, str]:
    """Events as Confluent frames them, with the ids that Apicurio's Confluent API knows."""
    apicurio = "converter.apicurio.registry."
    return _for_keys_and_values(
        {
            "converter": "io.apicurio.registry.utils.converter.AvroConverter",
            f"{apicurio}url": own_url,
            f"{apicurio}auto-register": "true",
            f"{apicurio}find-latest": "false",
            f"{apicurio}as-confluent": "true",
            f"{apicurio}use-id": "contentId",
            f"{apicurio}headers.enabled": "false",
        }
    )


def capture(converter: dict[str, str]) -> dict[str, str]:
    """What the connector of a run captures, and how it writes it."""
    return {
        "connector.class": "io.debezium.connector.postgresql.PostgresConnector",
        "tasks.max": "1",
        "topic.prefix": PREFIX,
        "plugin.name": "pgoutput",
        "publication.autocreate.mode": "filtered",
        "table.include.list": ",".join(f"public.{table}" for table in TABLES),
        "snapshot.mode": "initial",
        "provide.transaction.metadata": "true",
        "topic.creation.default.replication.factor": "1",
        "topic.creation.default.partitions": "1",
        **converter,
    }


def _for_keys_and_values(settings: dict[str, str]) -> dict[str, str]:
    return {f"{side}.{name}": v for side in ("key", "value") for name, v in settings.items()}


class Connect:
    """One worker; killed and started again it goes on from its offsets file, and repeats some.

    `settings` of the connector come before those that tell it where the database is.
    """

    def __init__(
        self, folder: Path, servers: str, database: Postgres, settings: dict[str, str]
    ) -> None:
        self.folder = folder
        self._servers = servers
        self._database = database
        self._settings = settings
        (self._port,) = free_ports(1)
        self._child: Child | None = None
        self._starts = 0

    def launch(self) -> None:
        """Begin to start it."""
        self.folder.mkdir(exist_ok=True)
        self._starts += 1
        worker = self._write("worker", self._worker())
        connector = self._write("connector", self._connector())
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        command = [java(), _HEAP, "-XX:+UseSerialGC", logging]
        command += ["-cp", f"{CONNECT_JARS}/*", "org.apache.kafka.connect.cli.ConnectStandalone"]
        log = self.folder / f"connect{self._starts}.log"
        self._child = Child([*command, str(worker), str(connector)], log)

    def wait(self) -> None:
        """Return when it streams: RUNNING comes earlier, and what is written then is no event."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        with self._database.connect() as connection:
            connection.autocommit = True
            while connection.execute(_STREAMS).fetchone() != (1,):
                self.check_alive()
                if time.monotonic() > deadline:
                    raise RuntimeError(f"Connect does not stream:\n{self._log_tail()}")
                time.sleep(0.2)

    def kill(self) -> None:
        """As a crash would."""
        if self._child is not None:
            self._child.kill()
            self._child = None

    def stop(self) -> None:
        """To its end, with everything sent and its offsets kept."""
        if self._child is not None:
            self._child.stop(_STOP_GRACE_S)
            self._child = None

    def check_alive(self) -> None:
        if self._child is not None and self._child.exit_code is not None:
            raise RuntimeError(f"Connect has ended:\n{self._log_tail()}")

    def _log_tail(self) -> str:
        return "" if self._child is None else self._child.log_tail(40)

    def _write(self, name: str, settings: dict[str, str]) -> Path:
        path = self.folder / f"{name}.properties"
        path.write_text("".join(f"{k}={v}\n" for k, v in settings.items()), encoding="utf-8")
        return path

    def _worker(self) -> dict[str, str]:
        return {
            "bootstrap.servers": self._servers,
            "listeners": f"http://{LOOPBACK}:{self._port}",
            "plugin.path": str(PLUGINS),
            "plugin.discovery": "only_scan",  # the Avro converter has no service manifest
            "key.converter": _JSON["converter"],
            "value.converter": _JSON["converter"],
            "offset.storage.file.filename": str(self.folder / "offsets"),
            "offset.flush.interval.ms": "2000",
        }

    def _connector(self) -> dict[str, str]:
        return {
            **self._settings,
            "name": self._settings["topic.prefix"],
            "database.hostname": LOOPBACK,
            "database.port": str(self._database.port),
            "database.user": USER,
            "database.password": USER,  # every local connection is trusted
            "database.dbname": DATABASE,
        }
