"""A job on one screen: SQL text to plans, plans to queries, queries watched until they end."""

import contextlib
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Literal

from pyspark.sql import SparkSession

from spark_jobs.commands import discard
from spark_jobs.driver.console import Console
from spark_jobs.driver.launch import Launch, shape
from spark_jobs.driver.replays import Replays
from spark_jobs.driver.report import JobReport
from spark_jobs.driver.rights import check_access, missing_acl
from spark_jobs.driver.sidecar import check_port, sidecar
from spark_jobs.driver.watch import Watch
from spark_jobs.embedded.process import Child, stop_signals
from spark_jobs.errors import ConfigError, RejoinError
from spark_jobs.job_record import write_job
from spark_jobs.kernel.build import connector_jars, kernel_jar
from spark_jobs.plan.nodes.physical import KafkaSink, QueryPlan
from spark_jobs.plan.planner import plan
from spark_jobs.plan.text.graph import job_record
from spark_jobs.settings import (
    JobSettings,
    Overrides,
    epoch_words,
    job_settings,
    read_environment,
    read_sql,
)
from spark_jobs.sql.bind.binder import Job, bind
from spark_jobs.streaming.class_archive import DUMP_WITHIN_S
from spark_jobs.streaming.query import open_gate
from spark_jobs.streaming.session import (
    JVM_LOG,
    start_session,
    stop_session,
)

STOP_WITHIN_S = 10


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
) -> Watch:
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
