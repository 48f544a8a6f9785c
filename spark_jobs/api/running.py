"""A started job, watched by a thread of its own until its inputs end, it fails or is stopped."""

import os
import threading
from collections.abc import Mapping
from contextlib import ExitStack
from pathlib import Path
from types import TracebackType
from typing import Self, TextIO

from pyspark.sql import SparkSession

from spark_jobs.api.session import check_session, job_session
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
from spark_jobs.sql.bind.binder import Job
from spark_jobs.status import JobStatus

# the kernel's gate and counters belong to the whole application
_one_at_a_time = threading.Lock()


class RunningJob:
    """What `Job.start` returns; as a context manager it stops the job at the end of the block."""

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
            raise RejoinError("DRIVER_FAILED", "a started job has a status")
        return self._report.latest

    @property
    def exception(self) -> RejoinError | None:
        """What the job died of, if it did."""
        return self._error

    def await_termination(self, timeout: float | None = None) -> bool:
        """Wait until the job has ended, at most `timeout` seconds; whether it has.

        Raises:
            RejoinError: what it died of, with code and hint (docs/errors.md).
        """
        self._thread.join(timeout)
        if self._error is not None:
            raise self._error
        return not self.is_active

    def stop(self) -> None:
        """Let the running epochs finish (20 s at most), then end the queries; the session stays."""
        self._stop.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def __repr__(self) -> str:
        """For notebooks: the state, and a line per query."""
        told = self.status
        lines = [f"<RunningJob {self.name}: {told.state}>"]
        if told.error is not None:
            lines.append(f"{told.error.code} {told.error.message}")
        return "\n  ".join([*lines, *(progress_line(query, Progress()) for query in told.queries)])

    def _run(self) -> None:
        try:
            with self._ending:
                with reporting_failure(self._report, self._sinks, self._settings):
                    self._watch.run(self._stop)
                report_end(self._report, "stopped")
        except RejoinError as error:
            self._error = error


def start_job(
    spark: SparkSession, job: Job, text: str, settings: JobSettings, progress: TextIO | None
) -> RunningJob:
    """`text` is the job's; what keeps it from starting is raised, a later failure is its own."""
    check_session(spark)
    planned = plan_job(job, text, settings)
    sinks = planned.sinks
    with ExitStack() as ending:
        if not _one_at_a_time.acquire(blocking=False):
            raise ConfigError(
                "JOB_RUNNING",
                f"{settings.name} cannot start: a job runs in this Spark application already",
                "put its INSERTs into the same job, stop the other one, or start a process for it",
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
