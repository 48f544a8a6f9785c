"""A running job; a background thread watches it until its inputs end, it fails or is stopped."""

import os
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import Self, TextIO

from pyspark.sql import SparkSession

from spark_jobs.api.session import job_session
from spark_jobs.driver.console import TextConsole, progress_line
from spark_jobs.driver.progress import Progress
from spark_jobs.driver.queries import plan_job
from spark_jobs.driver.report import JobReport
from spark_jobs.driver.rights import check_access
from spark_jobs.driver.run import report_end, reporting_failure, start_report
from spark_jobs.driver.sidecar import sidecar
from spark_jobs.driver.watch import Watch, open_watch
from spark_jobs.errors import ConfigError, RejoinError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.settings import JobSettings
from spark_jobs.sql.bind.binder import Job as BoundJob
from spark_jobs.status import JobStatus

# the kernel's gate and counters exist once per Spark application
_one_at_a_time = threading.Lock()


class RunningJob:
    """Returned by `Job.start`. As a context manager it stops the job at the end of the block."""

    def __init__(
        self,
        watch: Watch,
        report: JobReport,
        sinks: Mapping[str, KafkaSink],
        settings: JobSettings,
        ending: ExitStack,
    ) -> None:
        self.name = settings.name
        self.checkpoint = settings.checkpoint
        self.status_dir: Path = settings.status_dir
        self._watch = watch
        self._report = report
        self._sinks = sinks
        self._settings = settings
        self._ending = ending
        self._stop = threading.Event()
        self._error: RejoinError | None = None
        self._thread = threading.Thread(
            target=self._run, name=f"rejoin-{settings.name}", daemon=True
        )
        self._thread.start()

    @property
    def is_active(self) -> bool:
        return self._thread.is_alive()

    @property
    def status(self) -> JobStatus:
        """The newest status record: epochs, rows, lag, watermarks, state, errors, per query."""
        if self._report.latest is None:
            raise RejoinError("DRIVER_FAILED", "the job was started but has no status record")
        return self._report.latest

    @property
    def exception(self) -> RejoinError | None:
        """The error that ended the job; None if there is none."""
        return self._error

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait up to `timeout` seconds for the end of the job; returns whether it has ended.

        Raises:
            RejoinError: the error that ended it (docs/errors.md).
        """
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return not self.is_active

    def stop(self) -> None:
        """Graceful stop: running epochs may finish, for up to 20 s. The session stays open."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def __repr__(self) -> str:
        """The state of the job and a line per query, for notebooks."""
        status = self.status
        lines = [f"<RunningJob {self.name}: {status.state}>"]
        if status.error is not None:
            lines.append(f"{status.error.code} {status.error.message}")
        return "\n  ".join([*lines, *(progress_line(q, Progress()) for q in status.queries)])

    def _run(self) -> None:
        try:
            with self._ending:
                with reporting_failure(self._report, self._sinks, self._settings):
                    self._watch.run(self._stop)
                report_end(self._report, "stopped")
        except RejoinError as error:
            self._error = error


def start_job(
    spark: SparkSession, job: BoundJob, text: str, settings: JobSettings, progress: TextIO | None
) -> RunningJob:
    """Start `job`, whose text is `text`, in a checked session.

    Raises RejoinError for errors before the first epoch.
    """
    planned = plan_job(job, text, settings)
    sinks = planned.sinks
    with ExitStack() as ending:
        if not _one_at_a_time.acquire(blocking=False):
            raise ConfigError(
                "JOB_RUNNING",
                f"{settings.name} cannot start: another job runs in this Spark application",
                "put the INSERTs into one job, stop the other job, or use another process",
            )
        ending.callback(_one_at_a_time.release)
        console = TextConsole(progress or ending.enter_context(Path(os.devnull).open("w")))
        report = start_report(planned, console)
        ending.enter_context(sidecar(settings, console))
        with reporting_failure(report, sinks, settings):
            check_access(sinks)
            session = job_session(spark, settings)
            kernel = Kernel.of(session)
            kernel.reset_counters(session)
            kernel.open_gate()
            watch = open_watch(session, planned, report, console)
        ending.callback(watch.close)
        return RunningJob(watch, report, sinks, settings, ending.pop_all())
