"""`rejoin demo`: a broker, the shop, the job and a subscriber, all ended and removed with it."""

import shutil
import sys
import tempfile
import time
from pathlib import Path
from threading import Event
from types import TracebackType
from typing import Self, TextIO

from spark_jobs.demo.perform import Performance, Staging
from spark_jobs.demo.play import TOPICS, create_topics
from spark_jobs.demo.show import Screen
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import LOOPBACK, Child, stop_signals
from spark_jobs.errors import ConfigError, RejoinError

JOB_FILE = Path(__file__).resolve().parents[2] / "examples" / "shop.sql"
RATE = 200.0  # orders per second
INTERRUPTED = 130
_SERVERS_IN_FILE = "localhost:9092"
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

    def start_job(self, servers: str, sidecar_port: int | None) -> Child:
        """`rejoin run` on the job file, written for this broker."""
        job = self.root / "shop.sql"
        job.write_text(job_text(servers), encoding="utf-8")
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(job)]
        command += ["--checkpoint", str(self.root / "checkpoint")]
        command += ["--status-dir", str(self.status)]
        sidecar = "--no-sidecar" if sidecar_port is None else f"--sidecar-port={sidecar_port}"
        return Child([*command, sidecar], self.log)


def run_demo(
    seconds: float | None = None,
    rate: float = RATE,
    sidecar_port: int | None = None,
    corrupt: bool = False,
    keep: Path | None = None,
    out: TextIO | None = None,
) -> int:
    """Exit code 0 if every row was right; without `seconds` until Ctrl-C.

    Raises RejoinError if the broker or the job cannot do its work; the job's log is kept then.
    """
    started = time.monotonic()
    screen = Screen(out or sys.stdout)
    with stop_signals() as stop, Place(keep) as place, Broker(place.root / "broker") as broker:
        servers = broker.bootstrap_servers
        create_topics(servers)
        _introduce(screen, place, servers, time.monotonic() - started, sidecar_port)
        if stop.is_set():
            return 0 if seconds is None else INTERRUPTED
        job = place.start_job(servers, sidecar_port)

        def check() -> None:
            broker.check_alive()
            if job.exit_code is not None:
                raise _job_ended(job)

        staging = Staging(servers, rate, corrupt, place.status, started, check)
        place.failed = True
        try:
            exit_code = _perform(staging, screen, job, stop, seconds)
            place.failed = exit_code == 1
        finally:
            job.stop(_STOP_GRACE_S)
            if place.failed:
                screen.say(f"the job's log is {place.log}; its end:\n{job.log_tail()}", "red")
    return exit_code


def job_text(servers: str) -> str:
    """The job file with the address of the broker in place of the one it names.

    >>> "'properties.bootstrap.servers' = 'localhost:1234'" in job_text("localhost:1234")
    True
    """
    return JOB_FILE.read_text(encoding="utf-8").replace(f"'{_SERVERS_IN_FILE}'", f"'{servers}'")


def _introduce(
    screen: Screen, place: Place, servers: str, took_s: float, sidecar_port: int | None
) -> None:
    screen.say("rejoin demo: a shop's orders, each joined with its product as it was at that time")
    screen.say(f"  broker   {servers}, ready after {took_s:.1f} s")
    screen.say("  topics   " + ", ".join(f"{name} ({n})" for name, n in TOPICS.items()))
    screen.say(f"  job      examples/{JOB_FILE.name}, log in {place.log}")
    if sidecar_port is not None:
        screen.say(f"  sidecar  http://{LOOPBACK}:{sidecar_port}/metrics")
    screen.say("  Ctrl-C   ends everything")


def _perform(
    staging: Staging, screen: Screen, job: Child, stop: Event, seconds: float | None
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


def _job_ended(job: Child) -> RejoinError:
    return RejoinError("JOB_ENDED", f"the job ended with exit code {job.exit_code}")
