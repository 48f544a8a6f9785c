"""One planned INSERT on its checkpoint: first start or restart, with everything its life needs."""

import hashlib
import json

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.errors import UnsupportedError
from spark_jobs.operators.build import build_query
from spark_jobs.operators.clock import needs_clock, tell_partitions
from spark_jobs.operators.running import (
    Running,
    Scan,
    feeds_gate,
    operator_id,
    scans,
    stateful_nodes,
)
from spark_jobs.plan.node_parts import ReadFrom
from spark_jobs.plan.physical import (
    IntervalJoin,
    KafkaScan,
    KafkaSink,
    RegularJoin,
    Stateful,
    TemporalJoin,
)
from spark_jobs.plan.plan_json import to_json
from spark_jobs.settings import JobSettings
from spark_jobs.streaming.kafka import KafkaEdge, Limit
from spark_jobs.streaming.manifest import CheckpointFolder, Manifest, ScanStart
from spark_jobs.streaming.query import QueryLife
from spark_jobs.streaming.report import OperatorShape, QueryShape

# what may change about an operator without touching the state it has written
_NOT_STATE = ("id", "inputs", "output", "gate", "changelogMode", "uniqueKeys")
_TWO_SIDED = (RegularJoin, IntervalJoin, TemporalJoin)


class Launch:
    """Opens the query's checkpoint, and starts the query on it as often as its life asks."""

    def __init__(
        self, spark: SparkSession, sink: KafkaSink, name: str, settings: JobSettings
    ) -> None:
        self._spark = spark
        self._sink = sink
        self._name = name
        self._settings = settings
        self._scans = scans(sink)
        self.folder = CheckpointFolder(spark, settings.checkpoint, name)
        self.folder.lock()
        self._manifest = self._open()

    def life(self) -> QueryLife:
        """The query, not started yet."""
        bounded = is_bounded(self._sink)
        return QueryLife(
            name=self._name,
            start=self._start,
            remaining=self._remaining if bounded else None,
            flushes=needs_clock(self._sink),
        )

    def refresh_partitions(self) -> None:
        """Tell the clock of topics that have grown; a new partition holds the watermark back."""
        if needs_clock(self._sink):
            counts: dict[str, int] = {}
            for scan in self._scans:
                with _edge(scan.node) as edge:
                    counts |= edge.partition_counts()
            tell_partitions(self._spark, self._name, self._sink, counts)

    def _open(self) -> Manifest:
        topics = {t.index: t.name for scan in self._scans for t in scan.node.topics}
        listed = tuple(name for _, name in sorted(topics.items()))
        state = _state_identity(self._sink)
        found = self.folder.read_manifest()
        if found is not None:
            found.check(listed, self._settings.key_groups, self._settings.parallelism, state)
            return found
        manifest = Manifest(
            checkpoint=Manifest.new_identity(),
            query=self._name,
            topics=listed,
            groups=self._settings.key_groups,
            parallelism=self._settings.cores(),
            state=state,
            scans={scan.id: _scan_start(scan) for scan in self._scans},
        )
        self.folder.write_manifest(manifest)
        return manifest

    def _start(self, ending: bool) -> StreamingQuery:
        running = Running(
            spark=self._spark,
            query=self._name,
            job=self._settings.name,
            manifest=self._manifest,
            max_offsets=self._settings.max_offsets_per_trigger,
            repeated_epoch=self.folder.repeated_epoch(),
            ending=ending,
        )
        self.refresh_partitions()
        self._spark.conf.set("spark.sql.shuffle.partitions", self._manifest.parallelism)
        writer = build_query(self._sink, running).queryName(self._name)
        writer = writer.option("checkpointLocation", self.folder.path)
        if is_bounded(self._sink):
            writer = writer.trigger(availableNow=True)
        else:
            interval = f"{self._settings.trigger_interval_ms} milliseconds"
            writer = writer.trigger(processingTime=interval)
        return writer.start()

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


def _state_identity(sink: KafkaSink) -> str:
    """A digest of everything the cells in the state depend on."""
    nodes = [_state_of(node) for node in stateful_nodes(sink)]
    return hashlib.sha256(json.dumps(nodes, sort_keys=True).encode()).hexdigest()


def _state_of(node: Stateful) -> dict[str, object]:
    timing = node.timing
    streams = [[stream.topic for stream in side] for side in timing.inputs]
    kept = {k: v for k, v in to_json(node).items() if k not in (*_NOT_STATE, "timing")}
    reads = [[i.side, list(i.key), [named.expr for named in i.row]] for i in node.inputs]
    # whether rows carry the time of their last change, not how long they live
    expires = [ttl > 0 for ttl in timing.ttl_ms]
    return {**kept, "reads": reads, "streams": streams, "expires": expires}
