"""`rejoin demo`: a broker, the shop, the job and a subscriber, all ended and removed with it."""

import shutil
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self, TextIO

from spark_jobs.demo.avro_encoding import AvroEncoding
from spark_jobs.demo.encoding import Encoding
from spark_jobs.demo.json_encoding import JsonEncoding
from spark_jobs.demo.loop import AnyScreen, Performance, Staging
from spark_jobs.demo.play import TOPICS, create_topics
from spark_jobs.demo.show import Screen
from spark_jobs.demo.show_json import JsonScreen
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import LOOPBACK, Child, free_ports, port_answers, stop_signals
from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.errors import ConfigError, RejoinError

RATE = 200.0  # orders per second
INTERRUPTED = 130
_SERVERS_IN_FILE = "localhost:9092"
_REGISTRY_IN_FILE = "http://localhost:8081"
_STOP_GRACE_S = 10.0  # for a job that is interrupted
_DRAIN_GRACE_S = 40.0  # for a job whose last epoch is still to be read
_KEPT_AFTER_FAILURE = ("job.log", "shop.sql", "status")


class Place:
    """The folder of one demo. It goes with the demo; after a failure the log and the job stay."""

    def __init__(self, keep: Path | None) -> None:
        self._keep = keep is not None
        self.failed = False
        if keep is None:
            self.root = Path(tempfile.mkdtemp(prefix="rejoin-demo-"))
            return
        self.root = keep.resolve()
        self.root.mkdir(parents=True, exist_ok=True)
        if any(self.root.iterdir()):
            raise ConfigError(
                "FOLDER_NOT_EMPTY",
                f"{self.root} is not empty",
                hint="a demo begins with a folder of its own",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._keep:
            return
        if not self.failed:
            shutil.rmtree(self.root, ignore_errors=True)
            return
        for path in self.root.iterdir():
            if path.name not in _KEPT_AFTER_FAILURE and path.is_dir():
                shutil.rmtree(path, ignore_errors=True)

    @property
    def log(self) -> Path:
        return self.root / "job.log"

    @property
    def status(self) -> Path:
        return self.root / "status"

    def start_job(self, text: str, sidecar_port: int) -> Child:
        """`rejoin run` on the text of a job file."""
        job = self.root / "shop.sql"
        job.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(job)]
        command += ["--checkpoint", str(self.root / "checkpoint")]
        command += ["--status-dir", str(self.status)]
        return Child([*command, f"--sidecar-port={sidecar_port}"], self.log)


def run_demo(
    seconds: float | None = None,
    rate: float = RATE,
    sidecar_port: int | None = None,
    corrupt: bool = False,
    avro: bool = False,
    keep: Path | None = None,
    open_page: bool = False,
    as_json: bool = False,
    out: TextIO | None = None,
) -> int:
    """Exit code 0 if every row was right; without `seconds` until Ctrl-C.

    The live page is at `sidecar_port`, a free one if there is none.

    Raises RejoinError if the broker or the job cannot do its work; the job's log is kept then.
    """
    started = time.monotonic()
    screen = (JsonScreen if as_json else Screen)(out or sys.stdout)
    port = sidecar_port or free_ports(1)[0]
    with (
        stop_signals() as stop,
        Place(keep) as place,
        Broker(place.root / "broker") as broker,
        _encoding(avro, place) as encoding,
    ):
        servers = broker.bootstrap_servers
        create_topics(servers)
        took_s = time.monotonic() - started
        _introduce(screen, place, servers, encoding, took_s, port)
        if stop.is_set():
            return 0 if seconds is None else INTERRUPTED
        job = place.start_job(job_text(encoding, servers), port)
        if open_page:
            threading.Thread(target=_open_page, args=(port, job), daemon=True).start()
        check = _alive(broker, job)
        staging = Staging(servers, encoding, rate, corrupt, place.status, started, check)
        place.failed = True
        try:
            exit_code = _perform(staging, screen, job, stop, seconds)
            place.failed = exit_code == 1
        finally:
            job.stop(_STOP_GRACE_S)
            if place.failed:
                screen.say(f"the job's log is {place.log}; its end:\n{job.log_tail()}", "red")
    return exit_code


def _open_page(port: int, job: Child) -> None:
    """In the browser that the desktop prefers, once the sidecar is there."""
    while job.exit_code is None and not port_answers(port):
        time.sleep(0.2)
    webbrowser.open(f"http://{LOOPBACK}:{port}")


@contextmanager
def _encoding(avro: bool, place: Place) -> Iterator[Encoding]:
    """JSON, or Avro with a registry of its own."""
    if not avro:
        yield JsonEncoding()
        return
    with RegistryServer(place.root / "schemas") as registry:
        yield AvroEncoding(registry.url)


def job_text(encoding: Encoding, servers: str) -> str:
    """The job file with the addresses of the broker and the registry in place of those it names.

    >>> "'localhost:1234'" in job_text(JsonEncoding(), "localhost:1234")
    True
    """
    text = encoding.job_file.read_text(encoding="utf-8")
    text = text.replace(f"'{_SERVERS_IN_FILE}'", f"'{servers}'")
    return text.replace(f"'{_REGISTRY_IN_FILE}'", f"'{encoding.registry_url}'")


def _introduce(
    screen: AnyScreen,
    place: Place,
    servers: str,
    encoding: Encoding,
    took_s: float,
    port: int,
) -> None:
    screen.say("rejoin demo: a shop's orders, each joined with its product as it was at that time")
    screen.say(f"  broker   {servers}, ready after {took_s:.1f} s")
    if encoding.registry_url is not None:
        screen.say(f"  registry {encoding.registry_url}")
    screen.say("  topics   " + ", ".join(f"{name} ({n})" for name, n in TOPICS.items()))
    screen.say(f"  job      examples/{encoding.job_file.name}, log in {place.log}")
    screen.say(f"  page     http://{LOOPBACK}:{port}")
    screen.say("  Ctrl-C   ends everything")


def _perform(
    staging: Staging, screen: AnyScreen, job: Child, stop: Event, seconds: float | None
) -> int:
    with Performance(staging, screen) as performance:
        performance.play(stop, seconds)
        if stop.is_set() or not performance.finish(stop):
            good = performance.conclude(complete=False)
            screen.say("stopping the job and the broker")
            return 1 if not good else (0 if seconds is None else INTERRUPTED)
        job.stop(_DRAIN_GRACE_S)
        if job.exit_code is not None and job.exit_code < 0:
            screen.say(f"the job did not end by itself within {_DRAIN_GRACE_S:.0f} s", "red")
        performance.read_rest()
        return 0 if performance.conclude(complete=True) else 1


def _alive(broker: Broker, job: Child) -> Callable[[], None]:
    """Raises once one of them has ended by itself."""

    def check() -> None:
        broker.check_alive()
        if job.exit_code is not None:
            raise RejoinError("JOB_ENDED", f"the job ended with exit code {job.exit_code}")

    return check
