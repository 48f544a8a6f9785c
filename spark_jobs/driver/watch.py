"""The loop of a running job: poll the queries, report, save counters, carry out admin commands."""

import contextlib
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from pyspark.sql import SparkSession

from spark_jobs.driver.admin import End, carry_out
from spark_jobs.driver.console import Console
from spark_jobs.driver.executors import Executors
from spark_jobs.driver.launch import OpenQuery, open_query
from spark_jobs.driver.ownership import BEAT_S
from spark_jobs.driver.queries import PlannedJob
from spark_jobs.driver.query_life import EPOCH_WAIT_S, QueryLife, stop_queries
from spark_jobs.driver.replays import Replays
from spark_jobs.driver.report import JobReport
from spark_jobs.driver.rescale_record import refuse_rescaling, settle_rescale
from spark_jobs.driver.state_lookups import StateLookups
from spark_jobs.driver.topics.inputs import initial_content
from spark_jobs.embedded.process import Child
from spark_jobs.errors import KafkaError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.options.spark import has_executors
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.settings import epoch_words
from spark_jobs.status import State
from spark_jobs.streaming.failure import JavaError
from spark_jobs.streaming.manifest import COUNTERS
from spark_jobs.streaming.object_store import check_store, reading

POLL_S = 0.25
REPORT_EVERY_S = 1.0
SAVE_EVERY_S = 10.0
PARTITIONS_EVERY_S = 60.0
EXECUTORS_EVERY_S = 5.0


def open_watch(
    spark: SparkSession, job: PlannedJob, report: JobReport, console: Console
) -> "Watch":
    """Open the checkpoints of all queries, or of none; their status continues the counters."""
    check_store(spark, job.settings.checkpoint)
    words = epoch_words(job.settings.epoch_written, list(job.sinks))
    with reading(job.settings.checkpoint):  # what is wrong with a store shows up here
        settled = settle_rescale(spark, job.settings.checkpoint)
    if settled is not None:
        console.say(settled)
    queries: list[OpenQuery] = []
    with ExitStack() as opened:
        for name, sink in job.sinks.items():
            query = open_query(spark, name, sink, job.settings, words.get(name))
            opened.callback(query.folder.unlock)
            queries.append(query)
        refuse_rescaling(spark, job.settings.checkpoint)
        for query in queries:
            loads = initial_content(scans(query.reading), query.manifest.scans)
            report.start_from(query.name, loads, query.folder.next_epoch)
            report.read_topics(query.name, scans(query.reading))
        # every checkpoint of the job has the same counters: the first one found is enough
        saved = next(filter(None, (query.folder.read(COUNTERS) for query in queries)), None)
        if saved is not None:
            Kernel.of(spark).restore_counters(spark, saved)
        report.write("starting", Kernel.of(spark).counters(spark))
        opened.pop_all()
    replays = Replays(job.settings.status_dir, job.text, Child)
    lookups = StateLookups(job.settings, job.sinks, Child)
    lives = [query.life() for query in queries]
    watch = Watch(spark, queries, lives, report, replays, lookups, console)
    watch.tell_notes()
    return watch


class Timers:
    """Actions that repeat, each a pair of an interval in seconds and what to do."""

    def __init__(self, *actions: tuple[float, Callable[[], None]]) -> None:
        self._actions = actions
        self._due = [time.monotonic() + every_s for every_s, _ in actions]

    def run_due(self) -> None:
        for i, (every_s, action) in enumerate(self._actions):
            if time.monotonic() >= self._due[i]:
                self._due[i] = time.monotonic() + every_s
                action()


