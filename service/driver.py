"""The sidecar's one view of the driver: what it runs, and what it last said of itself."""

import time
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal

from service.files import RecordFile
from spark_jobs.job_record import JOB_FILE, JobRecord
from spark_jobs.status import STATUS_FILE, JobStatus

Problem = Literal["status_missing", "status_unreadable", "status_stale"]


@dataclass(frozen=True, slots=True)
class View:
    """What is known of the driver now. `status` is the last good one, also beside a problem."""

    status: JobStatus | None
    age_s: float | None
    problem: Problem | None
    detail: str


class Driver:
    """Reads `status.json` and `job.json` of one folder."""

    def __init__(self, folder: Path, stale_after_s: float) -> None:
        self.folder = folder
        self._status = RecordFile(folder / STATUS_FILE, JobStatus)
        self._job = RecordFile(folder / JOB_FILE, JobRecord)
        self._stale_after_s = stale_after_s

    @property
    def read_errors(self) -> int:
        return self._status.read_errors + self._job.read_errors

    def look(self) -> View:
        """The state of things; never raises."""
        found = self._status.look()
        if found.record is None:
            missing = found.problem == "missing"
            return View(
                None, None, "status_missing" if missing else "status_unreadable", found.detail
            )
        age_s = time.time() - instant(found.record.updated_at)
        if found.problem is not None:
            missing = found.problem == "missing"
            problem: Problem = "status_missing" if missing else "status_unreadable"
            return View(found.record, age_s, problem, found.detail)
        if abs(age_s) > self._stale_after_s:
            # a status from the future comes from a clock that cannot be trusted either
            side = "old" if age_s > 0 else "ahead of this clock"
            return View(found.record, age_s, "status_stale", f"{abs(age_s):.0f} s {side}")
        return View(found.record, age_s, None, "")

    def job(self) -> JobRecord | None:
        """What the driver runs, as far as it has said so."""
        return self._job.look().record


def instant(time_of_status: datetime) -> float:
    """Unix time; a time without a zone is UTC."""
    zoned = time_of_status if time_of_status.tzinfo else time_of_status.replace(tzinfo=UTC)
    return zoned.timestamp()
