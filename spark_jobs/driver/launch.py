"""One planned INSERT on its checkpoint: first start or restart, with everything its life needs."""

import json
from typing import Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.driver.ownership import Ownership
from spark_jobs.driver.report import Loads, OperatorShape, QueryShape
from spark_jobs.driver.verdict import Present, accepted, judge, refuse, written_now
from spark_jobs.errors import ConfigError, RejoinError, StateError, UnsupportedError
from spark_jobs.operators.build import build_query
from spark_jobs.operators.clock import needs_clock, tell_partitions
from spark_jobs.operators.kafka_sink import describe, is_dense
from spark_jobs.operators.running import (
    Running,
    Scan,
    feeds_gate,
    operator_id,
    scans,
)
from spark_jobs.plan.check.fingerprint import fingerprint, stateful_nodes
from spark_jobs.plan.check.state_digest import state_digest
from spark_jobs.plan.nodes.parts import ReadFrom
from spark_jobs.plan.nodes.physical import (
    IntervalJoin,
    KafkaScan,
    KafkaSink,
    RegularJoin,
    Stateful,
    TemporalJoin,
)
from spark_jobs.settings import JobSettings
from spark_jobs.streaming.failure import java_failures
from spark_jobs.streaming.kafka import KafkaEdge, Limit, Offsets
from spark_jobs.streaming.manifest import VERSION, CheckpointFolder, Manifest, ScanStart
from spark_jobs.streaming.query import QueryLife
from spark_jobs.streaming.restart import Restarts
from spark_jobs.streaming.session import kernel

_TWO_SIDED = (RegularJoin, IntervalJoin, TemporalJoin)


