"""The status record of a running job, from Spark's progress and the kernel's counters."""

import os
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from itertools import repeat
from pathlib import Path
from typing import Any, Literal, TypeAlias

from spark_jobs import __version__
from spark_jobs.driver.query_life import QueryLife
from spark_jobs.errors import RejoinError
from spark_jobs.job_record import JobRecord, with_topics, write_job
from spark_jobs.kernel.calls import Counters, OperatorLevels, QueryCounters
from spark_jobs.plan.nodes.physical import KafkaScan
from spark_jobs.status import (
    BootstrapStatus,
    BuildStatus,
    ErrorStatus,
    JobStatus,
    LatencyStatus,
    LoadStatus,
    LookupStatus,
    OperatorStatus,
    PartitionStatus,
    QueryStatus,
    ReplayStatus,
    SideStatus,
    SourceStatus,
    State,
    now,
    write_status,
)

_UNKNOWN_TIME = -(2**63)
_PARTITIONS = 1 << 16  # source ids are topic index * this + partition
Side: TypeAlias = Literal["left", "right", "input"]
Loads: TypeAlias = Mapping[str, Mapping[int, tuple[int, int]]]
"""The initial content by topic and partition: its first offset, and the one after its last."""


@dataclass(frozen=True, slots=True)
class OperatorShape:
    """A stateful operator, with the id that the kernel's counters use.

    `tells_time`: it has a watermark. `waits`: its probe rows wait at a gate. `gated`: the indexes
    of the topics that have to be loaded before the gate opens. `asks`: it looks rows up.
    """

    id: str
    kind: str
    sides: tuple[Side, ...]
    tells_time: bool
    waits: bool = False
    gated: tuple[int, ...] = ()
    asks: bool = False


@dataclass(frozen=True, slots=True)
class QueryShape:
    """The part of a query's plan that its status shows.

    `tables` by scan id; `topics`: their indexes; `epochs`: committed before the driver started.
    """

    name: str
    sink: str
    tables: Mapping[str, str]
    topics: Mapping[str, int]
    operators: Sequence[OperatorShape]
    loads: Loads = field(default_factory=dict)
    epochs: int = 0


@dataclass
class JobReport:
    """Keeps the status record of one job up to date."""

    job: str
    folder: Path
    shapes: Sequence[QueryShape]
    started_at: datetime = field(default_factory=now)
    state: State = "starting"
    latest: JobStatus | None = None
    replay: ReplayStatus | None = None
    record: JobRecord | None = None
    _jvm: Mapping[str, Mapping[str, int]] = field(default_factory=dict)  # the last counters

    def start_from(self, query: str, loads: Loads, epochs: int) -> None:
        """Show how much of `loads` is read, and count epochs from `epochs` on."""
        self.shapes = [
            replace(shape, loads=loads, epochs=epochs) if shape.name == query else shape
            for shape in self.shapes
        ]

    def read_topics(self, query: str, read: Sequence[KafkaScan]) -> None:
        """Show the topics that the scans of a query read, which patterns have matched."""
        topics = {topic.name: topic.index for scan in read for topic in scan.topics}
        self.shapes = [
            replace(shape, topics=topics) if shape.name == query else shape for shape in self.shapes
        ]
        if self.record is not None:
            names = {scan.table: tuple(topic.name for topic in scan.topics) for scan in read}
            shown, self.record = self.record, with_topics(self.record, query, names)
            if self.record != shown:
                write_job(self.folder, self.record)

    def write(
        self,
        state: State,
        counters: Counters | None = None,
        progress: Mapping[str, Mapping[str, Any]] | None = None,
        error: RejoinError | None = None,
        waits: Mapping[str, int] | None = None,
        lives: Sequence[QueryLife] = (),
    ) -> JobStatus:
        """Write the record; without counters the queries keep their last status.

        `waits`: schema registries that do not answer, and since when, in Unix milliseconds.
        """
        self.state = state
        queries = self.latest.queries if self.latest is not None else ()
        if counters is not None:
            self._jvm = counters.jvm
            found = (query_status(s, (progress or {}).get(s.name), counters) for s in self.shapes)
            queries = tuple(_of_life(status, lives) for status in found)
        registry = self._jvm.get("registry", {})
        self.latest = JobStatus(
            job=self.job,
            pid=os.getpid(),
            started_at=self.started_at,
            updated_at=now(),
            state=state,
            error=None if error is None else _error(error),
            build=BuildStatus(version=__version__),
            registry_waiting_since=(
                datetime.fromtimestamp(min(waits.values()) / 1000, UTC) if waits else None
            ),
            registry_calls_total=registry.get("calls", 0),
            registry_failures_total=registry.get("failures", 0),
            overflow_files_total=self._jvm.get("overflow", {}).get("files", 0),
            replay=self.replay,
            queries=queries,
        )
        write_status(self.folder, self.latest)
        return self.latest


