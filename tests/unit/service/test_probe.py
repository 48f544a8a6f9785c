"""The health check of a container without a port."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.probe import main
from spark_jobs.status import JobStatus

Write = Callable[[JobStatus | bytes], None]
Job = Callable[..., JobStatus]


def probe(folder: Path) -> int:
    return main(["--status-dir", str(folder), "--silent-after", "30"])


@pytest.mark.parametrize(
    ("state", "code"),
    [("starting", 0), ("running", 0), ("draining", 0), ("stopped", 1), ("failed", 1)],
)
def test_states(folder: Path, write: Write, job: Job, state: str, code: int) -> None:
    write(job(state=state))
    assert probe(folder) == code


def test_a_silent_driver_is_dead(
    folder: Path, write: Write, job: Job, capsys: pytest.CaptureFixture[str]
) -> None:
    write(job(updated_at=datetime.now(UTC) - timedelta(seconds=31)))
    assert probe(folder) == 1
    assert capsys.readouterr().out.startswith("status_stale: 31 s old")


def test_no_status_is_dead(folder: Path) -> None:
    assert probe(folder) == 1
