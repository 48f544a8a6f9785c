"""What a running job tells: Spark's progress and the kernel's counters as one status record."""

import json
import os
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, TypeAlias

from spark_jobs import __version__
from spark_jobs.errors import RejoinError
from spark_jobs.status import (
    BootstrapStatus,
    BuildStatus,
    ErrorStatus,
    JobStatus,
    LoadStatus,
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
from spark_jobs.streaming.query import QueryLife

_UNKNOWN_TIME = -(2**63)
_CALLS, _FAILURES = "registry/calls", "registry/failures"
_PARTITIONS = 1 << 16  # source ids are topic index * this + partition
Side: TypeAlias = Literal["left", "right", "input"]
Loads: TypeAlias = Mapping[str, Mapping[int, tuple[int, int]]]
"""By topic and partition, the first offset of the initial content and the one behind its last."""


@dataclass(frozen=True, slots=True)
class OperatorShape:
    """A stateful operator as the kernel's counters call it.

    `tells_time`: it has a watermark. `waits`: it has a gate before which probe rows wait; for the
    topics with the indexes `gated`, until they are loaded.
    """

    id: str
    kind: str
    sides: tuple[Side, ...]
    tells_time: bool
    waits: bool = False
    gated: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class QueryShape:
    """What of a query's plan its status shows; `tables` by scan id, `topics` to their index.

    `epochs`: those that are committed when the driver starts.
    """

    name: str
    sink: str
    tables: Mapping[str, str]
    topics: Mapping[str, int]
    operators: Sequence[OperatorShape]
    loads: Loads = field(default_factory=dict)
    epochs: int = 0


def counter_name(*parts: str) -> str:
    """What the kernel calls a sum; tables and queries may hold any character.

    >>> counter_name("rows", "paid", "a/b")
    'rows/paid/a%2Fb'
    """
    return "/".join(part.replace("%", "%25").replace("/", "%2F") for part in parts)


class Counters:
    """The kernel's counters at one moment; `jvm`: those that it keeps outside of tasks."""

    def __init__(self, text: str, jvm: Mapping[str, int] | None = None) -> None:
        parsed = json.loads(text) if text else {}
        self._sums: dict[str, int] = parsed.get("sums", {})
        self._levels: dict[str, dict[str, list[int]]] = parsed.get("levels", {})
        self._jvm = jvm or {}

    def outside(self, name: str) -> int:
        return self._jvm.get(name, 0)

    def sum(self, *name: str) -> int:
        return self._sums.get(counter_name(*name), 0)

    def below(self, *name: str) -> dict[str, int]:
        """Sums whose name starts with these parts, by the rest of it."""
        prefix = f"{counter_name(*name)}/"
        return {k[len(prefix) :]: n for k, n in self._sums.items() if k.startswith(prefix)}

    def total(self, level: str) -> int:
        """Over all key groups."""
        return sum(value for _, value in self._levels.get(level, {}).values())

    def levels(self, prefix: str, suffix: str) -> dict[int, int]:
        """Of the levels named `prefix<number>suffix`, the value that one group speaks for."""
        found = {}
        for name, groups in self._levels.items():
            number = name.removeprefix(prefix).removesuffix(suffix)
            if name == f"{prefix}{number}{suffix}" and number.isdecimal():
                found[int(number)] = max(value for _, value in groups.values())
        return found

    def least(self, level: str) -> int | None:
        """Of all key groups; None before the first report."""
        return min((value for _, value in self._levels.get(level, {}).values()), default=None)


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
    _registry: tuple[int, int] = (0, 0)  # calls, and those that failed

    def opened(self, query: str, loads: Loads, epochs: int) -> None:
        """Tell from now on how far the tables' initial content is read, and count on from there."""
        self.shapes = [
            replace(shape, loads=loads, epochs=epochs) if shape.name == query else shape
            for shape in self.shapes
        ]

    def write(
        self,
        state: State,
        counters: Counters | None = None,
        progress: Mapping[str, Mapping[str, Any]] | None = None,
        error: RejoinError | None = None,
        waits: Mapping[str, int] | None = None,
        lives: Sequence[QueryLife] = (),
    ) -> JobStatus:
        """Write the record; without counters the queries stay as they were.

        `waits`: registries that do not answer, and since when in epoch milliseconds.
        """
        self.state = state
        queries = self.latest.queries if self.latest is not None else ()
        if counters is not None:
            self._registry = counters.outside(_CALLS), counters.outside(_FAILURES)
            by_name, told = {life.name: life for life in lives}, progress or {}
            queries = tuple(
                _with_restarts(query_status(s, told.get(s.name), counters), by_name.get(s.name))
                for s in self.shapes
            )
        self.latest = JobStatus(
            job=self.job,
            pid=os.getpid(),
            started_at=self.started_at,
            updated_at=now(),
            state=state,
            error=None if error is None else _error(error),
            build=BuildStatus(version=__version__),
            registry_waiting_since=_earliest((waits or {}).values()),
            registry_calls_total=self._registry[0],
            registry_failures_total=self._registry[1],
            replay=self.replay,
            queries=queries,
        )
        write_status(self.folder, self.latest)
        return self.latest


def _earliest(times_ms: Collection[int]) -> datetime | None:
    return datetime.fromtimestamp(min(times_ms) / 1000, UTC) if times_ms else None


def read_progress(lives: Sequence[QueryLife]) -> dict[str, Mapping[str, Any]]:
    """Spark's latest report of each query that has one."""
    found: dict[str, Mapping[str, Any]] = {}
    for life in lives:
        query: Any = life.query
        latest = None if query is None else query._jsq.lastProgress()
        if latest is not None:
            found[life.name] = json.loads(latest.json())
    return found


def query_status(
    shape: QueryShape, progress: Mapping[str, Any] | None, counters: Counters
) -> QueryStatus:
    """One query's record out of Spark's report (None before the first) and the counters."""
    report = progress or {}
    tables = sorted(set(shape.tables.values()))
    rejects: dict[str, int] = {}
    for table in tables:
        for reason, n in counters.below("rejects", shape.name, table).items():
            rejects[reason] = rejects.get(reason, 0) + n
    state_bytes = [_state_bytes(o) for o in report.get("stateOperators", [])]
    operators = tuple(
        _operator(operator, counters, state_bytes[i] if i < len(state_bytes) else 0)
        for i, operator in enumerate(shape.operators)
    )
    watermarks = [counters.least(f"{o.id}/watermark") for o in shape.operators if o.tells_time]
    known = [w for w in watermarks if w is not None and w != _UNKNOWN_TIME]
    durations: Mapping[str, int] = report.get("durationMs", {})
    return QueryStatus(
        name=shape.name,
        sink=shape.sink,
        epoch=report.get("batchId"),
        epochs_total=report["batchId"] + 1 if "batchId" in report else shape.epochs,
        trigger_ms=durations.get("triggerExecution", 0),
        input_rows_total=sum(counters.sum("rows", shape.name, t) for t in tables)
        + sum(rejects.values()),
        input_rows_per_second=_rate(report.get("inputRowsPerSecond")),
        processed_rows_per_second=_rate(report.get("processedRowsPerSecond")),
        output_rows_total=counters.sum("written", shape.name),
        changes=counters.below("changes", shape.name),
        transactions_committed_total=counters.outside(f"commits/{shape.name}"),
        transactions_aborted_total=counters.outside(f"aborts/{shape.name}"),
        rejects=rejects | counters.below("unwritten", shape.name),
        late_rows_total=sum(operator.late_rows for operator in operators),
        sources=tuple(_sources(shape, report, counters)),
        operators=operators,
        durations_ms=dict(durations),
        watermark_ms=min(known, default=None),
        lost_records_total=sum(counters.sum("lost", shape.name, scan) for scan in shape.tables),
    )


def _with_restarts(status: QueryStatus, life: QueryLife | None) -> QueryStatus:
    if life is None or life.failure is None:
        return status
    told = {"restarts_total": life.restarts.total, "last_failure": _error(life.failure)}
    return status.model_copy(update=told)


def _operator(shape: OperatorShape, counters: Counters, state_bytes: int) -> OperatorStatus:
    # the kernel counts a single input as the left one
    counted: dict[Side, str] = {"left": "left", "right": "right", "input": "left"}
    sides = tuple(
        SideStatus(side=side, rows=counters.total(f"{shape.id}/rows/{counted[side]}"))
        for side in shape.sides
    )
    return OperatorStatus(
        id=shape.id,
        kind=shape.kind,
        sides=sides,
        state_bytes=state_bytes,
        late_rows=counters.total(f"{shape.id}/late"),
        unknown_retractions=counters.total(f"{shape.id}/unknown-retractions"),
        bootstrap=_bootstrap(shape, counters) if shape.waits else None,
    )


def _bootstrap(shape: OperatorShape, counters: Counters) -> BootstrapStatus:
    levels = counters.levels(f"{shape.id}/source/", "/loaded")
    loaded = [n for source, n in levels.items() if source // _PARTITIONS in shape.gated]
    return BootstrapStatus(
        partitions_loaded=sum(loaded),
        partitions_total=len(loaded),
        # a gate keeps nothing else of the left side
        waiting_rows=counters.total(f"{shape.id}/rows/left"),
        complete=(counters.least(f"{shape.id}/open") or 0) > 0,
        timed_out=counters.total(f"{shape.id}/gate-timeouts") > 0,
    )


def _sources(
    shape: QueryShape, report: Mapping[str, Any], counters: Counters
) -> list[SourceStatus]:
    found = []
    times = _PartitionTimes(shape, counters)
    for source in report.get("sources", []):
        table = shape.tables.get(source.get("description", ""))
        if table is None:  # a clock
            continue
        ends, latest = source.get("endOffset") or {}, source.get("latestOffset") or {}
        for topic, offsets in sorted(ends.items()):
            partitions = tuple(
                PartitionStatus(
                    partition=int(p),
                    offset=at,
                    latest_offset=max(at, latest.get(topic, {}).get(p, at)),
                    watermark_ms=times.watermark(topic, int(p)),
                    idle=times.is_idle(topic, int(p)),
                )
                for p, at in sorted(offsets.items(), key=lambda item: int(item[0]))
            )
            lag = sum(p.latest_offset - p.offset for p in partitions)
            load = _load(shape.loads.get(topic, {}), partitions)
            status = SourceStatus(
                table=table, topic=topic, partitions=partitions, lag_records=lag, load=load
            )
            found.append(status)
    return found


def _load(
    content: Mapping[int, tuple[int, int]], partitions: Sequence[PartitionStatus]
) -> LoadStatus | None:
    if not content:
        return None
    at = {p.partition: p.offset for p in partitions}
    ranges = ((first, end, at.get(p, first)) for p, (first, end) in content.items())
    read = sum(min(max(offset, first), end) - first for first, end, offset in ranges)
    return LoadStatus(read=read, total=sum(end - first for first, end in content.values()))


class _PartitionTimes:
    """What the operators say of partitions; of several, the one that has heard most."""

    def __init__(self, shape: QueryShape, counters: Counters) -> None:
        self._topics = shape.topics
        self._watermarks: dict[int, int] = {}
        self._idle: set[int] = set()
        for operator in shape.operators:
            prefix = f"{operator.id}/source/"
            for source, at in counters.levels(prefix, "/watermark").items():
                self._watermarks[source] = max(at, self._watermarks.get(source, at))
            idle = counters.levels(prefix, "/idle").items()
            self._idle |= {source for source, is_idle in idle if is_idle}

    def watermark(self, topic: str, partition: int) -> int | None:
        at = self._watermarks.get(self._source(topic, partition), _UNKNOWN_TIME)
        return None if at == _UNKNOWN_TIME else at

    def is_idle(self, topic: str, partition: int) -> bool:
        return self._source(topic, partition) in self._idle

    def _source(self, topic: str, partition: int) -> int:
        return self._topics.get(topic, 0) * _PARTITIONS + partition


def _state_bytes(operator: Mapping[str, Any]) -> int:
    """Of files and of what is not in files yet."""
    custom: Mapping[str, int] = operator.get("customMetrics", {})
    return int(custom.get("rocksdbSstFileSize", 0)) + int(operator.get("memoryUsedBytes", 0))


def _error(error: RejoinError) -> ErrorStatus:
    return ErrorStatus(code=error.code, message=error.message, hint=error.hint)


def _rate(value: Any) -> float:
    """Spark writes NaN and infinities as text."""
    return float(value) if isinstance(value, int | float) else 0.0
