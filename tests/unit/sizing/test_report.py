"""What `rejoin explain --size` prints: a golden text, and JSON with the same figures."""

import json
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from spark_jobs.cli import main
from spark_jobs.sizing.coefficients import DATA, Calibration, calibration, read_calibration
from spark_jobs.sizing.command import SizeOptions, size_job
from spark_jobs.sizing.given import Executor, Given
from spark_jobs.sizing.report import Report, render_json, render_text
from tests.unit.sizing.sizes import (
    APPENDS,
    CALIBRATION,
    PLAIN,
    TABLES,
    TEMPORAL,
    lines_of,
    model,
)

HERE = Path(__file__).parent
PLANS = sorted(
    job for job in (HERE.parents[1] / "plans").glob("*.sql") if not job.stem.startswith("refused_")
)
SIZES = (1, 10, 100)
GIVEN = Given(
    rows_per_second={"orders": 80_000.0, "rates": 20_000.0},
    keys={"rates": 50e6},
    partitions={"orders": 12.0},
    text_bytes={"orders": 40.0, "rates": 16.0},
)


def report(
    sql: str, given: Given, known: Calibration = CALIBRATION, sizes: Sequence[int] = SIZES
) -> Report:
    made = model(sql, given, known.coefficients)
    return Report(made, tuple(made.size(count) for count in sizes), known)


def test_text(golden: Callable[[Path, str], None]) -> None:
    golden(HERE / "temporal.txt", render_text(report(TEMPORAL, GIVEN)) + "\n")


def test_text_of_what_was_not_measured(golden: Callable[[Path, str], None]) -> None:
    rate = Given(rows_per_second={"orders": 5.0, "pings": 5.0}, epoch_s=0.4)
    sources = {"epoch_s": "docs/tuning.md", "read_share": "assumed"}
    unknown = replace(CALIBRATION, rests_on=sources, measured=None, held_out=())
    golden(HERE / "unmeasured.txt", render_text(report(APPENDS, rate, unknown)) + "\n")


def test_the_error_on_runs_that_were_held_out_is_said() -> None:
    grounds = lines_of(render_text(report(TEMPORAL, GIVEN)), "What this rests on")
    assert any("abc1234" in line and "2 cores" in line for line in grounds)
    assert any(line.split() == ["heap_base_mb", "Spark"] for line in grounds)
    assert any("2 runs" in line and ": 10%;" in line for line in grounds)


def test_json_has_the_same_figures() -> None:
    made = report(TEMPORAL, GIVEN)
    document = json.loads(json.dumps(render_json(made)))
    assert [size["executors"] for size in document["sizes"]] == [1, 10, 100]
    assert document["sizes"][0]["first_limit"] == made.sizes[0].first_limit
    assert document["sizes"][2]["most_records_per_second"] == made.sizes[2].most_rate
    assert document["largest_held_out_error"] == pytest.approx(0.1)
    assert document["measured"]["commit"] == "abc1234"
    assert document["rests_on"]["epoch_s"] == "fitted to a run"


def test_no_number_of_cores_is_null() -> None:
    made = report(TEMPORAL, replace(GIVEN, epoch_s=0.4))
    document = json.loads(json.dumps(render_json(made), allow_nan=False))
    assert document["sizes"][0]["cores_needed"] is None
    assert document["sizes"][0]["first_limit"] == "epoch length"


def test_memory_of_an_executor() -> None:
    made = report(TEMPORAL, replace(GIVEN, executor=Executor(memory_mb=1000)))
    # the state has as much as the heap and may take a quarter more; 384 are Spark's own
    assert (made.state_memory_mb, made.container_mb) == (1000, 2634)
    assert made.cached_share(made.sizes[0]) == pytest.approx(
        1000 * 2**20 / (50e6 * 62 * PLAIN.state_ratio)
    )


def test_the_command_prints_both(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.sql"
    job.write_text(TABLES + TEMPORAL, encoding="utf-8")
    options = ["--size", "--rows-per-second", "orders=10k", "--rows-per-second", "rates=10"]
    for more in ([], ["--json"]):
        with pytest.raises(SystemExit) as ended:
            main(["explain", str(job), *options, "--keys", "rates=5", "--executors", "3", *more])
        assert ended.value.code in (0, None)
    text, _, document = capsys.readouterr().out.rpartition("\n{")
    assert lines_of(text, "Sizing")[3].split() == ["executors", "3"]
    assert json.loads("{" + document)["sizes"][0]["executors"] == 3


def test_the_data_file_is_complete() -> None:
    known = calibration()
    assert known.coefficients.epoch_s > 0
    assert all(known.rests_on.values()), "each coefficient says where it is from"
    data = json.loads(DATA.read_text(encoding="utf-8"))
    # without runs nothing may look measured
    assert (known.measured is None) == (not data["points"]) == (not known.held_out)
    del data["coefficients"]["epoch_s"]
    with pytest.raises(KeyError, match="epoch_s"):
        read_calibration(json.dumps(data))
    data["coefficients"]["epochs"] = {"value": 1, "rests_on": "nothing"}
    with pytest.raises(KeyError, match="unknown coefficients: epochs"):
        read_calibration(json.dumps(data))


@pytest.mark.parametrize("job", PLANS, ids=[job.stem for job in PLANS])
def test_every_plan_has_a_size(job: Path) -> None:
    options = SizeOptions(rows_per_second=["1000"], keys=["100000"], partitions=["4"])
    made = size_job(job.read_text(encoding="utf-8"), job.name, options)
    document = json.loads(json.dumps(render_json(made), allow_nan=False))
    assert render_text(made).startswith("== Sizing ==")
    assert document["cpu_s_per_record"] > 0
    assert all(count > 0 for count in (s["most_records_per_second"] for s in document["sizes"]))
    # ten times the load costs more of everything, and at most ten times as much
    options = replace(options, rows_per_second=["10000"])
    more = json.loads(json.dumps(render_json(size_job(job.read_text(), job.name, options))))
    for path, count in document["bytes_per_second"].items():
        assert count <= more["bytes_per_second"][path] <= count * 10.001, path
