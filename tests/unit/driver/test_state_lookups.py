"""Lookups that an admin verb asks for: one at a time, bounded, and nothing left behind."""

import json
import pickle
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.commands import Answer, StateOrder, read_answer, send, take
from spark_jobs.driver import state_lookups
from spark_jobs.driver.queries import sinks_of
from spark_jobs.driver.state_lookups import ASKED, FOUND, Asked, StateLookups
from spark_jobs.options.settings import NOTHING_SET
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Environment, Overrides, job_settings
from spark_jobs.sql.bind.binder import bind
from spark_jobs.state.lookup import MOST_CHARS, cut

ORDER = StateOrder.model_validate({"lookups": [{"operator": "q/join", "key": "[42]"}]})
PLANS = Path(__file__).resolve().parents[2] / "plans"
# its functions in Python need not be found again: they are beside a file that may have changed
FILE = PLANS / "python_functions.sql"
PLANNED = sinks_of(plan(bind(FILE.read_text(encoding="utf-8"), str(FILE))))
NO_SUCH_PROCESS = 2**31 - 1


class Stage:
    """Starts what a test says instead of the process that reads state."""

    pid = NO_SUCH_PROCESS

    def __init__(self, folder: Path) -> None:
        self.status_dir = folder
        self.lines: list[list[str]] = []
        self.exit_code: int | None = None
        overrides = Overrides(status_dir=folder, checkpoint="/somewhere/else")
        settings = job_settings(NOTHING_SET, "job", overrides, Environment())
        self.lookups = StateLookups(settings, PLANNED, self.start)

    def start(self, line: Sequence[str], log: Path) -> "Stage":
        self.lines.append(list(line))
        self.log = log
        self.exit_code = None
        return self

    def stop(self, grace_s: float) -> None:
        self.exit_code = self.exit_code if self.exit_code is not None else -15

    def ask(self, order: StateOrder | None = ORDER) -> str:
        command = send(self.status_dir, "state-get", "t", state=order)
        for taken in take(self.status_dir):
            self.lookups.begin(taken)
        return command.id

    def end(self, found: object = None, log: str = "") -> None:
        self.log.write_text(log, encoding="utf-8")
        if found is not None:
            (self.folder / FOUND).write_text(json.dumps(found), encoding="utf-8")
        self.exit_code = 0 if found is not None else 2
        self.lookups.poll()

    def answer(self, command: str) -> Answer:
        found = read_answer(self.status_dir, command)
        assert found is not None
        return found

    @property
    def folder(self) -> Path:
        return Path(self.lines[-1][-1])


@pytest.fixture
def stage(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Stage:
    monkeypatch.setattr(state_lookups.tempfile, "tempdir", str(tmp_path))
    return Stage(tmp_path / "status")


def operator(rows: int) -> dict[str, Any]:
    return {"operator": "join", "sides": [{"side": "left", "rows": rows, "kept": []}]}


def test_the_process_is_told_by_a_file_that_nobody_else_can_read(stage: Stage) -> None:
    stage.ask()
    [line] = stage.lines
    assert "42" not in " ".join(line[:-1])
    assert stage.folder.stat().st_mode & 0o77 == 0
    asked: Asked = pickle.loads((stage.folder / ASKED).read_bytes())  # noqa: S301
    assert asked.settings.checkpoint == "/somewhere/else"
    assert (asked.order, asked.sinks) == (ORDER, PLANNED)


@pytest.mark.parametrize(
    ("rows", "message"), [(0, "no rows in 1 operator"), (1, "1 row in 1 operator")]
)
def test_what_was_found_is_the_answer(stage: Stage, rows: int, message: str) -> None:
    asked = stage.ask()
    assert read_answer(stage.status_dir, asked) is None
    stage.end([operator(rows)])
    assert (stage.answer(asked).message, stage.answer(asked).done) == (message, True)
    assert stage.answer(asked).state == (operator(rows),)
    assert not stage.folder.exists()


def test_one_at_a_time(stage: Stage) -> None:
    first, second = stage.ask(), stage.ask()
    assert len(stage.lines) == 1
    assert f"lookup {first} is still running" in stage.answer(second).message
    stage.end([operator(3), operator(4)])
    assert stage.answer(first).message == "7 rows in 2 operators"
    stage.ask()
    assert len(stage.lines) == 2


def test_an_error_is_told_in_its_words(stage: Stage) -> None:
    asked = stage.ask()
    stage.end(log="STATE_NOT_FOUND query q\n  hint: wait\n")
    assert stage.answer(asked).message == (
        "no state could be read: STATE_NOT_FOUND query q hint: wait"
    )
    assert not stage.answer(asked).done
    assert not stage.folder.exists()


def test_it_ends_in_time_and_with_the_job(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_lookups, "WITHIN_S", -1.0)
    late = stage.ask()
    stage.lookups.poll()
    assert "took longer" in stage.answer(late).message
    monkeypatch.setattr(state_lookups, "WITHIN_S", 60.0)
    cut_off = stage.ask()
    stage.lookups.poll()
    assert stage.exit_code is None
    stage.lookups.stop()
    assert "the job ended first" in stage.answer(cut_off).message
    assert not stage.folder.exists()


def test_it_leaves_the_job_its_disk(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    asked = stage.ask()
    monkeypatch.setattr(state_lookups, "LEAST_FREE_BYTES", 1 << 62)
    stage.lookups.poll()
    assert "has less than 1 GiB left" in stage.answer(asked).message
    assert not stage.folder.exists()
    refused = stage.ask()
    assert len(stage.lines) == 1
    assert "has less than 1 GiB left" in stage.answer(refused).message


def test_a_command_without_keys_is_refused(stage: Stage) -> None:
    asked = stage.ask(None)
    assert not stage.answer(asked).done
    assert stage.lines == []


def test_an_answer_is_cut_to_what_a_page_takes() -> None:
    kept = [{"row": {"id": n, "text": "x" * 5000}, "copies": 2} for n in range(100)]
    small = [{"row": {"id": 1}, "time": "2024-01-01T00:00:00.000"}]
    found = [
        {
            "sides": [
                {"side": "left", "rows": 300, "kept": kept},
                {"side": "right", "rows": 1, "kept": small},
            ]
        }
    ]
    [shown] = cut(found)
    left, right = shown["sides"]
    assert len(json.dumps(shown)) < MOST_CHARS * 1.1
    assert 0 < len(left["kept"]) < 100
    assert left["left_out"] == 300 - 2 * len(left["kept"])
    assert left["kept"][0]["row"] == {"id": 0, "text": "x" * 1000 + "…"}
    assert (right["kept"], right["left_out"]) == (small, 0)
