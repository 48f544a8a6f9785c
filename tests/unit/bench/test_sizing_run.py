"""A run of bench.sizing over a made-up engine, which leaves the files of a run of rejoin."""

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import pytest

from bench.measure import BenchError
from bench.peers.peer import Folders, Run
from bench.sizing import run as sizing
from bench.sizing.points import Point, Setup, read_points, setups, write_points
from bench.sizing.run import CountedData, Loaded, measure
from bench.workloads.regular import RegularData
from spark_jobs.sizing.coefficients import Measured, read_calibration
from tests.unit.bench.sizing_engine import BUSY_S, PAUSE_S
from tests.unit.bench.sizing_points import KNOWN, made_up

_SETUP = Setup("regular", "regular", 10_000, 500, offsets=500)
_WHEN = Measured("2026-01-31", "abc1234", "2 cores")


class Engine:
    """In place of `rejoin run`."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def command(self, _run: object) -> list[str]:
        return [sys.executable, "-m", "tests.unit.bench.sizing_engine", str(self._root)]


@dataclass
class Broker:
    """In place of a broker: a process that idles, and segments on disk."""

    data_dir: Path
    pid: int
    bootstrap_servers: str = "b:1"


@pytest.fixture
def idle_broker(tmp_path: Path) -> Iterator[Broker]:
    idle = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
    for topic, size in (("orders_a", 100_000), ("orders_b", 50_000), ("result_0", 40_000)):
        folder = tmp_path / "kafka" / "log" / f"{topic}-0"
        folder.mkdir(parents=True)
        (folder / "0.log").write_bytes(b"x" * size)
    yield Broker(tmp_path / "kafka", idle.pid)
    idle.kill()
    idle.wait()


@pytest.fixture
def busy_neighbour() -> Iterator[None]:
    """A process that computes as long as the test, as one that an earlier test has left."""
    busy = subprocess.Popen([sys.executable, "-c", "while True: pass"])
    yield
    busy.kill()
    busy.wait()


class Progress:
    """In place of the sink topic: a file of the engine."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def __call__(self) -> int:
        return int(self._path.read_text() or 0) if self._path.exists() else 0

    def close(self) -> None:
        pass


@pytest.mark.usefixtures("busy_neighbour")
def test_a_run_becomes_a_point(
    tmp_path: Path, idle_broker: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sizing, "_engine", lambda _setup, root: _with_events(root))
    monkeypatch.setattr(sizing, "create_topics", lambda *_: None)
    results = tmp_path / "result_0" / "results"
    monkeypatch.setattr(sizing, "SinkProgress", lambda *_: Progress(results))
    data = CountedData(RegularData(_SETUP.rows, _SETUP.keys))
    for topic in data.topics:
        assert list(data.records(topic, 1, 2))
    point = measure(_SETUP, Loaded(idle_broker, "http://r:1", data, tmp_path), 0, 60.0)

    # from the fifth epoch, the first with half of the records, to the tenth
    assert point.epochs == 5
    assert point.rows == {"orders_a": 2_500, "orders_b": 2_500}
    assert point.seconds > 0.9 * 5 * (PAUSE_S + BUSY_S)
    assert sum(point.epoch_seconds) == pytest.approx(point.seconds)
    assert point.job_cpu_s == pytest.approx(5 * BUSY_S, rel=0.3)
    assert point.driver_cpu_s == point.job_cpu_s, "none of its processes is an executor"
    assert point.broker_cpu_s < 0.2
    assert point.results == pytest.approx(5 * 800, abs=900)
    assert point.shuffle_bytes == 5 * 50_000
    assert point.read_cpu_share == 0.75
    assert point.changelog_bytes == 5 * 1_000
    # 5,000 records of each table are on disk
    assert point.kafka_in_bytes == pytest.approx(0.5 * 150_000)
    assert point.kafka_out_bytes == pytest.approx(40_000 * point.results / 8_000)
    assert (point.state_rows, point.state_bytes) == ({"left": 900, "right": 9}, 63_000)
    assert point.text_bytes == {"orders_a": 35.0, "orders_b": 9.0}
    assert point.setup == _SETUP


def _with_events(root: Path) -> Engine:
    (root / "events").mkdir()
    return Engine(root)


def test_what_does_not_fit_into_the_time_is_left_out(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert sizing.run_all([_SETUP], minutes=0.0, timeout_s=1.0, measured=_WHEN) == []
    assert "left out: regular" in capsys.readouterr().out


@pytest.mark.parametrize("on_executors", [False, True])
def test_spark_logs_its_tasks(tmp_path: Path, on_executors: bool) -> None:
    made = sizing._engine(Setup("x", "regular", 1, 1, on_executors=on_executors), tmp_path)
    where = (Folders(tmp_path), "b:1", "http://r:1", "result")
    workload = Setup("x", "regular", 1, 1).workload()
    command = made.command(Run(workload, *where))
    master = command[command.index("--master") + 1]
    assert master == ("local-cluster[2,1,2048]" if on_executors else "local[2]")
    assert ("REJOIN_MEMORY_MB=1024" in command) == on_executors
    properties = (tmp_path / "spark.properties").read_text()
    assert f"spark.eventLog.dir file://{tmp_path}/events" in properties
    assert ("spark.executor.memory 1024m" in properties) == on_executors
    assert made.settings(workload, where[0])["rejoin.max-offsets-per-trigger"] == "150000"


def test_a_run_that_fails_is_left_out_unless_it_is_the_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    good, bad = made_up(_SETUP), replace(_SETUP, name="bad")

    def measured(setup: Setup, *_: object) -> Point:
        if setup is bad:
            raise BenchError("BENCH_TIMEOUT", "still running")
        return good

    monkeypatch.setattr(sizing, "measure", measured)
    monkeypatch.setattr(sizing, "loaded", lambda _setup: nullcontext())
    monkeypatch.setattr(sizing, "_POINTS", tmp_path / "points.json")
    assert sizing.run_all([_SETUP, bad, _SETUP], 10.0, 1.0, _WHEN) == [good, good]
    assert "left out: bad has failed: BENCH_TIMEOUT" in capsys.readouterr().out
    measured, read = read_points((tmp_path / "points.json").read_text())
    assert (measured, len(read)) == (_WHEN, 2)
    with pytest.raises(BenchError):
        sizing.run_all([bad, _SETUP], 10.0, 1.0, _WHEN)


def test_points_are_fitted_and_written(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    points, data = tmp_path / "points.json", tmp_path / "data.json"
    write_points(points, [made_up(setup) for setup in setups(2_000_000)], _WHEN)
    monkeypatch.setattr(sizing, "DATA", data)
    monkeypatch.setattr("sys.argv", ["sizing", "--fit", str(points), "--write"])
    sizing.main()
    printed = capsys.readouterr().out
    assert "records per second" in printed
    assert ": +0.0%" in printed
    known = read_calibration(data.read_text())
    assert known.coefficients.regular_row_us == pytest.approx(KNOWN.regular_row_us, rel=0.01)
    assert known.measured == _WHEN, "that of the runs, not of the fit"
    assert len(json.loads(data.read_text())["points"]) == len(setups(2_000_000))
