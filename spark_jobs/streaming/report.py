"""What a running job tells: Spark's progress and the kernel's counters as one status record."""

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Any, Literal

from spark_jobs import __version__
from spark_jobs.errors import RejoinError
from spark_jobs.status import (
    BuildStatus,
    ErrorStatus,
    JobStatus,
    OperatorStatus,
    PartitionStatus,
    QueryStatus,
    SideStatus,
    SourceStatus,
    State,
    now,
    write_status,
)
from spark_jobs.streaming.query import QueryLife

_UNKNOWN_TIME = -(2**63)
_SIDES: tuple[Literal["left", "right"], ...] = ("left", "right")


@dataclass(frozen=True, slots=True)
class OperatorShape:
    """A stateful operator as the kernel's counters call it."""

    id: str
    kind: str
    joins: bool


@dataclass(frozen=True, slots=True)
class QueryShape:
    """What of a query's plan its status shows; `tables` by scan id."""

    name: str
    sink: str
    tables: Mapping[str, str]
    operators: Sequence[OperatorShape]


class Counters:
    """The kernel's counters at one moment."""

    def __init__(self, text: str) -> None:
        parsed = json.loads(text) if text else {}
        self._sums: dict[str, int] = parsed.get("sums", {})
        self._levels: dict[str, dict[str, list[int]]] = parsed.get("levels", {})

    def sum(self, name: str) -> int:
        return self._sums.get(name, 0)

    def below(self, prefix: str) -> dict[str, int]:
        """Sums whose name starts so, by the rest of the name."""
        return {k[len(prefix) :]: n for k, n in self._sums.items() if k.startswith(prefix)}

    def total(self, level: str) -> int:
        """Over all key groups."""
        return sum(value for _, value in self._levels.get(level, {}).values())

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

    def write(
        self,
        state: State,
        counters: Counters | None = None,
        progress: Mapping[str, Mapping[str, Any]] | None = None,
        error: RejoinError | None = None,
    ) -> JobStatus:
        """Write the record; without counters the queries stay as they were."""
        self.state = state
        queries = self.latest.queries if self.latest is not None else ()
        if counters is not None:
            queries = tuple(
                query_status(shape, (progress or {}).get(shape.name), counters)
                for shape in self.shapes
            )
        self.latest = JobStatus(
            job=self.job,
            pid=os.getpid(),
            started_at=self.started_at,
            updated_at=now(),
            state=state,
            error=None if error is None else _error(error),
            build=BuildStatus(version=__version__),
            queries=queries,
        )
        write_status(self.folder, self.latest)
        return self.latest


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
        for reason, n in counters.below(f"rejects/{table}/").items():
            rejects[reason] = rejects.get(reason, 0) + n
    state_bytes = [_state_bytes(o) for o in report.get("stateOperators", [])]
    operators = tuple(
        _operator(operator, counters, state_bytes[i] if i < len(state_bytes) else 0)
        for i, operator in enumerate(shape.operators)
    )
    watermarks = [counters.least(f"{o.id}/watermark") for o in shape.operators if o.joins]
    known = [w for w in watermarks if w is not None and w != _UNKNOWN_TIME]
    durations: Mapping[str, int] = report.get("durationMs", {})
    return QueryStatus(
        name=shape.name,
        sink=shape.sink,
        epoch=report.get("batchId"),
        epochs_total=report.get("batchId", -1) + 1,
        trigger_ms=durations.get("triggerExecution", 0),
        input_rows_total=sum(counters.sum(f"rows/{t}") for t in tables) + sum(rejects.values()),
        input_rows_per_second=_rate(report.get("inputRowsPerSecond")),
        processed_rows_per_second=_rate(report.get("processedRowsPerSecond")),
        output_rows_total=counters.sum(f"written/{shape.name}"),
        rejects=rejects,
        late_rows_total=sum(operator.late_rows for operator in operators),
        sources=tuple(_sources(shape, report)),
        operators=operators,
        durations_ms=dict(durations),
        watermark_ms=min(known, default=None),
    )


def _operator(shape: OperatorShape, counters: Counters, state_bytes: int) -> OperatorStatus:
    rows = {side: counters.total(f"{shape.id}/rows/{side}") for side in _SIDES}
    if shape.joins:
        sides = tuple(SideStatus(side=side, rows=rows[side]) for side in _SIDES)
    else:  # the kernel counts a single input as the left one
        sides = (SideStatus(side="input", rows=rows["left"]),)
    return OperatorStatus(
        id=shape.id,
        kind=shape.kind,
        sides=sides,
        state_bytes=state_bytes,
        late_rows=counters.total(f"{shape.id}/late"),
    )


def _sources(shape: QueryShape, report: Mapping[str, Any]) -> list[SourceStatus]:
    found = []
    for source in report.get("sources", []):
        table = shape.tables.get(source.get("description", ""))
        if table is None:  # the clock
            continue
        ends, latest = source.get("endOffset") or {}, source.get("latestOffset") or {}
        for topic, offsets in sorted(ends.items()):
            partitions = tuple(
                PartitionStatus(
                    partition=int(p),
                    offset=at,
                    latest_offset=max(at, latest.get(topic, {}).get(p, at)),
                )
                for p, at in sorted(offsets.items(), key=lambda item: int(item[0]))
            )
            lag = sum(p.latest_offset - p.offset for p in partitions)
            status = SourceStatus(table=table, topic=topic, partitions=partitions, lag_records=lag)
            found.append(status)
    return found


def _state_bytes(operator: Mapping[str, Any]) -> int:
    """Of files and of what is not in files yet."""
    custom: Mapping[str, int] = operator.get("customMetrics", {})
    return int(custom.get("rocksdbSstFileSize", 0)) + int(operator.get("memoryUsedBytes", 0))


def _error(error: RejoinError) -> ErrorStatus:
    return ErrorStatus(code=error.code, message=error.message, hint=error.hint)


def _rate(value: Any) -> float:
    """Spark writes NaN and infinities as text."""
    return float(value) if isinstance(value, int | float) else 0.0