class Launch:
    """Opens the query's checkpoint, and starts the query on it as often as its life asks.

    `epoch_written`: a person's word, where the ledger of the epoch to repeat is gone.
    """

    def __init__(
        self,
        spark: SparkSession,
        sink: KafkaSink,
        name: str,
        settings: JobSettings,
        epoch_written: Literal["yes", "no"] | None = None,
    ) -> None:
        self._epoch_written = epoch_written
        self._spark = spark
        self._sink = sink
        self.name = name
        self._settings = settings
        self._scans = scans(sink)
        self.folder = CheckpointFolder(spark, settings.checkpoint, name)
        self.ownership = Ownership(self.folder)
        self.notes: list[str] = []  # what is new about the job since the checkpoint was written
        try:
            self._manifest = self._open()
        except BaseException:
            self.close()
            raise
        self._has_ledgers = sink.guarantee != "exactly-once"

    def life(self) -> QueryLife:
        """The query, not started yet."""
        bounded = is_bounded(self._sink)
        return QueryLife(
            name=self.name,
            start=self._start,
            remaining=self._remaining if bounded else None,
            flushes=needs_clock(self._sink),
            restarts=Restarts(self._settings.restarts),
            recovers=self._recovers,
        )

    def loads(self) -> Loads:
        """Of tables that probe rows wait for: what is still there of their initial content."""
        found: dict[str, dict[int, tuple[int, int]]] = {}
        for scan in self._scans:
            start = self._manifest.scans[scan.id]
            if not start.loaded:
                continue
            with _edge(scan.node) as edge:
                there = edge.exact_starts(Limit("earliest-offset"))
            for topic, ends in start.loaded.items():
                declared, earliest = start.starts.get(topic, {}), there.get(topic, {})
                found[topic] = {
                    p: (min(max(declared.get(p, 0), earliest.get(p, 0), 0), end), end)
                    for p, end in ends.items()
                }
        return found

    def close(self) -> None:
        """Let another driver have the checkpoint, now that the query has ended."""
        self.folder.unlock()

    def refresh_partitions(self) -> None:
        """Tell the clock of topics that have grown; a new partition holds the watermark back."""
        if needs_clock(self._sink):
            counts: dict[str, int] = {}
            for scan in self._scans:
                with _edge(scan.node) as edge:
                    counts |= edge.partition_counts()
            tell_partitions(self._spark, self.name, self._sink, counts)

    def _open(self) -> Manifest:
        now = present(self._sink, self._settings)
        found = self.folder.read_manifest()
        if found is None:
            manifest = self._first(now)
        else:
            read = self.folder.committed_offsets()
            differing = judge(found, now, len(read) or None)
            refuse(self.name, differing)
            self.notes = [f"query {self.name}: {d.text()}" for d in differing]
            manifest = self._completed(accepted(found, now))
        if manifest != found:
            self.folder.write_manifest(manifest)
        return manifest

    def _first(self, now: Present) -> Manifest:
        topics = {t.index: t.name for scan in self._scans for t in scan.node.topics}
        return Manifest(
            version=VERSION,
            checkpoint=Manifest.new_identity(),
            query=self.name,
            topics=tuple(name for _, name in sorted(topics.items())),
            groups=now.groups,
            parallelism=self._settings.cores(),
            state=now.digest,
            scans={scan.id: _scan_start(scan) for scan in self._scans},
            topic_ids=self._topic_ids(),
            sink_partitions=self._sink_partitions(),
            ledgers=self._settings.name,
            plan=now.plan,
            written_by=written_now(),
        )

    def _completed(self, found: Manifest) -> Manifest:
        """With what drivers of older releases did not note."""
        if not found.topic_ids:
            found = found.model_copy(update={"topic_ids": self._topic_ids()})
        if found.sink_partitions is None:
            found = found.model_copy(update={"sink_partitions": self._sink_partitions()})
        if found.ledgers is None:
            found = found.model_copy(update={"ledgers": self._settings.name})
        return found

    def _start(self, ending: bool) -> StreamingQuery:
        with java_failures(self.name):
            self.ownership.check()
            self.folder.check_logs()
            if self._settings.goes_on_after_data_loss:
                self._follow_recreated_topics()
            running = self._running(ending)
            if not self._has_ledgers:
                self._take_ledgers(running)
            self.refresh_partitions()
            self._spark.conf.set("spark.sql.shuffle.partitions", self._manifest.parallelism)
            writer = build_query(self._sink, running).queryName(self.name)
            writer = writer.option("checkpointLocation", self.folder.path)
            if is_bounded(self._sink):
                writer = writer.trigger(availableNow=True)
            else:
                interval = f"{self._settings.trigger_interval_ms} milliseconds"
                writer = writer.trigger(processingTime=interval)
            return writer.start()

    def _running(self, ending: bool) -> Running:
        return Running(
            spark=self._spark,
            query=self.name,
            manifest=self._manifest,
            max_offsets=self._settings.max_offsets_per_trigger,
            ending=ending,
            generation=self.ownership.generation,
            heartbeat_ms=self._settings.ledger_heartbeat_ms,
            goes_on_after_data_loss=self._settings.goes_on_after_data_loss,
        )

    def _take_ledgers(self, running: Running) -> None:
        """Fence the drivers before this one, and find their ledgers where they had some."""
        dense = is_dense(self._sink)
        writers = self._manifest.parallelism if dense else self._source_partitions()
        epoch, repeated = self.folder.next_epoch, self.folder.repeated_epoch() is not None
        known = self.ownership.writers
        if self.ownership.before is None and dense and epoch > 0:
            known = writers  # drivers of older releases did not say so
        word = self._epoch_written
        answered = int(
            running.kernel.takeOver(
                describe(self._sink, running), writers, epoch, repeated, known, word
            )
        )
        if word is not None and answered == 0:
            raise ConfigError(
                "EPOCH_KNOWN",
                f"query {self.name}: --epoch-written says what the epoch ledger already knows",
                hint="leave the option out",
            )
        self.ownership.has_ledgers(writers)
        self._has_ledgers = True

    def _source_partitions(self) -> int:
        """A task, hence a writer, each; and one for the markers of what is loaded."""
        found = 0
        for scan in self._scans:
            with _edge(scan.node) as edge:
                found += sum(edge.partition_counts().values()) + scan.gated
        return found

    def _sink_partitions(self) -> int:
        sink = self._sink
        with KafkaEdge(sink.table, [sink.topic], sink.properties) as edge:
            return edge.partition_counts()[sink.topic]

    def _topic_ids(self) -> dict[str, str]:
        found: dict[str, str] = {}
        for scan in self._scans:
            properties = dict(scan.node.properties)
            topics = json.dumps([topic.name for topic in scan.node.topics])
            with java_failures(self.name):
                ids = kernel(self._spark).Kernel.topicIds(json.dumps(properties), topics)
            found |= json.loads(str(ids))
        return found

    def _recovers(self, error: RejoinError) -> bool:
        self.ownership.check()  # a driver that was replaced fails in many ways
        lost = error.code in ("SOURCE_DATA_LOST", "TOPIC_RECREATED")
        return lost and self._settings.goes_on_after_data_loss

    def _follow_recreated_topics(self) -> None:
        """Read topics that were created anew from their beginning."""
        present = self._topic_ids()
        anew = [
            t for t, known in self._manifest.topic_ids.items() if present.get(t, known) != known
        ]
        if not anew:
            return
        if is_bounded(self._sink) or self.folder.repeated_epoch() is not None:
            raise StateError(
                "TOPIC_RECREATED",
                f"query {self.name}: {', '.join(anew)} was deleted and created again, and what it "
                "held then is needed to finish "
                + ("the run" if is_bounded(self._sink) else "an epoch"),
                hint="start from a new checkpoint",
            )
        starts: Offsets = {}
        for scan in self._scans:
            with _edge(scan.node) as edge:
                found = edge.exact_starts(Limit("earliest-offset"))
            starts |= {topic: at for topic, at in found.items() if topic in anew}
        self.folder.move_offsets(starts)
        self._manifest = self._manifest.model_copy(update={"topic_ids": present})
        self.folder.write_manifest(self._manifest)

    def _remaining(self) -> int:
        """Records before the ends that no committed epoch has read."""
        read = [offsets for offsets in self.folder.committed_offsets() if offsets is not None]
        left = 0
        for i, scan in enumerate(self._scans):
            start = self._manifest.scans[scan.id]
            at = read[i] if i < len(read) else start.starts
            for topic, ends in (start.ends or {}).items():
                left += sum(max(end - at[topic].get(p, 0), 0) for p, end in ends.items())
        return left


