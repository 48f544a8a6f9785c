"""The command `rejoin demo`: runs a broker, the shop, the job and a subscriber, and removes all."""

import shutil
import sys
import tempfile
import threading
import time
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from threading import Event
from typing import Self

from spark_jobs.demo.avro_encoding import AvroEncoding
from spark_jobs.demo.encoding import Encoding
from spark_jobs.demo.json_encoding import JsonEncoding
from spark_jobs.demo.loop import AnyScreen, DemoLoop, DemoSetup
from spark_jobs.demo.play import SHOP_TOPICS, create_topics
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
_STOP_GRACE_S = 10.0  # how long an interrupted job may take to stop
_DRAIN_GRACE_S = 40.0  # how long a job may take to finish its last epoch
_KEPT_AFTER_FAILURE = ("job.log", "shop.sql", "status")


class DemoFolder:
    """The demo's folder. It is removed at the end; after a failure the job and its log are kept."""

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
                hint="--keep wants a new or empty folder",
            )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
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
        """Start `rejoin run` with this job text."""
        job = self.root / "shop.sql"
        job.write_text(text, encoding="utf-8")
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(job)]
        command += ["--checkpoint", str(self.root / "checkpoint")]
        command += ["--status-dir", str(self.status)]
        return Child([*command, f"--sidecar-port={sidecar_port}"], self.log)


@dataclass(frozen=True, slots=True)
class DemoOptions:
    """Options of `rejoin demo`. Without `seconds` it runs until Ctrl-C; `sidecar_port` is the live
    page's, a free one if None."""

    seconds: float | None
    rate: float
    sidecar_port: int | None
    corrupt: bool
    avro: bool
    keep: Path | None
    open_page: bool
    as_json: bool


def run_demo(options: DemoOptions) -> int:
    """Returns exit code 0 if every row was right.

    Raises RejoinError if the broker or the job fails; the job's log is kept then.
    """
    started = time.monotonic()
    screen = (JsonScreen if options.as_json else Screen)(sys.stdout)
    port = options.sidecar_port or free_ports(1)[0]
    with (
        stop_signals() as stop,
        DemoFolder(options.keep) as folder,
        Broker(folder.root / "broker") as broker,
        _encoding(options.avro, folder) as encoding,
    ):
        servers = broker.bootstrap_servers
        create_topics(servers)
        _show_start(screen, folder, servers, encoding, time.monotonic() - started, port)
        if stop.is_set():
            return 0 if options.seconds is None else INTERRUPTED
        job = folder.start_job(job_text(encoding, servers), port)
        if options.open_page:
            threading.Thread(target=_open_page, args=(port, job), daemon=True).start()
        check, rate, corrupt = _alive(broker, job), options.rate, options.corrupt
        setup = DemoSetup(servers, encoding, rate, corrupt, folder.status, started, check)
        folder.failed = True
        try:
            exit_code = _run_loop(setup, screen, job, stop, options.seconds)
            folder.failed = exit_code == 1
        finally:
            job.stop(_STOP_GRACE_S)
            if folder.failed:
                screen.say(f"the job's log is {folder.log}; its end:\n{job.log_tail()}", "red")
    return exit_code


def _open_page(port: int, job: Child) -> None:
    """Open the page in the default browser once the sidecar answers."""
    while job.exit_code is None and not port_answers(port):
        time.sleep(0.2)
    webbrowser.open(f"http://{LOOPBACK}:{port}")


@contextmanager
def _encoding(avro: bool, folder: DemoFolder) -> Iterator[Encoding]:
    """JSON, or Avro with an embedded schema registry."""
    if not avro:
        yield JsonEncoding()
        return
    with RegistryServer(folder.root / "schemas") as registry:
        yield AvroEncoding(registry.url)


def job_text(encoding: Encoding, servers: str) -> str:
    """The job file with its addresses of broker and registry replaced by the actual ones.

    >>> "'localhost:1234'" in job_text(JsonEncoding(), "localhost:1234")
    True
    """
    text = encoding.job_file.read_text(encoding="utf-8")
    text = text.replace(f"'{_SERVERS_IN_FILE}'", f"'{servers}'")
    return text.replace(f"'{_REGISTRY_IN_FILE}'", f"'{encoding.registry_url}'")


def _show_start(
    screen: AnyScreen,
    folder: DemoFolder,
    servers: str,
    encoding: Encoding,
    took_s: float,
    port: int,
) -> None:
    screen.say("rejoin demo: a shop's orders, each joined with its product as of the order's time")
    screen.say(f"  broker   {servers}, ready after {took_s:.1f} s")
    if encoding.registry_url is not None:
        screen.say(f"  registry {encoding.registry_url}")
    screen.say("  topics   " + ", ".join(f"{name} ({n})" for name, n in SHOP_TOPICS.items()))
    screen.say(f"  job      examples/{encoding.job_file.name}, log in {folder.log}")
    screen.say(f"  page     http://{LOOPBACK}:{port}")
    screen.say("  Ctrl-C   ends everything")


def _run_loop(
    setup: DemoSetup, screen: AnyScreen, job: Child, stop: Event, seconds: float | None
) -> int:
    with DemoLoop(setup, screen) as loop:
        loop.play(stop, seconds)
        if stop.is_set() or not loop.finish(stop):
            good = loop.conclude(complete=False)
            screen.say("stopping the job and the broker")
            return 1 if not good else (0 if seconds is None else INTERRUPTED)
        job.stop(_DRAIN_GRACE_S)
        if job.exit_code is not None and job.exit_code < 0:
            screen.say(f"the job did not stop within {_DRAIN_GRACE_S:.0f} s and was killed", "red")
        loop.read_rest()
        return 0 if loop.conclude(complete=True) else 1


def _alive(broker: Broker, job: Child) -> Callable[[], None]:
    """A function that raises RejoinError once the broker or the job has ended."""

    def check() -> None:
        broker.check_alive()
        if job.exit_code is not None:
            raise RejoinError("JOB_ENDED", f"the job ended with exit code {job.exit_code}")

    return check
