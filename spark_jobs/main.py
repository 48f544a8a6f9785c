"""A job on one screen: SQL text to plans, plans to queries, queries watched until they end."""

import contextlib
import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal

from pyspark.sql import SparkSession

from spark_jobs.commands import discard
from spark_jobs.embedded.process import Child, free_ports, port_is_free, stop_signals
from spark_jobs.errors import ConfigError, KafkaError, RejoinError
from spark_jobs.job_record import write_job
from spark_jobs.kernel.build import connector_jars, kernel_jar
from spark_jobs.operators.access import check_access, missing_acl
from spark_jobs.operators.launch import Launch, shape
from spark_jobs.plan.graph import job_record
from spark_jobs.plan.physical import KafkaSink, QueryPlan
from spark_jobs.plan.planner import plan
from spark_jobs.settings import (
    JobSettings,
    Overrides,
    epoch_words,
    job_settings,
    read_environment,
    read_sql,
)
from spark_jobs.sql.binder import Job, bind
from spark_jobs.status import State
from spark_jobs.streaming.class_archive import DUMP_WITHIN_S
from spark_jobs.streaming.console import Console
from spark_jobs.streaming.failure import JavaError
from spark_jobs.streaming.obey import End, obey
from spark_jobs.streaming.ownership import BEAT_S
from spark_jobs.streaming.query import EPOCH_WAIT_S, QueryLife, open_gate, stop_queries
from spark_jobs.streaming.replays import Replays
from spark_jobs.streaming.report import Counters, JobReport, read_progress
from spark_jobs.streaming.session import (
    JVM_LOG,
    counters,
    jvm_counts,
    registry_waits,
    restore_counters,
    start_session,
    stop_session,
)

POLL_S = 0.1
REPORT_EVERY_S = 1.0
SAVE_EVERY_S = 10.0
PARTITIONS_EVERY_S = 60.0
STOP_WITHIN_S = 10
DEFAULT_SIDECAR_PORT = 9640
PORT_WAIT_S = 5.0


def run_job(sql_file: Path, overrides: Overrides, console: Console) -> None:
    """Run a job file until its inputs end or a signal comes. Raises what ended it otherwise."""
    text = read_sql(sql_file)
    job = bind(text, str(sql_file))
    plans = plan(job)
    sinks = sinks_of(plans)
    settings = job_settings(job.settings, sql_file.stem, overrides, read_environment())
    jars = [kernel_jar(), *connector_jars()]
    makes_archive = settings.environment.class_archive == "make"
    stop_within_s = DUMP_WITHIN_S if makes_archive else STOP_WITHIN_S
    check_port(settings)
    report = first_report(job, plans, settings, console)
    replays = Replays(settings.status_dir, text, Child)
    with sidecar(settings, console), stop_signals() as early:
        with failing(report, sinks, settings):
            check_access(sinks)
            spark = start_session(settings, jars)
            try:
                if not early.is_set():
                    open_gate(spark)
                    with stop_signals() as stop:  # again: Spark's context has taken Ctrl-C
                        launch(spark, sinks, settings, report, replays, console).run(stop)
            finally:
                stop_session(spark, stop_within_s)
        last_word(report, "stopped")


def first_report(
    job: Job, plans: Sequence[QueryPlan], settings: JobSettings, console: Console
) -> JobReport:
    """Tell the console and the status folder of a job that is about to start."""
    shapes = [shape(sink, name) for name, sink in sinks_of(plans).items()]
    report = JobReport(settings.name, settings.status_dir, shapes)
    for name, value in settings.table():
        console.say(f"{name} = {value}")
    discard(settings.status_dir)  # what was asked of an earlier driver
    report.write("starting")
    write_job(settings.status_dir, job_record(job, plans, settings.name, dict(settings.table())))
    return report


