"""A job on one screen: SQL text to plans, plans to queries, queries watched until they end."""

import sys
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.embedded.process import Child, free_ports, port_is_free, stop_signals
from spark_jobs.errors import ConfigError, RejoinError
from spark_jobs.kernel.build import connector_jars, kernel_jar
from spark_jobs.operators.launch import Launch, shape
from spark_jobs.plan.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.settings import JobSettings, Overrides, job_settings, read_environment, read_sql
from spark_jobs.sql.binder import Job, bind
from spark_jobs.status import State
from spark_jobs.streaming.class_archive import DUMP_WITHIN_S
from spark_jobs.streaming.console import Console
from spark_jobs.streaming.query import open_gate, stop_queries
from spark_jobs.streaming.report import Counters, JobReport, read_progress
from spark_jobs.streaming.session import (
    JVM_LOG,
    counters,
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


def run_job(sql_file: Path, overrides: Overrides, console: Console) -> None:
    """Run a job file until its inputs end or a signal comes. Raises what ended it otherwise."""
    job = bind(read_sql(sql_file), str(sql_file))
    sinks = plan_sinks(job)
    settings = job_settings(job.settings, sql_file.stem, overrides, read_environment())
    jars = [kernel_jar(), *connector_jars()]
    makes_archive = settings.environment.class_archive == "make"
    stop_within_s = DUMP_WITHIN_S if makes_archive else STOP_WITHIN_S
    report = JobReport(settings.name, settings.status_dir, [shape(s, n) for n, s in sinks.items()])
    for name, value in settings.table():
        console.say(f"{name} = {value}")
    report.write("starting")
    with sidecar(settings, console), stop_signals() as early:
        try:
            spark = start_session(settings, jars)
            try:
                if not early.is_set():
                    _run_queries(spark, sinks, settings, report, console)
            finally:
                stop_session(spark, stop_within_s)
        except RejoinError as error:
            report.write("failed", error=error)
            raise
        except Exception as error:
            failed = RejoinError("DRIVER_FAILED", f"{error!r}; see {settings.status_dir / JVM_LOG}")
            report.write("failed", error=failed)
            raise failed from error
        report.write("stopped")


def plan_sinks(job: Job) -> dict[str, KafkaSink]:
    """The planned INSERTs by query name."""
    plans = {p.name: p.root for p in plan(job)}
    sinks = {name: root for name, root in plans.items() if isinstance(root, KafkaSink)}
    if not sinks:
        raise ConfigError("NOTHING_TO_RUN", "the file has no INSERT INTO")
    return sinks


def _run_queries(
    spark: SparkSession,
    sinks: dict[str, KafkaSink],
    settings: JobSettings,
    report: JobReport,
    console: Console,
) -> None:
    """Until every query has finished or a signal came, which lets running epochs finish."""
    open_gate(spark)
    with stop_signals() as stop:  # once more: Spark's context has taken Ctrl-C for itself
        launches = [Launch(spark, sink, name, settings) for name, sink in sinks.items()]
        watch = Watch(spark, launches, report, console)
        try:
            watch.until(stop)
        except RejoinError:
            stop_queries(spark, watch.lives, wait_s=0)
            raise
        if stop.is_set():
            console.say("stopping after the running epoch ...")
            watch.tell("draining")
            stop_queries(spark, watch.lives)
        watch.tell("stopped")
        watch.save()


class Watch:
    """Polls the queries of one job, and tells of them."""

    def __init__(
        self, spark: SparkSession, launches: Sequence[Launch], report: JobReport, console: Console
    ) -> None:
        self.lives = [launch.life() for launch in launches]
        self._spark = spark
        self._launches = launches
        self._report = report
        self._console = console
        self._progress: dict[str, Mapping[str, Any]] = {}  # of a query that is being restarted too
        self._restore()

    def until(self, stop: threading.Event) -> None:
        """Return when all queries have finished or `stop` is set; raise what one died of."""
        reported = saved = looked = time.monotonic()
        while not stop.is_set():
            for life in self.lives:
                life.poll()
            if all(life.phase == "finished" for life in self.lives):
                return
            present = time.monotonic()
            if present - reported >= REPORT_EVERY_S:
                reported = present
                self.tell("running")
            if present - saved >= SAVE_EVERY_S:
                saved = present
                self.save()
            if present - looked >= PARTITIONS_EVERY_S:
                looked = present
                for launch in self._launches:
                    launch.refresh_partitions()
            stop.wait(POLL_S)

    def tell(self, state: State) -> None:
        """Write the status and show it."""
        self._progress |= read_progress(self.lives)
        counted = Counters(counters(self._spark))
        self._console.show(self._report.write(state, counted, self._progress))

    def save(self) -> None:
        """Keep the counters: only groups with new rows report again after a restart."""
        text = counters(self._spark)
        for launch in self._launches:
            launch.folder.write_counters(text)

    def _restore(self) -> None:
        """All queries of a job save the same text."""
        text = next(
            filter(None, (launch.folder.read_counters() for launch in self._launches)), None
        )
        if text is not None:
            restore_counters(self._spark, text)


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
