"""Everything beside the job: started in the order of need, stopped in the other one.

Connect has to end before the broker: without one it tries to reach it for ever. It has to end
before PostgreSQL too, which keeps what a live replication slot has not confirmed.
"""

import signal
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Literal, Self, TypeAlias

from spark_jobs.embedded.broker import Broker
from tests.e2e.apicurio import Apicurio
from tests.e2e.debezium import Connect, capture
from tests.e2e.job import Job, job_text
from tests.e2e.postgres import Postgres
from tests.e2e.topics import create_topics
from tests.e2e.wire import AvroWire, JsonWire, Wire

FormatName: TypeAlias = Literal["json", "avro"]
SCHEMA = Path(__file__).with_name("schema.sql")
TOPICS = {
    "e2e.public.customers": 2,
    "e2e.public.products": 1,
    "e2e.public.orders": 3,
    "order_details": 2,
    "customer_totals": 1,
    "fresh_products": 1,
    "dead_letters": 1,
}


class Stack:
    """PostgreSQL, broker, registry (for Avro), Connect and the job, in one folder."""

    def __init__(self, folder: Path, bin_folder: Path, format_name: FormatName) -> None:
        self.postgres = Postgres(folder / "postgres", bin_folder)
        self.broker = Broker(folder / "broker")
        self.registry = Apicurio(folder / "registry") if format_name == "avro" else None
        self.wire: Wire = JsonWire() if self.registry is None else AvroWire(self.registry)
        self._folder = folder
        self._started = ExitStack()
        self.connect: Connect
        self.job: Job

    def __enter__(self) -> Self:
        try:
            self._start()
        except BaseException:
            self._stop()
            raise
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._stop()

    def check_alive(self) -> None:
        """Raise if one of the processes has ended by itself."""
        self.broker.check_alive()
        self.connect.check_alive()
        self.job.check_alive()
        if self.registry is not None:
            self.registry.check_alive()

    def _start(self) -> None:
        """All but Connect and the job, which `launch` and `start` begin."""
        self._started.callback(self.postgres.stop)
        self.postgres.start()
        with self.postgres.connect() as connection:
            connection.execute(SCHEMA.read_bytes())
        if self.registry is not None:
            self._started.callback(self.registry.stop)
            self.registry.launch()
        self._started.enter_context(self.broker)
        servers = self.broker.bootstrap_servers
        create_topics(servers, TOPICS)
        if self.registry is not None:
            self.registry.wait()
        self.connect = Connect(
            self._folder / "connect", servers, self.postgres, capture(self.wire.converter())
        )
        self._started.callback(self.connect.stop)
        self.job = Job(self._folder / "job", job_text(servers, self.wire))
        self._started.callback(self.job.kill)

    def _stop(self) -> None:
        """To the end, whatever a hand on Ctrl-C does meanwhile."""
        numbers = (signal.SIGINT, signal.SIGTERM)
        before = [signal.signal(number, signal.SIG_IGN) for number in numbers]
        try:
            self._started.close()
        finally:
            for number, handler in zip(numbers, before, strict=True):
                signal.signal(number, handler)
