"""The driver's status record: written by the driver, read by the sidecar, one JSON file.

Lists stay short and names bounded: nothing in it grows with keys or rows.
"""

import contextlib
import os
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from pydantic import BaseModel, ConfigDict, Field

STATUS_FILE = "status.json"
State = Literal["starting", "running", "draining", "stopped", "failed"]


class _Record(BaseModel):
    """Unknown fields are kept out of the way, so that an older sidecar reads a newer driver."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class PartitionStatus(_Record):
    """One partition of a source topic; offsets are those of the next record."""

    partition: int
    offset: int
    latest_offset: int
    watermark_ms: int | None = None
    idle: bool = False


class SourceStatus(_Record):
    """One topic of a source table."""

    table: str
    topic: str
    partitions: tuple[PartitionStatus, ...] = ()
    lag_records: int = 0


class SideStatus(_Record):
    """Rows that an operator holds of one of its inputs."""

    side: Literal["left", "right", "input"]
    rows: int


class BootstrapStatus(_Record):
    """How far a build side is that probe rows wait for."""

    partitions_loaded: int
    partitions_total: int
    waiting_rows: int
    complete: bool
    timed_out: bool = False


class OperatorStatus(_Record):
    """One stateful operator of a query."""

    id: str
    kind: str
    sides: tuple[SideStatus, ...] = ()
    state_bytes: int = 0
    late_rows: int = 0
    unknown_retractions: int = 0
    bootstrap: BootstrapStatus | None = None


class ErrorStatus(_Record):
    """Why a job or a query failed, as its last line said it."""

    code: str
    message: str
    hint: str | None = None


class QueryStatus(_Record):
    """One INSERT."""

    name: str
    sink: str
    epoch: int | None = None
    epochs_total: int = 0
    trigger_ms: int = 0
    input_rows_total: int = 0
    input_rows_per_second: float = 0.0
    processed_rows_per_second: float = 0.0
    output_rows_total: int = 0
    rejects: dict[str, int] = Field(default_factory=dict)
    late_rows_total: int = 0
    sources: tuple[SourceStatus, ...] = ()
    operators: tuple[OperatorStatus, ...] = ()
    durations_ms: dict[str, int] = Field(default_factory=dict)
    watermark_ms: int | None = None
    restarts_total: int = 0
    last_failure: ErrorStatus | None = None  # that a restart has followed
    lost_records_total: int = 0

    @property
    def lag_records(self) -> int:
        return sum(source.lag_records for source in self.sources)


class BuildStatus(_Record):
    """What runs."""

    version: str


class JobStatus(_Record):
    """Everything the outside may know of a job."""

    version: Literal[1] = 1
    job: str
    pid: int
    started_at: datetime
    updated_at: datetime
    state: State
    error: ErrorStatus | None = None
    build: BuildStatus
    registry_waiting_since: datetime | None = None
    queries: tuple[QueryStatus, ...] = ()


def write_status(folder: Path, status: JobStatus) -> None:
    """Replace the record in one step."""
    replace_file(folder / STATUS_FILE, status.model_dump_json(indent=1))


def replace_file(target: Path, text: str) -> None:
    """A reader sees the old file or the new one, never half of one."""
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
    """The record, or None if no driver has written one there."""
    try:
        text = (folder / STATUS_FILE).read_text(encoding="utf-8")
    except FileNotFoundError:
        return None
    return JobStatus.model_validate_json(text)


def now() -> datetime:
    """With its zone, to the millisecond."""
    present = datetime.now(UTC)
    return present.replace(microsecond=present.microsecond // 1000 * 1000)
