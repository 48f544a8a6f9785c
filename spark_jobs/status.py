"""The status record `status.json`, written by the driver and read by the sidecar.

Its size depends on the job only, never on the number of keys or rows.
"""

import contextlib
import math
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, Literal, TypeAlias

from pydantic import AfterValidator, BaseModel, ConfigDict, Field

STATUS_FILE = "status.json"
State = Literal["starting", "running", "draining", "stopped", "failed"]
Count: TypeAlias = Annotated[int, Field(ge=-(2**63), lt=2**63)]
"""The range of a JVM long; a file with a larger number was not written by a driver."""
Rate: TypeAlias = Annotated[float, AfterValidator(lambda n: n if math.isfinite(n) else 0.0)]
"""NaN and infinity become 0, because JSON has neither."""
Moment: TypeAlias = Annotated[
    datetime, AfterValidator(lambda at: at if at.tzinfo else at.replace(tzinfo=UTC))
]
"""A time without a zone is UTC."""


class _Record(BaseModel):
    """Ignores unknown fields, so that an older sidecar can read the record of a newer driver."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class PartitionStatus(_Record):
    """One partition of a source topic; offsets are those of the next record."""

    partition: Count
    offset: Count
    latest_offset: Count
    watermark_ms: Count | None = None
    idle: bool = False

    @property
    def lag_records(self) -> int:
        return max(self.latest_offset - self.offset, 0)


class LoadStatus(_Record):
    """How much of a table's initial content has been read, in records; probe rows wait for it."""

    read: int
    total: int


class SourceStatus(_Record):
    """One topic of a source table."""

    table: str
    topic: str
    partitions: tuple[PartitionStatus, ...] = ()
    lag_records: Count = 0
    load: LoadStatus | None = None


class SideStatus(_Record):
    """Number of rows that an operator keeps of one input."""

    side: Literal["left", "right", "input"]
    rows: Count


class BootstrapStatus(_Record):
    """How much of a build side has been loaded; probe rows wait for it."""

    partitions_loaded: Count
    partitions_total: Count
    waiting_rows: Count
    complete: bool
    timed_out: bool = False


class LookupStatus(_Record):
    """What a lookup join has asked of its database.

    Keys are different keys of a task and epoch. `retries` counts queries that failed and were tried
    again, `failures` those that failed their epoch; both begin at zero with the driver.
    """

    keys_cached: Count = 0
    keys_asked: Count = 0
    queries: Count = 0
    retries: Count = 0
    failures: Count = 0
    waited_ms: Count = 0


class OperatorStatus(_Record):
    """One stateful operator of a query."""

    id: str
    kind: str
    sides: tuple[SideStatus, ...] = ()
    state_bytes: Count = 0
    late_rows: Count = 0
    unknown_retractions: Count = 0
    bootstrap: BootstrapStatus | None = None
    lookups: LookupStatus | None = None


LATENCY_BOUNDS_MS = (
    *(10, 15, 25, 40, 60, 100, 150, 250, 400, 600, 1_000, 1_500, 2_500, 4_000, 6_000),
    *(10_000, 15_000, 25_000, 40_000, 60_000, 100_000, 300_000, 1_000_000, 3_600_000),
)
"""Upper bounds of the kernel's histogram of latencies."""


class LatencyStatus(_Record):
    """Results by how long after the newest record behind them they were committed.

    `counts` by upper bound in milliseconds, as text; those beyond the last bound as `+Inf`.
    """

    counts: dict[str, Count] = Field(default_factory=dict)
    sum_ms: Count = 0


class ErrorStatus(_Record):
    """Why a job or a query failed, as in its last log line."""

    code: str
    message: str
    hint: str | None = None


class QueryStatus(_Record):
    """One INSERT."""

    name: str
    sink: str
    epoch: Count | None = None
    epochs_total: Count = 0
    trigger_ms: Count = 0
    epoch_running_ms: Count = 0  # how long the running epoch has run; 0 between epochs
    input_rows_total: Count = 0
    partial_update_rows_total: Count = 0  # updates whose records leave values out
    input_rows_per_second: Rate = 0.0
    processed_rows_per_second: Rate = 0.0
    output_rows_total: Count = 0
    latency: LatencyStatus = Field(default_factory=LatencyStatus)
    changes: dict[str, Count] = Field(default_factory=dict)  # results by row kind: +I, -U, +U, -D
    transactions_committed_total: Count = 0
    transactions_aborted_total: Count = 0
    rejects: dict[str, Count] = Field(default_factory=dict)
    late_rows_total: Count = 0
    sources: tuple[SourceStatus, ...] = ()
    operators: tuple[OperatorStatus, ...] = ()
    durations_ms: dict[str, Count] = Field(default_factory=dict)
    watermark_ms: Count | None = None
    restarts_total: Count = 0
    last_failure: ErrorStatus | None = None  # the failure before the last restart
    lost_records_total: Count = 0

    @property
    def lag_records(self) -> int:
        return sum(source.lag_records for source in self.sources)


class ReplayStatus(_Record):
    """The last replay of dead letters that the sidecar requested; `id` is that of its command.

    `left` counts records that cannot be replayed, `more` those beyond the limit of the command.
    """

    id: str
    state: Literal["running", "done", "failed"]
    begun_at: Moment
    ended_at: Moment | None = None
    replayed: Count = 0
    left: Count = 0
    more: Count = 0
    message: str = ""


class BuildStatus(_Record):
    """The release of the driver."""

    version: str


class JobStatus(_Record):
    """The state of a job as shown to the outside."""

    version: Literal[1] = 1
    job: str
    pid: Count
    started_at: Moment
    updated_at: Moment
    state: State
    error: ErrorStatus | None = None
    build: BuildStatus
    registry_waiting_since: Moment | None = None
    registry_calls_total: Count = 0
    registry_failures_total: Count = 0
    overflow_files_total: Count = 0  # of results that did not fit into memory
    replay: ReplayStatus | None = None
    queries: tuple[QueryStatus, ...] = ()


def write_status(folder: Path, status: JobStatus) -> None:
    """Write the record atomically."""
    replace_file(folder / STATUS_FILE, status.model_dump_json(indent=1))


def replace_file(target: Path, text: str) -> None:
    """Write a file so that readers see the old content or the new, never a part."""
    target.parent.mkdir(parents=True, exist_ok=True)
    draft = target.with_name(f".{target.name}.{os.getpid()}")
    try:
        draft.write_text(text, encoding="utf-8")
        draft.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
        raise


def read_status(folder: Path) -> JobStatus | None:
    """The record in this folder; None if there is none."""
    try:
        text = (folder / STATUS_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return JobStatus.model_validate_json(text)


def now() -> datetime:
    """The current time in UTC, to the millisecond."""
    present = datetime.now(UTC)
    return present.replace(microsecond=present.microsecond // 1000 * 1000)