@dataclass(slots=True)
class Watch:
    """Polls the queries of one job until it ends."""

    _spark: SparkSession
    _queries: Sequence[OpenQuery]
    _lives: Sequence[QueryLife]
    _report: JobReport
    _replays: Replays
    _lookups: StateLookups
    _console: Console
    _progress: dict[str, Mapping[str, Any]] = field(default_factory=dict)  # also during a restart
    _executors: Executors = field(default_factory=Executors)
    _end: End | None = None  # an admin command has ended the job

    def run(self, stop: threading.Event) -> None:
        """Run until all queries have finished, `stop` is set or an admin command ends the job.

        Raises the error of a query that failed for good.
        """
        try:
            self._poll_until(stop)
        except BaseException:
            with contextlib.suppress(Exception):  # a JVM that is gone runs no queries
                stop_queries(self._spark, self._lives, wait_s=0)
            raise
        finally:
            self._replays.stop()
            self._lookups.stop()
            self._report.replay = self._replays.status
        if self._end is not None or stop.is_set():
            is_cut = self._end == "stop"
            self._console.say("stopping ..." if is_cut else "stopping after the running epoch ...")
            self._write_status("draining")
            stop_queries(self._spark, self._lives, wait_s=0 if is_cut else EPOCH_WAIT_S)
        self._write_status("stopped")
        self._save_counters()
        for query in self._queries:
            with contextlib.suppress(JavaError):
                query.ownership.release()

    def close(self) -> None:
        """Unlock the checkpoints of ended queries when the JVM outlives the job."""
        for query, life in zip(self._queries, self._lives, strict=True):
            with contextlib.suppress(Exception):  # a JVM that is gone holds no locks
                if not life.is_active:
                    query.folder.unlock()

    def _poll_until(self, stop: threading.Event) -> None:
        looking = [
            (query.discovery_ms / 1000, partial(self._discover, query, life))
            for query, life in zip(self._queries, self._lives, strict=False)
            if query.discovery_ms is not None
        ]
        timers = Timers(
            (REPORT_EVERY_S, self._report_and_take_commands),
            (BEAT_S, self._beat),
            (SAVE_EVERY_S, self._save_counters),
            (PARTITIONS_EVERY_S, self._refresh_partitions),
            (EXECUTORS_EVERY_S, self._watch_executors),
            *looking,
        )
        while self._end is None and not stop.is_set():
            for life in self._lives:
                self._poll(life)
            if all(life.phase == "finished" for life in self._lives):
                return
            timers.run_due()
            stop.wait(POLL_S)

    def _poll(self, life: QueryLife) -> None:
        before = life.restarts.total
        life.poll()
        if life.restarts.total > before:
            self._console.say(f"{life.restarts}: {life.failure}")
        self.tell_notes()

    def tell_notes(self) -> None:
        """Say what has changed about the queries, and show the topics that they read by now."""
        for query in self._queries:
            for note in query.notes:
                self._console.say(note)
            if query.notes:
                self._report.read_topics(query.name, scans(query.reading))
            query.notes.clear()

    def _discover(self, query: OpenQuery, life: QueryLife) -> None:
        """Restart a query whose patterns match new topics; an outage is the queries' to report."""
        with contextlib.suppress(KafkaError):
            if life.is_active and query.has_new_topics():
                life.renew(self._spark)

    def _report_and_take_commands(self) -> None:
        self._write_status("running")
        folder = self._report.folder
        self._end = carry_out(self._spark, folder, self._replays, self._lookups)

    def _beat(self) -> None:
        """Raises StateError once another driver has the checkpoint; a disk error is ignored."""
        for query in self._queries:
            with contextlib.suppress(JavaError):
                query.ownership.beat()

    def _refresh_partitions(self) -> None:
        """Skip this round if the broker is down; the queries report outages."""
        for query in self._queries:
            with contextlib.suppress(KafkaError):
                query.refresh_partitions()

    def _watch_executors(self) -> None:
        """Executors come and go; Spark alone would leave new ones idle."""
        if not has_executors(str(self._spark.sparkContext.master)):
            return
        kernel = Kernel.of(self._spark)
        self._executors.see(kernel.executors(self._spark), time.monotonic())
        for query in self._queries:
            kernel.spread_state(self._spark, query.name)

    def _write_status(self, state: State) -> None:
        """Write the status and show it; a full disk there does not end the job."""
        kernel = Kernel.of(self._spark)
        for life in self._lives:
            if (latest := life.observe(kernel)) is not None:
                self._progress[life.name] = latest
        counted, waits = kernel.counters(self._spark), kernel.registry_waits()
        self._report.replay = self._replays.status
        with contextlib.suppress(OSError):
            self._console.show(
                self._report.write(state, counted, self._progress, waits=waits, lives=self._lives)
            )

    def _save_counters(self) -> None:
        """Save the counters in each checkpoint, so that the next driver counts on from them.

        No result depends on them, so a failed write is ignored; Spark's own writes to the same
        disk fail the query.
        """
        text = Kernel.of(self._spark).saved_counters(self._spark)
        for query in self._queries:
            with contextlib.suppress(JavaError):
                query.folder.write(COUNTERS, text)
