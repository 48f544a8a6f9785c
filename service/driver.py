"""Reads what the driver has written about itself: its job and its last status."""

import time
from dataclasses import dataclass
from pathlib import Path

from service.files import RecordFile
from service.models import Reason
from spark_jobs.job_record import JOB_FILE, JobRecord
from spark_jobs.status import STATUS_FILE, JobStatus


@dataclass(frozen=True, slots=True)
class DriverView:
    """What is known about the driver. `status` is the last good one, even if there is a problem."""

    status: JobStatus | None
    age_s: float | None
    problem: Reason | None


class Driver:
    """Reads `status.json` and `job.json` of one folder."""

    def __init__(self, folder: Path, stale_after_s: float) -> None:
        self._status = RecordFile(folder / STATUS_FILE, JobStatus)
        self._job = RecordFile(folder / JOB_FILE, JobRecord)
        self._stale_after_s = stale_after_s

    @property
    def read_errors(self) -> int:
        return self._status.read_errors + self._job.read_errors

    def look(self) -> DriverView:
        """Read the status; never raises."""
        found = self._status.read()
        problem = None
        if found.problem is not None:
            problem = Reason(code=f"status_{found.problem}", message=found.detail)
        if found.record is None:
            return DriverView(None, None, problem)
        age_s = time.time() - found.record.updated_at.timestamp()
        if problem is None and abs(age_s) > self._stale_after_s:
            # a status from the future is stale too: one of the clocks is wrong
            side = "old" if age_s > 0 else "ahead of this clock"
            problem = Reason(code="status_stale", message=f"{abs(age_s):.0f} s {side}")
        return DriverView(found.record, age_s, problem)

    def job(self) -> JobRecord | None:
        """The job record; None if the driver has not written one yet."""
        return self._job.read().record
