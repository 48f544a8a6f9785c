"""Ratios between peers, the file of a result, what is resumed, and the tables and pictures."""

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench import run
from bench.figures import (
    Conditions,
    Outcome,
    RunFigures,
    better,
    read_outcome,
    write_outcome,
)
from bench.measure import BenchError
from bench.peers.catalog import peers
from bench.report.__main__ import BEGIN, END, keep, kept, pictures, read, replaced
from bench.report.plots import PICTURES
from bench.report.tables import tables
from bench.run import BenchPlan, run_bench
from bench.workloads.catalog import WORKLOADS
from tools.pictures.drawing import LIGHT

ROOT = Path(__file__).resolve().parents[3]
WHEN = Conditions("2026-01-31", "abc1234", 2, 24.0)


def figures(peer: str, turn: int, seconds: float) -> RunFigures:
    return RunFigures(
        peer=peer,
        turn=turn,
        seconds=seconds,
        rows_per_second=round(1e6 / seconds),
        warm_rows_per_second=200_000,
        processor_s=2 * seconds,
        peak_rss_bytes=2**30,
        peak_state_bytes=2**20,
        output_records=5,
        output_rows=4,
    )


def outcome(*runs: RunFigures) -> Outcome:
    return Outcome(
        "regular-upsert", "a left join", 1_000_000, 100_000, 2, WHEN,
        settings={run.peer: {"a": "1"} for run in runs},
        left_out={"spark": "Spark has no such join"},
        runs=list(runs),
    )  # fmt: skip


THREE_TURNS = outcome(
    figures("flink-tuned", 0, 30.0), figures("rejoin", 0, 10.0),
    figures("rejoin", 1, 20.0), figures("flink-tuned", 1, 40.0),
    figures("flink-tuned", 2, 100.0), figures("rejoin", 2, 25.0),
    figures("flink-tuned-mini-batch", 0, 35.0),
)  # fmt: skip


def test_a_ratio_is_the_median_of_the_turns_ratios() -> None:
    assert THREE_TURNS.ratio("flink-tuned") == 3.0, "of 3, 2 and 4; medians alone give 2"
    assert THREE_TURNS.ratio("rejoin") == 1.0
    assert outcome(figures("flink-tuned", 0, 1.0)).ratio("flink-tuned") is None
    assert THREE_TURNS.median("flink-tuned", "seconds") == 40.0
    assert THREE_TURNS.peers == ["rejoin", "flink-tuned", "flink-tuned-mini-batch"]


def test_the_better_of_two() -> None:
    both = ("flink-tuned", "flink-tuned-mini-batch")
    assert better(THREE_TURNS, both) == "flink-tuned-mini-batch"
    assert better(THREE_TURNS, ("spark",)) is None


def test_a_file_and_back(tmp_path: Path) -> None:
    path = tmp_path / "results" / "one.json"
    write_outcome(path, THREE_TURNS)
    assert read_outcome(path) == THREE_TURNS


def test_a_workloads_figures_are_kept_until_others_replace_them(tmp_path: Path) -> None:
    newer = replace(THREE_TURNS, rows=2_000_000)
    other = replace(THREE_TURNS, workload="hot-key")
    keep([other, THREE_TURNS], tmp_path)
    keep([newer], tmp_path)
    assert kept(tmp_path) == [newer, other]


def test_files_that_cannot_be_kept_are_refused(tmp_path: Path) -> None:
    small, large, empty = (tmp_path / name for name in ("small.json", "large.json", "empty.json"))
    write_outcome(small, THREE_TURNS)
    write_outcome(large, replace(THREE_TURNS, rows=2_000_000))
    write_outcome(empty, outcome())
    assert read([small]) == [THREE_TURNS]
    with pytest.raises(ValueError, match="second file of regular-upsert"):
        read([small, large])
    with pytest.raises(ValueError, match="no figures"):
        read([empty])
    for text in ("rubbish", "[]", "{}"):
        (tmp_path / "other.json").write_text(text, encoding="utf-8")
        with pytest.raises(ValueError, match="no result of"):
            read([tmp_path / "other.json"])
    with pytest.raises(ValueError, match="no result of"):
        read([tmp_path / "missing.json"])


def test_what_has_run_is_not_run_again(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(run, "RESULTS", tmp_path)
    monkeypatch.setattr(run, "conditions_now", lambda _cores: WHEN)
    made = peers({}, {})
    names = ("rejoin", "flink-tuned", "spark")
    plan = BenchPlan(
        workload=WORKLOADS["regular-upsert"],
        rows=1_000_000,
        keys=100_000,
        peers=[made[name] for name in names],
        turns=1,
        timeout_s=1.0,
        resume=True,
    )
    fresh = run._begin(plan)
    assert fresh.runs == []
    assert fresh.settings["flink-tuned"]["execution.checkpointing.dir"] == "file:///RUN/checkpoint"
    assert list(fresh.left_out) == ["spark"]
    known = replace(fresh, runs=[figures("rejoin", 0, 10.0), figures("flink-tuned", 0, 30.0)])
    write_outcome(plan.file, known)
    said: list[str] = []
    assert run_bench(plan, said.append).runs == known.runs
    assert "nothing is left" in said[0]

    with pytest.raises(BenchError, match=r"100,000 keys; this is .* 7 keys"):
        run._begin(replace(plan, keys=7))
    changed = replace(plan, peers=list(peers({"rejoin.x": "1"}, {}).values()))
    assert [r.peer for r in run._begin(changed).runs] == ["flink-tuned"]


def test_tables() -> None:
    text = tables([THREE_TURNS])
    assert "| `regular-upsert` | 1 M | 20.0 s | 35.0 s (mini-batch) | **3.50 times** |" in text
    assert "| `spark` | `regular-upsert` | Spark has no such join |" in text
    assert "commit abc1234" in text
    for line in text.splitlines():
        assert not line.startswith("|") or line.endswith("|")


def test_pictures() -> None:
    for draw in PICTURES.values():
        picture = ElementTree.fromstring(draw([THREE_TURNS]).svg(LIGHT))  # noqa: S314 - our own
        words = " ".join(picture.itertext())
        assert "rejoin" in words
        assert "flink-tuned-mini-batch" in words


def test_conditions_name_their_workloads_where_they_differ() -> None:
    later = replace(THREE_TURNS, workload="hot-key", conditions=replace(WHEN, date="2026-02-01"))
    assert tables([THREE_TURNS]).startswith("2026-01-31, commit abc1234, 2 cores and 24 GiB")
    assert tables([THREE_TURNS, later]).startswith(
        "`regular-upsert`: 2026-01-31, commit abc1234, 2 cores and 24 GiB; `hot-key`: 2026-02-01, "
    )


def test_the_page_and_its_pictures_are_drawn_from_the_kept_figures() -> None:
    page = (ROOT / "docs" / "bench.md").read_text(encoding="utf-8")
    assert page.count(BEGIN) == page.count(END) == 1
    assert f"{BEGIN}\n| new |\n{END}" in replaced(page, "| new |")
    assert page == replaced(page, tables(kept()))
    for name, picture in pictures(kept()):
        assert (ROOT / "docs" / "images" / name).read_text(encoding="utf-8") == picture


def test_kept_figures_are_of_whole_commits_and_name_no_folder() -> None:
    for outcome in kept():
        assert "+" not in outcome.conditions.commit, f"{outcome.workload}: files had been changed"
        for settings in outcome.settings.values():
            paths = [value for value in settings.values() if "/" in value.removeprefix("file://")]
            assert all("/RUN/" in path for path in paths), paths
