"""One benchmark at a time has a folder, which is empty at its start and gone at its end."""

from pathlib import Path

import pytest

from bench import folders
from bench.folders import work_folder
from bench.measure import BenchError


@pytest.fixture(autouse=True)
def _elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(folders, "WORK", tmp_path / "bench")


def test_a_folder_is_empty_at_the_start_and_gone_at_the_end() -> None:
    with work_folder("one", keep=True) as work:
        (work / "left.log").touch()
    assert (work / "left.log").exists()
    with work_folder("one") as again:
        assert list(again.iterdir()) == []
    assert not again.exists()


def test_a_second_benchmark_is_refused_as_long_as_the_first_runs() -> None:
    with work_folder("one") as work:
        (work / "data").touch()
        with pytest.raises(BenchError) as refused, work_folder("one"):
            pass
        assert refused.value.code == "BENCH_BUSY"
        assert (work / "data").exists()
    with work_folder("two"):
        pass


def test_a_failure_leaves_the_logs_and_lets_the_next_one_in() -> None:
    def fail() -> None:
        with work_folder("one") as work:
            (work / "engine.log").touch()
            raise ValueError("no luck")

    with pytest.raises(ValueError, match="no luck"):
        fail()
    assert (folders.WORK / "one" / "engine.log").exists()
    with work_folder("two"):
        pass
