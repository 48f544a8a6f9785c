"""Response bodies of the sidecar; times are in Unix milliseconds, sizes in bytes."""

from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spark_jobs.job_record import AdviceRecord, GraphEdge, GraphNode
from spark_jobs.status import BootstrapStatus, ErrorStatus, JobStatus, SideStatus


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True)


class Problem(_Body):
    """The reason for an error response."""

    detail: str = Field(examples=["no such query"])


def failure(description: str, detail: str) -> dict[str, Any]:
    """An error response in the OpenAPI document, with an example."""
    content = {"application/json": {"example": {"detail": detail}}}
    return {"description": description, "model": Problem, "content": content}


NO_QUERY: dict[int | str, dict[str, Any]] = {404: failure("no such query", "no such query")}


class Reason(_Body):
    """A problem: a stable code and a message."""

    code: str = Field(examples=["status_stale"])
    message: str = Field(examples=["75 s old"])

    def __str__(self) -> str:
        return f"{self.code}: {self.message}"


class Health(_Body):
    """`reasons` is empty exactly when `ok`."""

    ok: bool
    reasons: tuple[Reason, ...] = ()


class StatusBody(_Body):
    """The driver's last good status, its age, and the problems of the status file and the job."""

    status: JobStatus | None
    age_seconds: float | None
    problem: Reason | None
    unready: tuple[Reason, ...] = Field(description="the reasons of /health/ready")


class OperatorState(_Body):
    """The state of one operator. Growth is that of the last minute; null until it is known."""

    query: str
    operator: str
    kind: str = Field(examples=["regular-join"])
    title: str
    sides: tuple[SideStatus, ...]
    state_bytes: int
    rows_per_minute: float | None
    bytes_per_minute: float | None
    retention: str = Field(examples=["for ever"])
    ttl_ms: tuple[int, ...]
    late_rows: int
    unknown_retractions: int
    bootstrap: BootstrapStatus | None
    series: tuple[tuple[float, int], ...] = Field(description="seconds ago and rows, oldest first")
    top_keys: str = Field(
        description="command that shows the keys with the most rows; the sidecar does not count "
        "them, because that would slow the job down",
        examples=["rejoin state top JOB.sql --operator enriched/regular-join"],
    )


class Silence(_Body):
    """No result for a while: how long, and the likely reasons, the most certain one first."""

    seconds: float
    reasons: tuple[Reason, ...]


class Trend(_Body):
    """A line of a chart: seconds ago and value, oldest first; null where it is not known."""

    name: str = Field(examples=["watermark delay"])
    unit: str = Field(examples=["s"])
    points: tuple[tuple[float, float | None], ...]


class QueryTrends(_Body):
    """The charts of one query over the last minutes, each of one or two lines."""

    query: str
    charts: tuple[tuple[Trend, ...], ...]


class QuerySummary(_Body):
    """One INSERT as it runs."""

    name: str
    sink: str
    epoch: int | None
    epoch_ms: int
    input_rows_total: int
    input_rows_per_second: float | None
    output_rows_total: int
    output_rows_per_second: float | None
    latency_p50_seconds: float | None = Field(description="of the last minute; docs/metrics.md")
    latency_p99_seconds: float | None
    lag_records: int
    late_rows_total: int
    rejects: dict[str, int]
    watermark_ms: int | None
    restarts_total: int
    last_failure: ErrorStatus | None
    lost_records_total: int
    warnings: tuple[str, ...]
    silence: Silence | None = Field(description="why no result comes; null if results come")


class QueryPlan(_Body):
    """The plan of one INSERT: as a graph, as text of `rejoin explain`, and as run by the kernel."""

    name: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    warnings: tuple[str, ...]
    advice: tuple[AdviceRecord, ...] = Field(description="warnings too, with lines of SQL")
    text: str
    plan: dict[str, Any]


class PartitionWatermark(_Body):
    """The watermark of a partition; `counts` says whether an operator uses it."""

    table: str
    topic: str
    partition: int
    watermark_ms: int | None
    idle: bool
    lag_records: int
    records_read: int
    counts: bool


class HeldBack(_Body):
    """A partition that holds the watermark back, with the reason and advice."""

    partition: PartitionWatermark
    reason: str
    advice: str


class QueryWatermarks(_Body):
    """The watermarks of a query and of its source partitions."""

    query: str
    watermark_ms: int | None
    partitions: tuple[PartitionWatermark, ...]
    held_back_by: tuple[HeldBack, ...]


class PartitionLag(_Body):
    """Number of records between the committed offset and the end of the partition."""

    table: str
    topic: str
    partition: int
    offset: int
    end_offset: int
    lag_records: int


class LagBody(_Body):
    """The lag, `measured` at the broker, or by the driver at its last epoch."""

    measured: str = Field(examples=["broker"], description="broker or driver")
    problem: Reason | None
    partitions: tuple[PartitionLag, ...]
    lag_records: int


class ConfigBody(_Body):
    """Effective settings and the options of each table; secrets are `***`."""

    settings: dict[str, str]
    tables: dict[str, dict[str, str]]


class StateLink(_Body):
    """A key whose state led to a result row: the body of `/admin/state-get` takes it.

    `columns` are those of the result row that hold the key, `key` is a JSON array of their values.
    """

    operator: str = Field(examples=["enriched/temporal-join-1"])
    title: str = Field(examples=["temporal join, left"])
    columns: tuple[str, ...]
    key: str = Field(examples=["[42]"])


class SampleRow(_Body):
    """A record of a sink topic as text; masked columns are `***`.

    `before` is what a corrected or deleted row was, if that is among the latest records too.
    `state` are the operators whose key the row shows.
    """

    change: Literal["written", "corrected", "taken back"]
    before: str | None
    topic: str
    partition: int
    offset: int
    timestamp_ms: int
    key: str | None
    value: str | None
    state: tuple[StateLink, ...] = ()


class SampleBody(_Body):
    """The latest records of a sink, newest first; off unless enabled in the settings."""

    enabled: bool
    problem: Reason | None
    rows: tuple[SampleRow, ...]