def query_status(
    shape: QueryShape, progress: Mapping[str, Any] | None, counters: Counters
) -> QueryStatus:
    """The status of one query; `progress` is Spark's report, None before the first epoch."""
    report = progress or {}
    tables = set(shape.tables.values())
    counted = counters.of(shape.name)
    rejects = _rejects(shape, counted)
    reported = [*report.get("stateOperators", []), *repeat({}, len(shape.operators))]
    pairs = zip(shape.operators, reported, strict=False)
    operators = tuple(_operator(operator, counted, counters.jvm, r) for operator, r in pairs)
    watermarks = [_levels(o, counted).get("watermark") for o in shape.operators if o.tells_time]
    known = [w for w in watermarks if w is not None and w != _UNKNOWN_TIME]
    durations: Mapping[str, int] = report.get("durationMs", {})
    return QueryStatus(
        name=shape.name,
        sink=shape.sink,
        epoch=report.get("batchId"),
        epochs_total=report["batchId"] + 1 if "batchId" in report else shape.epochs,
        trigger_ms=durations.get("triggerExecution", 0),
        input_rows_total=sum(counted.get("rows", {}).get(t, 0) for t in tables)
        + sum(rejects.values()),
        partial_update_rows_total=counted.get("partial", 0),
        input_rows_per_second=_rate(report.get("inputRowsPerSecond")),
        processed_rows_per_second=_rate(report.get("processedRowsPerSecond")),
        output_rows_total=counted.get("written", 0),
        latency=LatencyStatus(
            counts=counted.get("latency", {}), sum_ms=counted.get("latency_ms", 0)
        ),
        changes=counted.get("changes", {}),
        transactions_committed_total=counters.jvm.get("commits", {}).get(shape.name, 0),
        transactions_aborted_total=counters.jvm.get("aborts", {}).get(shape.name, 0),
        rejects=rejects | counted.get("unwritten", {}),
        late_rows_total=sum(operator.late_rows for operator in operators),
        sources=tuple(_sources(shape, report, counted)),
        operators=operators,
        durations_ms=dict(durations),
        watermark_ms=min(known, default=None),
        lost_records_total=sum(counted.get("lost", {}).get(scan, 0) for scan in shape.tables),
    )


def _of_life(status: QueryStatus, lives: Sequence[QueryLife]) -> QueryStatus:
    life = next((life for life in lives if life.name == status.name), None)
    if life is None:
        return status
    status = status.model_copy(update={"epoch_running_ms": life.running_ms})
    if life.failure is None:
        return status
    restarts = {"restarts_total": life.restarts.total, "last_failure": _error(life.failure)}
    return status.model_copy(update=restarts)


def _rejects(shape: QueryShape, counted: QueryCounters) -> dict[str, int]:
    found: Counter[str] = Counter()
    for table in sorted(set(shape.tables.values())):
        found.update(counted.get("rejects", {}).get(table, {}))
    return dict(found)


def _operator(
    shape: OperatorShape,
    counted: QueryCounters,
    jvm: Mapping[str, Mapping[str, int]],
    reported: Mapping[str, Any],
) -> OperatorStatus:
    levels = _levels(shape, counted)
    rows = levels.get("rows", {})
    custom: Mapping[str, int] = reported.get("customMetrics", {})
    return OperatorStatus(
        id=shape.id,
        kind=shape.kind,
        # the kernel counts a single input as the left one
        sides=tuple(
            SideStatus(side=side, rows=rows.get("right" if side == "right" else "left", 0))
            for side in shape.sides
        ),
        # SST files plus RocksDB's memory
        state_bytes=custom.get("rocksdbSstFileSize", 0) + reported.get("memoryUsedBytes", 0),
        late_rows=levels.get("late", 0),
        unknown_retractions=levels.get("unknown-retractions", 0),
        bootstrap=_bootstrap(shape, levels) if shape.waits else None,
        lookups=_lookups(shape, counted, jvm) if shape.asks else None,
    )