@contextmanager
def failing(
    report: JobReport, sinks: Mapping[str, KafkaSink], settings: JobSettings
) -> Iterator[None]:
    """Write what ends the block into the status; it leaves as an error of ours, ACLs by name."""
    try:
        yield
    except RejoinError as error:
        told = missing_acl(error, sinks, settings.name) or error
        last_word(report, "failed", told)
        raise told from error.__cause__
    except Exception as error:
        log = settings.status_dir / JVM_LOG  # a session of the user's own has its log elsewhere
        where = f"; see {log}" if log.exists() else ""
        failed = RejoinError("DRIVER_FAILED", f"{error!r}{where}")
        last_word(report, "failed", failed)
        raise failed from error


def last_word(
    report: JobReport, state: Literal["stopped", "failed"], error: RejoinError | None = None
) -> None:
    """Write how the job has ended; a disk that is full there too must not hide it."""
    with contextlib.suppress(OSError):
        report.write(state, error=error)


def sinks_of(plans: Sequence[QueryPlan]) -> dict[str, KafkaSink]:
    """The planned INSERTs by query name, which is also that of a folder."""
    sinks = {p.name: p.root for p in plans if isinstance(p.root, KafkaSink)}
    if not sinks:
        raise ConfigError("NOTHING_TO_RUN", "the file has no INSERT INTO")
    if wrong := [name for name in sinks if "/" in name or name in (".", "..")]:
        raise ConfigError(
            "QUERY_NAME",
            f"the checkpoint of sink '{wrong[0]}' would not be a folder of its own",
            hint="give the table a name without '/'; 'topic' may be any",
        )
    return sinks


def launch(
    spark: SparkSession,
    sinks: Mapping[str, KafkaSink],
    settings: JobSettings,
    report: JobReport,
    replays: Replays,
    console: Console,
) -> "Watch":
    """Open the queries' checkpoints; raises where one belongs to another job."""
    words = epoch_words(settings.epoch_written, list(sinks))
    launches: list[Launch] = []
    try:
        for name, sink in sinks.items():
            launches.append(Launch(spark, sink, name, settings, words.get(name)))
            for note in launches[-1].notes:
                console.say(note)
        for opened in launches:
            report.opened(opened.name, opened.loads(), opened.folder.next_epoch)
        return Watch(spark, launches, report, replays, console)
    except BaseException:
        for opened in launches:
            opened.close()
        raise


