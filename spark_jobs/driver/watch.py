"""The loop of a running job: it polls the queries, reports, saves and answers admin verbs."""

import contextlib
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.driver.admin import End, obey
from spark_jobs.driver.console import Console
from spark_jobs.driver.launch import Launch
from spark_jobs.driver.ownership import BEAT_S
from spark_jobs.driver.replays import Replays
from spark_jobs.driver.report import Counters, JobReport, read_progress
from spark_jobs.errors import KafkaError
from spark_jobs.status import State
from spark_jobs.streaming.failure import JavaError
from spark_jobs.streaming.query import EPOCH_WAIT_S, QueryLife, stop_queries
from spark_jobs.streaming.session import (
    counters,
    jvm_counts,
    registry_waits,
    restore_counters,
)

POLL_S = 0.1
REPORT_EVERY_S = 1.0
SAVE_EVERY_S = 10.0
PARTITIONS_EVERY_S = 60.0


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
