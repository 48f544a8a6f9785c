"""How a job ends when more goes wrong than one thing."""

import threading
from io import StringIO
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_jobs.driver.console import TextConsole
from spark_jobs.driver.query_life import QueryLife
from spark_jobs.driver.replays import Replays
from spark_jobs.driver.report import JobReport
from spark_jobs.driver.run import reporting_failure
from spark_jobs.driver.state_lookups import StateLookups
from spark_jobs.driver.watch import Watch
from spark_jobs.embedded.process import Child
from spark_jobs.errors import MachineError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.options.settings import NOTHING_SET
from spark_jobs.settings import Environment, Overrides, job_settings


def test_an_error_is_told_also_where_the_status_cannot_be_written(tmp_path: Path) -> None:
    """A full disk is full for the status too."""
    (tmp_path / "file").touch()
    folder = tmp_path / "file" / "status"
    settings = job_settings(NOTHING_SET, "job", Overrides(status_dir=folder), Environment())
    with pytest.raises(MachineError), reporting_failure(JobReport("job", folder, []), {}, settings):
        raise MachineError("DISK_FULL", "no space left")


@pytest.mark.parametrize("error", [KeyError("a defect"), KeyboardInterrupt()])
def test_no_query_runs_on_unwatched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    """The session may be the user's own, and go on."""
    stopped = list[str]()
    kernel = SimpleNamespace(close_gate=lambda: stopped.append("gate"))
    monkeypatch.setattr(Kernel, "of", lambda _: kernel)

    class Broken:
        name, is_active, runs_epoch = "q", False, False
        query = SimpleNamespace(stop=lambda: stopped.append("query"))

        @property
        def restarts(self) -> Any:
            raise error

    report, replays = JobReport("job", tmp_path, []), Replays(tmp_path, "", Child)
    lives = [cast(QueryLife, Broken())]
    session = cast(Any, SimpleNamespace())
    settings = job_settings(NOTHING_SET, "job", Overrides(status_dir=tmp_path), Environment())
    lookups = StateLookups(settings, {}, Child)
    watch = Watch(session, [], lives, report, replays, lookups, TextConsole(StringIO()))
    with pytest.raises(type(error)):
        watch.run(threading.Event())
    assert stopped == ["gate", "query"]
