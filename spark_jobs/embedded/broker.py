"""A Kafka broker for laptops, the demo and tests: one KRaft node on the loopback interface.

`make setup` downloads its jars; they are not on Spark's class path.
"""

import base64
import contextlib
import re
import time
import uuid
from collections.abc import Sequence
from pathlib import Path
from typing import Self

import typer
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.embedded.broker_security import BrokerSecurity
from spark_jobs.embedded.process import (
    LOOPBACK,
    Child,
    FolderLock,
    free_ports,
    port_answers,
    port_is_free,
    stop_signals,
)
from spark_jobs.errors import ConfigError, KafkaError
from spark_jobs.kernel.build import java
from spark_jobs.terminal import write_json

BROKER_JARS = Path(__file__).resolve().parents[2] / "build" / "jars" / "broker"
START_TIMEOUT_S = 60.0
STOP_GRACE_S = 10.0
_START_ATTEMPTS = 3

# There is one node, so nothing is replicated. Retention is unlimited: tests and the demo write
# records with timestamps of 2020, which the default of seven days would delete.
_SETTINGS = """\
process.roles=broker,controller
node.id=1
controller.quorum.voters=1@{host}:{controller_port}
listeners=CLIENT://{host}:{port},CONTROLLER://{host}:{controller_port}
advertised.listeners=CLIENT://{host}:{advertised_port}
listener.security.protocol.map=CONTROLLER:PLAINTEXT,CLIENT:{protocol}
controller.listener.names=CONTROLLER
inter.broker.listener.name=CLIENT
log.dirs={log_dir}
log.retention.ms=-1
log.message.timestamp.after.max.ms=9223372036854775807
log.cleaner.dedupe.buffer.size=16777216
auto.create.topics.enable=false
num.network.threads=2
num.io.threads=4
offsets.topic.replication.factor=1
offsets.topic.num.partitions=4
transaction.state.log.replication.factor=1
transaction.state.log.min.isr=1
transaction.state.log.num.partitions=4
share.coordinator.state.topic.replication.factor=1
share.coordinator.state.topic.min.isr=1
share.coordinator.state.topic.num.partitions=1
group.initial.rebalance.delay.ms=0
"""


class Broker:
    """A broker with its data in `data_dir`; topics and offsets survive restarts.

    Without `port`, the first start chooses a free one and later starts of this object keep it.
    Without `security`, every local user may do everything. `advertised_port` is the port that
    clients are sent to, if a proxy stands between. `young` is how much of the heap new objects
    get; without it the JVM begins with little, and collects them often.
    """

    def __init__(
        self,
        data_dir: Path | str,
        port: int | None = None,
        heap: str = "512m",
        young: str | None = None,
        security: BrokerSecurity | None = None,
        advertised_port: int | None = None,
    ) -> None:
        self.data_dir = Path(data_dir).resolve()
        self.heap = heap
        self.young = young
        self.security = security
        self._asked_port = port
        self._advertised_port = advertised_port
        self._port = port
        self._child: Child | None = None
        self._lock = FolderLock(self.data_dir)

    @property
    def port(self) -> int:
        if self._port is None:
            raise KafkaError("BROKER_NOT_STARTED", "the embedded broker has not been started")
        return self._port

    @property
    def bootstrap_servers(self) -> str:
        return f"{LOOPBACK}:{self.port}"

    def admin_config(self) -> dict[str, str]:
        """librdkafka's configuration for an administrator."""
        protected = self.security.client_config() if self.security else {}
        return {"bootstrap.servers": self.bootstrap_servers, **protected}

    @property
    def pid(self) -> int | None:
        """The process id of the running broker."""
        return self._child.pid if self._child is not None else None

    @property
    def log_path(self) -> Path:
        return self.data_dir / "broker.log"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Return once the broker answers metadata requests; raises KafkaError if it does not."""
        if self._child is not None:
            return
        _check_jars()
        self.data_dir.mkdir(parents=True, exist_ok=True)
        if not self._lock.acquire():
            raise KafkaError(
                "BROKER_DATA_IN_USE",
                f"another broker uses {self.data_dir}",
                hint="stop it, or choose another data folder",
            )
        try:
            self._start_on_free_ports()
        except BaseException:
            self.stop()
            raise

    def stop(self, grace_s: float = STOP_GRACE_S) -> None:
        """Graceful stop; kills the broker after `grace_s`. Does nothing if it is not running."""
        if self._child is not None:
            self._child.stop(grace_s)
            self._child = None
        self._lock.release()

    def kill(self) -> None:
        """Kill the broker, which has the effect of a crash."""
        if self._child is not None:
            self._child.kill()
            self._child = None
        self._lock.release()

    def check_alive(self) -> None:
        """Raises KafkaError, with the end of the broker's log, if the broker has died."""
        if self._child is not None and self._child.exit_code is not None:
            raise self._died(self._child)

    def _start_on_free_ports(self) -> None:
        for attempt in range(1, _START_ATTEMPTS + 1):
            self._choose_ports()
            self._format_once()
            child = self._spawn("kafka.Kafka", [str(self._settings_path)], self.log_path)
            self._child = child
            try:
                self._wait_until_ready(child)
                return
            except KafkaError:
                lost_port = "Address already in use" in child.log_tail(200)
                # another process may take the free port before the broker binds it
                if self._asked_port is not None or not lost_port or attempt == _START_ATTEMPTS:
                    raise
                child.stop(0.0)
                self._port = None

    @property
    def _settings_path(self) -> Path:
        return self.data_dir / "server.properties"

    def _choose_ports(self) -> None:
        chosen, controller_port = free_ports(2)
        if self._port is None:
            self._port = chosen
        elif not port_is_free(self._port):
            raise KafkaError(
                "BROKER_PORT_IN_USE",
                f"port {self._port} on {LOOPBACK} is in use",
                hint="stop the process that listens there, or choose another port",
            )
        settings = _SETTINGS.format(
            host=LOOPBACK,
            port=self._port,
            advertised_port=self._advertised_port or self._port,
            controller_port=controller_port,
            log_dir=self.data_dir / "log",
            protocol=self.security.protocol if self.security else "PLAINTEXT",
        )
        if self.security is not None:
            settings += self.security.settings()
        self._settings_path.touch(mode=0o600)  # it may contain passwords
        self._settings_path.write_text(settings, encoding="utf-8")

    def _format_once(self) -> None:
        formatted = self.data_dir / "formatted"
        if formatted.exists():
            return
        cluster = base64.urlsafe_b64encode(uuid.uuid4().bytes).decode().rstrip("=")
        # one argument, because the id may begin with a dash
        arguments = ["format", "--ignore-formatted", f"--cluster-id={cluster}"]
        arguments += ["--config", str(self._settings_path)]
        if self.security is not None:
            arguments += self.security.scram_arguments()
        tool = self._spawn("kafka.tools.StorageTool", arguments, self.data_dir / "format.log")
        ended = tool.wait(START_TIMEOUT_S)
        tool.stop(0.0)
        if not ended or tool.exit_code != 0:
            raise KafkaError(
                "BROKER_FORMAT_FAILED",
                f"Kafka's storage tool could not format {self.data_dir}:\n{tool.log_tail()}",
            )
        formatted.touch()

    def _spawn(self, main_class: str, arguments: list[str], log_path: Path) -> Child:
        log_path.unlink(missing_ok=True)
        jvm = [f"-Xmx{self.heap}", "-XX:+UseSerialGC", "-XX:+ExitOnOutOfMemoryError"]
        jvm += [f"-Xmn{self.young}"] if self.young else []
        jvm += self.security.java_options() if self.security else []
        logging = "-Dorg.slf4j.simpleLogger.defaultLogLevel=warn"
        classpath = ["-cp", f"{BROKER_JARS}/*"]
        command = [java(), *jvm, logging, *classpath, main_class, *arguments]
        try:
            return Child(command, log_path)
        except FileNotFoundError as cause:
            raise ConfigError(
                "JAVA_MISSING", "cannot run java", hint="install Java 17 or newer"
            ) from cause

    def _wait_until_ready(self, child: Child) -> None:
        deadline = time.monotonic() + START_TIMEOUT_S
        while not port_answers(self.port):  # the Kafka client would log every refused connection
            self._fail_unless_starting(child, deadline)
            child.wait(0.05)
        admin = AdminClient({**self.admin_config(), "log_level": 0})
        advertised = self._advertised_port or self.port
        while True:
            with contextlib.suppress(KafkaException):
                if any(b.port == advertised for b in admin.list_topics(timeout=1).brokers.values()):
                    return
            self._fail_unless_starting(child, deadline)

    def _fail_unless_starting(self, child: Child, deadline: float) -> None:
        if child.exit_code is not None:
            raise self._died(child)
        if time.monotonic() > deadline:
            raise KafkaError(
                "BROKER_START_TIMEOUT",
                f"the embedded broker is not ready after {START_TIMEOUT_S:.0f} s; the end of "
                f"{self.log_path}:\n{child.log_tail()}",
            )

    def _died(self, child: Child) -> KafkaError:
        return KafkaError(
            "BROKER_DIED",
            f"the embedded broker ended with exit code {child.exit_code}; the end of "
            f"{self.log_path}:\n{child.log_tail()}",
        )


