"""Fitting the sizing model: known answers from made-up points, and the traces that runs leave."""

import json
import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from bench.measure import BenchError
from bench.sizing.fit import (
    GROUPS,
    calibration_json,
    fit,
    least_squares,
)
from bench.sizing.points import (
    Point,
    quick_setups,
    read_points,
    setups,
    write_points,
)
from bench.sizing.run import CountedData
from bench.sizing.trace import (
    Epoch,
    changelog_bytes,
    offsets_of,
    tasks_between,
    topic_bytes,
    warm_window,
)
from bench.workloads.interval import IntervalData
from spark_jobs.sizing.coefficients import (
    DATA,
    Calibration,
    Coefficients,
    Measured,
    read_calibration,
)
from tests.unit.bench.sizing_points import KNOWN, made_up

WHEN = Measured("2026-01-31", "abc1234", "2 cores")
NOT_FITTED = ("epoch_s", "driver_task_ms", "task_wait_ms", "state_ratio")


@pytest.fixture(scope="module")
def points() -> list[Point]:
    return [made_up(setup) for setup in setups(2_000_000)]


def with_rest_of(known: Coefficients) -> Calibration:
    """The data file, but for what runs of full epochs and little state do not show."""
    kept = read_calibration(DATA.read_text(encoding="utf-8"))
    rest = {name: getattr(known, name) for name in NOT_FITTED}
    return replace(kept, coefficients=replace(kept.coefficients, **rest))


def test_least_squares() -> None:
    rows = [[1.0, 2.0], [3.0, 1.0], [1.0, 1.0]]
    assert least_squares(rows, [8.0, 9.0, 5.0]) == pytest.approx([2.0, 3.0])
    # without the bound the second would be negative
    assert least_squares([[1.0, 1.0], [1.0, 0.0]], [1.0, 2.0]) == pytest.approx([1.5, 0.0])


def test_points_of_a_known_model_give_its_coefficients(points: list[Point]) -> None:
    before = with_rest_of(KNOWN)
    found = fit(points, before, WHEN)
    for name in Coefficients.__dataclass_fields__:
        assert getattr(found.coefficients, name) == pytest.approx(getattr(KNOWN, name), rel=0.01), (
            name
        )
    assert found.largest_error == pytest.approx(0.0, abs=0.01)
    assert {h.point for h in found.held_out} == {"regular", "temporal, executors", "interval"}
    assert len({h.figure for h in found.held_out}) == 6
    assert found.rests_on["heap_base_mb"] == before.rests_on["heap_base_mb"]
    assert "12 runs" in found.rests_on["wait_factor"]
    assert found.rests_on["epoch_s"] == before.rests_on["epoch_s"], "full epochs do not show it"


def test_a_held_out_point_does_not_move_the_fit_and_its_error_is_said(points: list[Point]) -> None:
    before = read_calibration(DATA.read_text(encoding="utf-8"))
    slower = [
        replace(p, job_cpu_s=2 * p.job_cpu_s) if p.setup.name == "held out: regular" else p
        for p in points
    ]
    found = fit(slower, before, WHEN)
    assert found.coefficients == fit(points, before, WHEN).coefficients
    [cpu] = [h for h in found.held_out if (h.point, h.unit) == ("regular", "us")]
    assert cpu.error == pytest.approx(-0.5, abs=0.01)
    assert found.largest_error == pytest.approx(0.5, abs=0.01)


def test_what_no_point_measures_stays(points: list[Point]) -> None:
    before = read_calibration(DATA.read_text(encoding="utf-8"))
    only_regular = [point for point in points if point.setup.job == "regular"]
    found = fit(only_regular, before, WHEN)
    assert found.coefficients.interval_row_us == before.coefficients.interval_row_us
    assert found.rests_on["interval_row_us"] == before.rests_on["interval_row_us"]


def test_every_fitted_coefficient_is_in_one_group() -> None:
    names = [name for group in GROUPS for name in group.names]
    assert len(names) == len(set(names))
    by_hand = {"heap_record_bytes", "heap_base_mb", *NOT_FITTED}
    others = {"read_share", "wait_factor"}
    assert {*names, *others, *by_hand} == set(Coefficients.__dataclass_fields__)


def test_the_data_file_is_the_fit_of_its_points(points: list[Point]) -> None:
    text = DATA.read_text(encoding="utf-8")
    known = read_calibration(text)
    _, kept = read_points(text)
    if known.measured is None:
        assert not kept
        return
    again = read_calibration(calibration_json(fit(kept, known, known.measured), kept))
    assert again.coefficients == known.coefficients
    assert again.held_out == known.held_out


def test_a_data_file_can_be_read_again(points: list[Point], tmp_path: Path) -> None:
    found = fit(points, read_calibration(DATA.read_text(encoding="utf-8")), WHEN)
    again = read_calibration(calibration_json(found, points))
    assert again.measured == WHEN
    assert again.coefficients.result_us == pytest.approx(found.coefficients.result_us, rel=1e-4)
    # a fit to the points of a data file gives the same data file
    text = calibration_json(found, points)
    _, kept = read_points(text)
    assert calibration_json(fit(kept, read_calibration(text), WHEN), kept) == text
    write_points(tmp_path / "deep" / "points.json", points, WHEN)
    measured, read = read_points((tmp_path / "deep" / "points.json").read_text())
    assert measured == WHEN
    assert [p.setup for p in read] == [p.setup for p in points]
    assert fit(read, again, WHEN).coefficients == found.coefficients