def present(sink: KafkaSink, settings: JobSettings) -> Present:
    """What a checkpoint of the query is compared with."""
    return Present(
        plan=fingerprint(sink, [(scan.id, scan.node) for scan in scans(sink)]),
        digest=state_digest(sink),
        groups=settings.key_groups,
        parallelism=settings.parallelism,
    )


def is_bounded(sink: KafkaSink) -> bool:
    """Whether the query ends by itself; raises where only some of its inputs do."""
    modes = {scan.node.table: scan.node.bounded.mode for scan in scans(sink)}
    endless = [table for table, mode in modes.items() if mode == "unbounded"]
    if endless and len(endless) < len(modes):
        raise UnsupportedError(
            "MIXED_BOUNDED_INPUTS",
            f"query into {sink.table}: {', '.join(endless)} never ends, its other input does",
            hint="give both inputs a 'scan.bounded.mode', or none",
        )
    return not endless


def shape(sink: KafkaSink, name: str) -> QueryShape:
    """What the status record shows of the plan."""
    return QueryShape(
        name=name,
        sink=sink.topic,
        tables={scan.id: scan.node.table for scan in scans(sink)},
        topics={t.name: t.index for scan in scans(sink) for t in scan.node.topics},
        operators=[_operator_shape(name, node) for node in stateful_nodes(sink)],
    )


def _operator_shape(query: str, node: Stateful) -> OperatorShape:
    gated = [scan.node for i in node.inputs if feeds_gate(node, i) for scan in scans(i)]
    return OperatorShape(
        id=operator_id(query, node),
        kind=node.kind,
        sides=("left", "right") if isinstance(node, _TWO_SIDED) else ("input",),
        tells_time=any(node.timing.inputs),
        waits=isinstance(node, TemporalJoin) and node.gate.kind != "none",
        gated=tuple(sorted({topic.index for scan in gated for topic in scan.topics})),
    )


def _scan_start(scan: Scan) -> ScanStart:
    node = scan.node
    with _edge(node) as edge:
        if node.bounded.mode == "unbounded":
            starts, ends = edge.starts(_limit(node.startup)), None
        else:
            ends = edge.ends(_limit(node.bounded))
            starts = edge.exact_starts(_limit(node.startup))
        loaded = edge.to_load(_limit(node.startup), ends) if scan.gated else None
    return ScanStart(starts=starts, ends=ends, loaded=loaded)


def _edge(scan: KafkaScan) -> KafkaEdge:
    return KafkaEdge(scan.table, [topic.name for topic in scan.topics], scan.properties)


def _limit(declared: ReadFrom) -> Limit:
    offsets = {int(p): at for p, at in (declared.offsets or {}).items()}
    return Limit.read(declared.mode, declared.timestamp_ms, offsets)