def _check_jars() -> None:
    if not any(BROKER_JARS.glob("kafka_*.jar")):
        raise ConfigError(
            "BROKER_JARS_MISSING",
            f"the jars of the Kafka broker are not in {BROKER_JARS}",
            hint="run `make setup`",
        )


def run_broker(
    port: int | None, data_dir: Path, topics: Sequence[str] = (), as_json: bool = False
) -> None:
    """The command `rejoin kafka`: a broker in the foreground until SIGTERM or Ctrl-C.

    Creates `topics`, each given as `name[:partitions][:compact]`, before it says that it is ready.
    Raises ConfigError if one is not in that form.
    """
    new_topics = [_parse_topic(text) for text in topics]
    with stop_signals() as stop, Broker(data_dir, port) as broker:
        _create_missing(broker, new_topics)
        servers, folder = broker.bootstrap_servers, str(broker.data_dir)
        if as_json:
            write_json({"event": "ready", "bootstrap_servers": servers, "data_dir": folder})
        else:
            typer.echo(f"Kafka is ready at {servers} (data in {folder})")
        while not stop.wait(0.5):
            broker.check_alive()
        if not as_json:
            typer.echo("stopping Kafka")


def _parse_topic(text: str) -> NewTopic:
    found = re.fullmatch(r"([A-Za-z0-9._-]{1,249})(?::([1-9][0-9]{0,3}))?(:compact)?", text)
    if found is None or found[1] in (".", ".."):
        raise ConfigError(
            "TOPIC_NAME",
            f"'{text}' is no topic: names have at most 249 letters, digits, '.', '_' and '-'",
            hint="give name, name:partitions or name:partitions:compact, such as orders:3",
        )
    config = {"cleanup.policy": "compact"} if found[3] else {}
    return NewTopic(found[1], int(found[2] or 1), 1, config=config)


def _create_missing(broker: Broker, topics: Sequence[NewTopic]) -> None:
    admin = AdminClient({**broker.admin_config()})
    present = admin.list_topics(timeout=START_TIMEOUT_S).topics
    missing = [topic for topic in topics if topic.topic not in present]
    for made in admin.create_topics(missing).values() if missing else ():
        made.result(START_TIMEOUT_S)
