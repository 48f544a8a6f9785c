"""A job in a JVM of its own, from its first status record to its last."""

import contextlib
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Literal

from spark_jobs.commands import discard
from spark_jobs.driver.console import Console
from spark_jobs.driver.queries import PlannedJob, shape
from spark_jobs.driver.real_time import check_master, slots
from spark_jobs.driver.report import JobReport
from spark_jobs.driver.rights import check_access, missing_acl
from spark_jobs.driver.sidecar import check_port, sidecar
from spark_jobs.driver.watch import open_watch
from spark_jobs.embedded.process import stop_signals
from spark_jobs.errors import RejoinError
from spark_jobs.job_record import write_job
from spark_jobs.kernel.build import connector_jars, jdbc_jars, kernel_jar
from spark_jobs.kernel.calls import Kernel
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import looks_up
from spark_jobs.settings import JobSettings
from spark_jobs.streaming.class_archive import DUMP_WITHIN_S
from spark_jobs.streaming.failure import JavaError, java_text
from spark_jobs.streaming.object_store import jars_for
from spark_jobs.streaming.session import JVM_LOG, Launch, stop_session

STOP_WITHIN_S = 10


def run(job: PlannedJob, console: Console) -> None:
    """Run until the inputs end or a signal stops the job; raises the error that ended it."""
    settings = job.settings
    jars = [kernel_jar(), *connector_jars(), *jars_for(settings.checkpoint)]
    if any(looks_up(sink) for sink in job.sinks.values()):
        jars += jdbc_jars()
    makes_archive = settings.environment.class_archive == "make"
    within_s = DUMP_WITHIN_S if makes_archive else STOP_WITHIN_S
    check_port(settings)
    report = start_report(job, console)
    with sidecar(settings, console), stop_signals() as early:
        with ExitStack() as ending, reporting_failure(report, job.sinks, settings):
            launch = Launch.of(settings_for_start(job), jars)
            ending.callback(launch.jvm.kill)
            check_access(job.sinks)  # while the JVM comes up
            spark = launch.session()
            ending.callback(stop_session, spark, within_s)
            if not early.is_set():
                Kernel.of(spark).open_gate()
                with stop_signals() as stop:  # again: SparkContext has replaced the handler
                    open_watch(spark, job, report, console).run(stop)
        report_end(report, "stopped")


def settings_for_start(job: PlannedJob) -> JobSettings:
    """The settings with as many local threads as the job occupies, if it runs in real-time mode."""
    settings = job.settings
    if settings.real_time is None:
        return settings
    needed = [(name, slots(sink, settings.cores())) for name, sink in job.sinks.items()]
    threads = sum(each.with_room for _, each in needed)
    sized = replace(settings, threads=threads)
    for name, each in needed:
        check_master(sized.spark_master(), name, each)
    return sized


def start_report(job: PlannedJob, console: Console) -> JobReport:
    """Show the settings, and write the first status record and the job record."""
    settings = job.settings
    shapes = [shape(sink, name) for name, sink in job.sinks.items()]
    report = JobReport(settings.name, settings.status_dir, shapes, record=job.record)
    for name, value in settings.table():
        console.say(f"{name} = {value}")
    discard(settings.status_dir)  # commands for an earlier driver
    report.write("starting")
    write_job(settings.status_dir, job.record)
    return report


@contextmanager
def reporting_failure(
    report: JobReport, sinks: Mapping[str, KafkaSink], settings: JobSettings
) -> Iterator[None]:
    """Write an error of the block into the status record; it leaves the block as a RejoinError.

    The JVM must outlive the block: it knows what went wrong in Java.
    """
    try:
        yield
    except RejoinError as error:
        named = missing_acl(error, sinks, settings.name) or error
        report_end(report, "failed", named)
        raise named from error.__cause__
    except Exception as error:
        log = settings.status_dir / JVM_LOG  # a session of the user's own logs elsewhere
        where = f"; see {log}" if log.exists() else ""
        told, cause = repr(error), error
        if isinstance(error, JavaError):  # the JVM has ended when its text is asked for later
            told, cause = java_text(error), RuntimeError(str(error))
        failed = RejoinError("DRIVER_FAILED", f"{told}{where}")
        report_end(report, "failed", failed)
        raise failed from cause.with_traceback(error.__traceback__)


def report_end(
    report: JobReport, state: Literal["stopped", "failed"], error: RejoinError | None = None
) -> None:
    """Write the last status record; a full disk must not hide the error that ended the job."""
    with contextlib.suppress(OSError):
        report.write(state, error=error)