class Watch:
    """Polls the queries of one job, and tells of them."""

    def __init__(
        self,
        spark: SparkSession,
        launches: Sequence[Launch],
        report: JobReport,
        replays: Replays,
        console: Console,
    ) -> None:
        self.lives = [launch.life() for launch in launches]
        self._spark = spark
        self._launches = launches
        self._report = report
        self._replays = replays
        self._console = console
        self._progress: dict[str, Mapping[str, Any]] = {}  # of a query that is being restarted too
        self.end: End | None = None  # an admin verb has ended the job
        self._restore()

    def run(self, stop: threading.Event) -> None:
        """Until every query has finished or `stop` is set, which lets running epochs finish."""
        try:
            self.until(stop)
        except BaseException:
            with contextlib.suppress(Exception):  # a JVM that is gone runs no queries
                stop_queries(self._spark, self.lives, wait_s=0)
            raise
        finally:
            self._replays.stop()
            self._report.replay = self._replays.status
        if self.end is not None or stop.is_set():
            is_cut = self.end == "stop"
            self._console.say("stopping ..." if is_cut else "stopping after the running epoch ...")
            self.tell("draining")
            stop_queries(self._spark, self.lives, wait_s=0 if is_cut else EPOCH_WAIT_S)
        self.tell("stopped")
        self.save()
        for opened in self._launches:
            with contextlib.suppress(JavaError):
                opened.ownership.release()

    def close(self) -> None:
        """Let others have the checkpoints, in a JVM that goes on; not that of a query that does."""
        for opened, life in zip(self._launches, self.lives, strict=True):
            with contextlib.suppress(Exception):  # a JVM that is gone holds no locks
                if not life.is_active:
                    opened.close()

    def until(self, stop: threading.Event) -> None:
        """Return when all queries have finished, `stop` is set or an admin verb says so; raise what
        one died of.
        """
        reported = saved = looked = beaten = time.monotonic()
        while not stop.is_set():
            for life in self.lives:
                self._poll(life)
            if all(life.phase == "finished" for life in self.lives):
                return
            present = time.monotonic()
            if present - reported >= REPORT_EVERY_S:
                reported = present
                self.tell("running")
                self.end = obey(self._spark, self._report.folder, self._replays)
                if self.end is not None:
                    return
            if present - beaten >= BEAT_S:
                beaten = present
                self._beat()
            if present - saved >= SAVE_EVERY_S:
                saved = present
                self.save()
            if present - looked >= PARTITIONS_EVERY_S:
                looked = present
                self._look_for_partitions()
            stop.wait(POLL_S)

    def _poll(self, life: QueryLife) -> None:
        before = life.restarts.total
        life.poll()
        if life.restarts.total > before:
            self._console.say(f"{life.restarts}: {life.failure}")

    def _beat(self) -> None:
        """Raises once the checkpoint is another driver's; a silent disk says nothing of that."""
        for launch in self._launches:
            with contextlib.suppress(JavaError):
                launch.ownership.beat()

    def _look_for_partitions(self) -> None:
        """Next time, if the broker does not answer now: the queries themselves tell of outages."""
        for launch in self._launches:
            with contextlib.suppress(KafkaError):
                launch.refresh_partitions()

    def tell(self, state: State) -> None:
        """Write the status and show it; a full disk there does not end the job."""
        self._progress |= read_progress(self.lives)
        counted = Counters(counters(self._spark), jvm_counts(self._spark))
        waits = registry_waits(self._spark)
        self._report.replay = self._replays.status
        with contextlib.suppress(OSError):
            told = self._report.write(state, counted, self._progress, waits=waits, lives=self.lives)
            self._console.show(told)

    def save(self) -> None:
        """Keep the counters: only groups with new rows report again after a restart.

        Of no use to the results: a checkpoint that cannot be written fails the queries instead.
        """
        text = counters(self._spark)
        for launch in self._launches:
            with contextlib.suppress(JavaError):
                launch.folder.write_counters(text)

    def _restore(self) -> None:
        """All queries of a job save the same text."""
        text = next(
            filter(None, (launch.folder.read_counters() for launch in self._launches)), None
        )
        if text is not None:
            restore_counters(self._spark, text)


def check_port(settings: JobSettings) -> None:
    """Raise ConfigError where the sidecar could not serve at the port that was asked for.

    That of a driver which was killed ends a moment after it.
    """
    port = settings.sidecar_port
    if not settings.sidecar or port is None:
        return
    deadline = time.monotonic() + PORT_WAIT_S
    while not port_is_free(port):
        if time.monotonic() > deadline:
            raise ConfigError(
                "SIDECAR_PORT_IN_USE",
                f"the sidecar cannot listen on 127.0.0.1:{port}",
                hint="--no-sidecar, another --sidecar-port, or none for a free one",
            )
        time.sleep(POLL_S)


@contextmanager
def sidecar(settings: JobSettings, console: Console) -> Iterator[None]:
    """The process that serves health and metrics, beside the driver and not longer than it."""
    if not settings.sidecar:
        yield
        return
    port = settings.sidecar_port
    if port is None:
        port = DEFAULT_SIDECAR_PORT if port_is_free(DEFAULT_SIDECAR_PORT) else free_ports(1)[0]
    command = [sys.executable, "-m", "service.main", "--port", str(port)]
    command += ["--status-dir", str(settings.status_dir)]
    child = Child(command, settings.status_dir / "sidecar.log")
    console.say(f"sidecar at http://127.0.0.1:{port} (health, metrics, state)")
    try:
        yield
    finally:
        child.stop(2.0)
