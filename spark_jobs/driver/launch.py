"""Opening a query's checkpoint, for a first start or a restart, and starting the query on it."""

import uuid
from dataclasses import dataclass, replace
from typing import Any

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.access.topics import open_topics
from spark_jobs.driver.ledgers import EpochWritten, Ledgers
from spark_jobs.driver.ownership import Ownership
from spark_jobs.driver.queries import is_bounded, needs_clock, present
from spark_jobs.driver.query_life import QueryLife
from spark_jobs.driver.real_time import (
    check_barriers,
    check_checkpoint,
    check_master,
    marks_ms,
    settle_epoch,
    slots,
)
from spark_jobs.driver.restarts import Restarts
from spark_jobs.driver.topics import inputs
from spark_jobs.driver.topics.recreated_topics import follow_recreated_topics
from spark_jobs.driver.topics.topic_patterns import (
    first_topics,
    follow_topics,
    has_new_topics,
    patterned,
)
from spark_jobs.driver.verdict import Present, accepted, judge, refuse, written_now
from spark_jobs.errors import RejoinError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.build import build_query
from spark_jobs.operators.lookup import check_lookups
from spark_jobs.operators.running import Running
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.plan.strategy.matched_topics import MatchedTopics, with_topics
from spark_jobs.settings import JobSettings, RealTime
from spark_jobs.streaming.failure import java_failures
from spark_jobs.streaming.manifest import VERSION, CheckpointFolder, Manifest


def open_query(
    spark: SparkSession,
    name: str,
    sink: KafkaSink,
    settings: JobSettings,
    epoch_written: EpochWritten | None = None,
) -> "OpenQuery":
    """Take the checkpoint of a query; raises StateError if it belongs to another driver or job."""
    folder = CheckpointFolder.open(spark, settings.checkpoint, name)
    ownership = Ownership.take(folder)
    try:
        now, found = present(sink, settings), folder.read_manifest()
        notes: list[str] = []
        if found is None:
            matched = first_topics(sink)
            reading = with_topics(sink, matched)
            manifest = _new_manifest(name, sink, reading, settings, now, matched)
        else:
            differing = judge(found, now, len(folder.committed_offsets()) or None)
            refuse(name, differing)
            notes = [f"query {name}: {d.text()}" for d in differing]
            manifest = accepted(found, now)
            reading = with_topics(sink, manifest.matched_topics)
        manifest = _completed(spark, reading, settings, manifest)
        if manifest != found:
            folder.write_manifest(manifest)
    except BaseException:
        folder.unlock()
        raise
    ledgers = Ledgers(folder, ownership, epoch_written)
    query = OpenQuery(
        spark, name, sink, settings, folder, ownership, ledgers, manifest, reading, notes
    )
    try:
        query.follow_topics()
    except BaseException:
        folder.unlock()
        raise
    return query