def test_the_runs_vary_what_the_fit_needs() -> None:
    wanted = setups(2_000_000)
    assert len({setup.name for setup in wanted}) == len(wanted)
    seen = [setup for setup in wanted if not setup.held_out]
    assert {s.job for s in wanted if s.held_out} == {"regular", "temporal", "interval"}
    assert all(setup.data not in {s.data for s in seen} for setup in wanted if setup.held_out)
    for column in ("keys", "note_bytes", "offsets", "parallelism", "on_executors", "inner"):
        assert len({getattr(setup, column) for setup in seen}) > 1, column
    assert {s.job for s in quick_setups()} == {"regular", "temporal", "interval"}
    inner = next(s for s in wanted if s.inner).workload().sql
    assert "LEFT JOIN" not in inner
    assert "JOIN parcels" in inner


def epoch(number: int, at: float, **offsets: int) -> Epoch:
    return Epoch(number, at, offsets)


def test_the_warm_window() -> None:
    steps = [10, 20, 40, 60, 80, 100, 100]
    found = warm_window([epoch(n, 2.0 * n, a=at) for n, at in enumerate(steps)])
    assert (found.begins, found.ends, found.length) == (6.0, 10.0, 2)
    assert found.rows == {"a": 40}
    assert found.seconds == (2.0, 2.0)
    for few in ([], [50, 100], [0, 0, 0]):
        with pytest.raises(BenchError, match="BENCH_FEW_EPOCHS"):
            warm_window([epoch(n, n, a=at) for n, at in enumerate(few)])


@pytest.mark.parametrize(
    "text",
    [
        'v1\n{"batchWatermarkMs":0}\n{"a":{"0":3,"1":4},"b":{"0":5}}\n'
        '{"time":7,"partitions":[[0,2]],"end":false}\n',
        'v2\n{"0":"{\\"a\\":{\\"0\\":3,\\"1\\":4}}","1":"{\\"b\\":{\\"0\\":5}}"}\n',
    ],
    ids=["a line per source", "a map of texts"],
)
def test_offsets_of_spark(text: str) -> None:
    assert offsets_of(text, frozenset({"a", "b"})) == {"a": 7, "b": 5}
    assert offsets_of(text, frozenset({"a"})) == {"a": 7}


def task_end(finished_ms: int, cpu_ns: int, read: int, written: int) -> str:
    event: Mapping[str, object] = {
        "Event": "SparkListenerTaskEnd",
        "Task Info": {"Finish Time": finished_ms},
        "Task Metrics": {
            "Executor CPU Time": cpu_ns,
            "Shuffle Read Metrics": {"Remote Bytes Read": read, "Local Bytes Read": 0},
            "Shuffle Write Metrics": {"Shuffle Bytes Written": written},
        },
    }
    return json.dumps(event, separators=(",", ":"))


def test_tasks_of_the_measured_epochs(tmp_path: Path) -> None:
    lines = [
        '{"Event":"SparkListenerLogStart","Spark Version":"4.3.0"}',
        task_end(1_000, 10**9, 0, 999),  # before
        task_end(2_500, 3 * 10**9, 0, 70),
        task_end(3_000, 1 * 10**9, 50, 0),
        '{"Event":"SparkListenerTaskEnd","Task Info":{"Finish Time":2600}}',  # lost
        task_end(3_001, 10**9, 0, 999),  # after
    ]
    (tmp_path / "local-1").write_text("\n".join(lines) + "\n")
    (tmp_path / ".local-1.crc").write_bytes(b"\xff\xfe")
    found = tasks_between(tmp_path, 1.0, 3.0)
    assert (found.shuffle_bytes, found.read_cpu_share) == (70, 0.75)
    with pytest.raises(BenchError, match="BENCH_NO_TASKS"):
        tasks_between(tmp_path, 50.0, 60.0)


def test_files_of_the_measured_epochs(tmp_path: Path) -> None:
    state = tmp_path / "checkpoint" / "state" / "0" / "1"
    state.mkdir(parents=True)
    for at, name, size in ((5, "1_a.changelog", 7), (9, "2_b.changelog", 30), (9, "2.zip", 500)):
        (state / name).write_bytes(b"x" * size)
        os.utime(state / name, (at, at))
    assert changelog_bytes(tmp_path / "checkpoint", 5.0, 9.0) == 30
    for name in ("t-0", "t-1", "tt-0"):
        (tmp_path / "log" / name).mkdir(parents=True)
        (tmp_path / "log" / name / "0.log").write_bytes(b"x" * 10)
        (tmp_path / "log" / name / "0.index").write_bytes(b"x" * 1000)
    assert topic_bytes(tmp_path, "t") == 20


def test_records_are_counted_as_they_are_loaded() -> None:
    data = CountedData(IntervalData(1_000, 500))
    purchases, parcels = data.topics
    records = list(data.records(purchases, 0, 1))
    assert list(data.records(parcels, 0, 2))
    mean = sum(len(value or b"") for _, _, value in records) / len(records)
    assert data.record_bytes()["purchases"] == mean
    assert data.text_bytes == {"parcels": 9.0}
