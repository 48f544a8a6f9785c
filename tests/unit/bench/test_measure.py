"""Measuring a process tree from outside, and leaving none of it behind."""

import os
import sys
import time
from pathlib import Path

import pytest

from bench.measure import BenchError, process_tree, run_measured, warm_share_per_s
from spark_jobs.embedded.process import Child

pytestmark = pytest.mark.service  # watches processes for seconds

_HOLD = "data = bytearray(50_000_000); import time; time.sleep({seconds})"
_PARENT = "import subprocess, sys; sys.exit(subprocess.call([sys.executable, '-c', {child!r}]))"


def tree(seconds: float) -> list[str]:
    """A process that waits for its child, which holds 50 MB."""
    return [sys.executable, "-c", _PARENT.format(child=_HOLD.format(seconds=seconds))]


def test_memory_and_files_of_the_tree(tmp_path: Path) -> None:
    state = tmp_path / "state"
    (state / "deep").mkdir(parents=True)
    (state / "deep" / "file").write_bytes(b"x" * 1_000)
    measured = run_measured(tree(1.0), tmp_path / "log", state, lambda: 0, 30)
    assert 1.0 <= measured.seconds < 10
    assert measured.peak_rss_bytes > 50_000_000
    assert measured.peak_state_bytes == 1_000
    assert measured.warm_share_per_s == 0


def test_a_timeout_ends_the_whole_tree(tmp_path: Path) -> None:
    seen: set[int] = set()

    def output() -> int:
        seen.update(process_tree(os.getpid()))
        return 0

    before = set(process_tree(os.getpid()))
    with pytest.raises(BenchError, match="still running"):
        run_measured(tree(60.0), tmp_path / "log", tmp_path, output, 1.5)
    started = seen - before
    assert len(started) >= 2
    deadline = time.monotonic() + 10
    while alive := {pid for pid in started if Path(f"/proc/{pid}").exists()}:
        assert time.monotonic() < deadline, f"left behind: {alive}"
        time.sleep(0.05)


def test_a_failure_shows_the_end_of_the_log(tmp_path: Path) -> None:
    command = [sys.executable, "-c", "import sys; sys.exit('no such table')"]
    with pytest.raises(BenchError, match="no such table"):
        run_measured(command, tmp_path / "log", tmp_path, lambda: 0, 30)


def test_output_that_comes_at_once_has_no_rate() -> None:
    assert warm_share_per_s([]) == 0
    assert warm_share_per_s([(1.0, 0), (2.0, 100)]) == 0


def test_the_tree_of_a_dead_process_is_itself(tmp_path: Path) -> None:
    child = Child([sys.executable, "-c", ""], tmp_path / "log")
    assert child.wait(10)
    assert process_tree(child.pid) == [child.pid]


def test_a_command_that_cannot_be_started_is_no_endless_wait(tmp_path: Path) -> None:
    for command, error in ((["/no/such/program"], OSError), (["a\0b"], ValueError)):
        with pytest.raises(error):
            Child(command, tmp_path / "log")