def _lookups(
    shape: OperatorShape, counted: QueryCounters, jvm: Mapping[str, Mapping[str, int]]
) -> LookupStatus:
    done = counted.get("lookups", {}).get(shape.id.rpartition("/")[2], {})
    return LookupStatus(
        keys_cached=done.get("hits", 0),
        keys_asked=done.get("misses", 0),
        queries=done.get("queries", 0),
        retries=jvm.get("lookup-retries", {}).get(shape.id, 0),
        failures=jvm.get("lookup-failures", {}).get(shape.id, 0),
        waited_ms=done.get("waited-ms", 0),
    )


def _levels(shape: OperatorShape, counted: QueryCounters) -> OperatorLevels:
    return counted.get("operators", {}).get(shape.id.rpartition("/")[2], {})


def _bootstrap(shape: OperatorShape, levels: OperatorLevels) -> BootstrapStatus:
    sources = levels.get("source", {}).items()
    loaded = [at.get("loaded", 0) for id_, at in sources if int(id_) // _PARTITIONS in shape.gated]
    return BootstrapStatus(
        partitions_loaded=sum(loaded),
        partitions_total=len(loaded),
        # the rows that wait are all that is kept of the left side
        waiting_rows=levels.get("rows", {}).get("left", 0),
        complete=levels.get("open", 0) > 0,
        timed_out=levels.get("gate-timeouts", 0) > 0,
    )


def _sources(
    shape: QueryShape, report: Mapping[str, Any], counted: QueryCounters
) -> Iterator[SourceStatus]:
    watermarks, idle = _partition_times(shape, counted)
    for source in report.get("sources", []):
        table = shape.tables.get(source.get("description", ""))
        if table is None:  # a clock
            continue
        latest = source.get("latestOffset") or {}
        for topic, offsets in sorted((source.get("endOffset") or {}).items()):
            first_id = shape.topics.get(topic, 0) * _PARTITIONS
            partitions = tuple(
                PartitionStatus(
                    partition=p,
                    offset=at,
                    latest_offset=max(at, latest.get(topic, {}).get(str(p), at)),
                    watermark_ms=watermarks.get(first_id + p),
                    idle=first_id + p in idle,
                )
                for p, at in sorted((int(p), at) for p, at in offsets.items())
            )
            yield SourceStatus(
                table=table,
                topic=topic,
                partitions=partitions,
                lag_records=sum(p.lag_records for p in partitions),
                load=_load(shape.loads.get(topic, {}), partitions),
            )


def _load(
    content: Mapping[int, tuple[int, int]], partitions: Sequence[PartitionStatus]
) -> LoadStatus | None:
    if not content:
        return None
    at = {p.partition: p.offset for p in partitions}
    read = sum(min(max(at.get(p, 0), first), end) - first for p, (first, end) in content.items())
    return LoadStatus(read=read, total=sum(end - first for first, end in content.values()))


def _partition_times(shape: QueryShape, counted: QueryCounters) -> tuple[dict[int, int], set[int]]:
    """Watermarks and idle partitions by source id, from the operator that is furthest ahead.

    An operator reports each level on its own, so that a partition may have only some of them yet.
    """
    watermarks: dict[int, int] = {}
    idle: set[int] = set()
    for operator in shape.operators:
        for id_, levels in _levels(operator, counted).get("source", {}).items():
            source, at = int(id_), levels.get("watermark", _UNKNOWN_TIME)
            if at != _UNKNOWN_TIME:
                watermarks[source] = max(at, watermarks.get(source, at))
            if levels.get("idle"):
                idle.add(source)
    return watermarks, idle


def _error(error: RejoinError) -> ErrorStatus:
    return ErrorStatus(code=error.code, message=error.message, hint=error.hint)


def _rate(value: Any) -> float:
    """A rate of Spark's report, which has NaN and infinities as text."""
    return float(value) if isinstance(value, int | float) else 0.0