@dataclass(slots=True)
class OpenQuery:
    """A query and its checkpoint, which this driver owns; its `life` starts and restarts it.

    `reading`: the plan with the topics that its patterns have matched. `notes`: what has changed
    about the job since the checkpoint was written, and which topics are new.
    """

    spark: SparkSession
    name: str
    sink: KafkaSink
    settings: JobSettings
    folder: CheckpointFolder
    ownership: Ownership
    ledgers: Ledgers
    manifest: Manifest
    reading: KafkaSink
    notes: list[str]

    def life(self) -> QueryLife:
        """The query, not started yet."""
        return QueryLife(
            name=self.name,
            start=self._start,
            remaining=self._remaining if is_bounded(self.sink) else None,
            ended=self._ended,
            restarts=Restarts(self.settings.restarts),
            recovers=self._recovers,
            live=self.settings.real_time is not None,
            held=Kernel.of(self.spark).held_queries,
        )

    def refresh_partitions(self) -> None:
        """Give the clock the partition counts: a new partition holds the watermark back."""
        if needs_clock(self.sink):
            counts: dict[str, int] = {}
            for scan in scans(self.reading):
                counts |= inputs.partition_counts(scan)
            inputs.set_partitions(self.spark, self.name, scans(self.reading), counts)

    @property
    def discovery_ms(self) -> int | None:
        """How often topics are looked for while the query runs; None for never."""
        every = [scan.discovery_ms for scan in patterned(self.sink) if scan.discovery_ms]
        return None if is_bounded(self.sink) else min(every, default=None)

    def has_new_topics(self) -> bool:
        """Whether its patterns match topics that it does not read yet."""
        return has_new_topics(self.sink, self.manifest)

    def follow_topics(self) -> None:
        """Read the topics that the patterns match by now; a bounded query keeps its first ones."""
        if not patterned(self.sink) or is_bounded(self.sink):
            return
        before, read = self.manifest, _topics(self.reading)
        self.manifest, self.reading = follow_topics(
            self.spark, self.sink, self.folder, before, self.settings.goes_on_after_data_loss
        )
        if self.manifest != before:
            self.folder.write_manifest(self.manifest)
        if new := _topics(self.reading) - read:
            self.notes.append(f"query {self.name}: reads {', '.join(sorted(new))} from here on")
        if gone := read - _topics(self.reading):
            self.notes.append(f"query {self.name}: {', '.join(sorted(gone))} was deleted")

    def _start(self, ending: bool) -> StreamingQuery:
        bounded, settings = is_bounded(self.sink), self.settings
        with java_failures(self.name):
            self.ownership.check()
            self.folder.check_logs()
            check_lookups(self.sink, Kernel.of(self.spark))
            self.follow_topics()
            if settings.goes_on_after_data_loss:
                self.manifest = follow_recreated_topics(
                    self.spark, scans(self.reading), self.folder, self.manifest, bounded
                )
            live = settings.real_time
            has_steps = live is not None and self.sink.guarantee == "exactly-once"
            check_barriers(self.folder, self.name, has_steps=has_steps)
            running = Running(
                spark=self.spark,
                query=self.name,
                manifest=self.manifest,
                max_offsets=settings.max_offsets_per_trigger,
                ending=ending,
                generation=self.ownership.own.generation,
                heartbeat_ms=settings.ledger_heartbeat_ms,
                goes_on_after_data_loss=settings.goes_on_after_data_loss,
                folder=self.folder.path,
                live=None if live is None else self._prepare_real_time(live),
            )
            with self.ledgers.taken_over(self.reading, running) as numbered:
                self._record_ledgers()
                self.refresh_partitions()
                self.spark.conf.set("spark.sql.shuffle.partitions", self.manifest.parallelism)
                writer = build_query(self.reading, numbered).queryName(self.name)
                writer = writer.option("checkpointLocation", self.folder.path)
            if bounded:
                return writer.trigger(availableNow=True).start()
            if live is not None:
                return _start_live(writer, live)
            interval = f"{settings.trigger_interval_ms} milliseconds"
            return writer.trigger(processingTime=interval).start()

    def _prepare_real_time(self, live: RealTime) -> RealTime:
        """Check that the query can run in real-time mode; returns how often watermarks do come."""
        needed = slots(self.reading, self.manifest.parallelism)
        check_master(str(self.spark.sparkContext.master), self.name, needed)
        has_steps = self.sink.guarantee == "exactly-once"
        if has_steps:
            check_checkpoint(self.folder, self.name)
        settle_epoch(self.folder, self.name, self.manifest)
        every_ms = marks_ms(live.marks_ms, sum(needed.partitions), self.manifest.groups)
        return replace(live, marks_ms=every_ms, commit_ms=live.commit_ms if has_steps else 0)

    def _record_ledgers(self) -> None:
        """Record from which epoch on results are written without epoch ledgers, if they are."""
        without = self.sink.guarantee != "exactly-once"
        first = self.manifest.unledgered
        now = (self.folder.next_epoch if first is None else first) if without else None
        if now != first:
            self.manifest = self.manifest.model_copy(update={"unledgered": now})
            self.folder.write_manifest(self.manifest)

    def _remaining(self) -> int:
        committed = [at for at in self.folder.committed_offsets() if at is not None]
        return inputs.unread_records(scans(self.reading), self.manifest.scans, committed)

    def _ended(self) -> bool:
        return not needs_clock(self.sink) or self.folder.has_ended()

    def _recovers(self, error: RejoinError) -> bool:
        self.ownership.check()  # a driver that was replaced fails in many ways
        lost = error.code in ("SOURCE_DATA_LOST", "TOPIC_RECREATED") or (
            error.code == "TOPIC_DELETED" and bool(patterned(self.sink))
        )
        return lost and self.settings.goes_on_after_data_loss


def _start_live(writer: DataStreamWriter, live: RealTime) -> StreamingQuery:
    updating: Any = writer.outputMode("update")  # PySpark's types do not know the trigger
    started: StreamingQuery = updating.trigger(realTime=f"{live.epoch_ms} milliseconds").start()
    return started


def _topics(sink: KafkaSink) -> set[str]:
    return {topic.name for scan in scans(sink) for topic in scan.topics}


def _new_manifest(
    name: str,
    sink: KafkaSink,
    reading: KafkaSink,
    settings: JobSettings,
    now: Present,
    matched: MatchedTopics,
) -> Manifest:
    topics = {t.index: t.name for scan in scans(sink) for t in scan.topics}
    return Manifest(
        version=VERSION,
        checkpoint=uuid.uuid4().hex,
        query=name,
        topics=tuple(name for _, name in sorted(topics.items())),
        groups=now.groups,
        parallelism=settings.cores(),
        state=now.digest,
        scans={scan.id: inputs.first_start(scan) for scan in scans(reading)},
        plan=now.plan,
        written_by=written_now(),
        matched_topics=matched,
        even_groups=True,
    )


def _completed(
    spark: SparkSession, sink: KafkaSink, settings: JobSettings, found: Manifest
) -> Manifest:
    """The manifest with the fields that are new or that an older driver has not recorded."""
    added: dict[str, Any] = {}
    if not found.topic_ids:
        added["topic_ids"] = inputs.topic_ids(spark, found.query, scans(sink))
    if found.sink_partitions is None:
        with open_topics(sink.table, [sink.topic], sink.properties) as topics:
            added["sink_partitions"] = topics.partition_counts()[sink.topic]
    if found.ledgers is None:
        added["ledgers"] = settings.name
    return found.model_copy(update=added)
