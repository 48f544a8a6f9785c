"""Replays that an admin verb asks for: one at a time, bounded, told of, and never a shell's."""

import json
from collections.abc import Sequence
from io import StringIO
from pathlib import Path

import pytest

from spark_jobs.commands import Answer, ReplayOrder, read_answer, send, take
from spark_jobs.driver import replays
from spark_jobs.driver.replays import Replays
from spark_jobs.errors import KafkaError
from spark_jobs.status import ReplayStatus
from spark_jobs.terminal import show_error_json


class Stage:
    """Starts what a test says instead of `rejoin dlq replay`; ends it when told so."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.lines: list[list[str]] = []
        self.exit_code: int | None = None
        self.replays = Replays(folder, "SELECT 1", self.start)

    def start(self, line: Sequence[str], log: Path) -> "Stage":
        self.lines.append(list(line))
        self.log = log
        self.exit_code = None
        return self

    def stop(self, grace_s: float) -> None:
        self.exit_code = -15

    def ask(self, **order: object) -> str:
        command = send(self.folder, "dlq-replay", "t", replay=ReplayOrder.model_validate(order))
        for taken in take(self.folder):
            self.replays.begin(taken)
        return command.id

    def end(self, text: str, code: int) -> None:
        self.log.write_text(text, encoding="utf-8")
        self.exit_code = code
        self.replays.poll()

    def answer(self, command: str) -> Answer:
        found = read_answer(self.folder, command)
        assert found is not None
        return found

    @property
    def status(self) -> ReplayStatus:
        assert self.replays.status is not None
        return self.replays.status


@pytest.fixture
def stage(tmp_path: Path) -> Stage:
    return Stage(tmp_path)


def test_it_is_the_command_over_the_sql_that_runs(stage: Stage) -> None:
    stage.ask(tables=["--fix=reboot"], reasons=["json-malformed"], topic="letters", limit=7)
    [line] = stage.lines
    assert line[-5:] == [
        "--json", "--limit=7", "--table=--fix=reboot", "--reason=json-malformed", "--topic=letters",
    ]  # fmt: skip
    assert Path(line[line.index("replay") + 1]).read_text(encoding="utf-8") == "SELECT 1"


def test_what_came_of_it_is_told(stage: Stage) -> None:
    asked = stage.ask()
    assert (stage.status.id, stage.status.state) == (asked, "running")
    assert read_answer(stage.folder, asked) is None
    told = [
        {"topic": "a", "replayed": 3, "left": [{"why": "x"}]},
        {"topic": "b", "replayed": 1, "left": [], "more": 2},
    ]
    stage.end("\n".join(json.dumps(line) for line in told), 0)
    assert (stage.status.state, stage.status.replayed, stage.status.left) == ("done", 4, 1)
    assert stage.answer(asked).message == "replayed 4, left 1, 2 more beyond the limit"
    assert stage.answer(asked).done


def test_one_at_a_time(stage: Stage) -> None:
    first, second = stage.ask(), stage.ask()
    assert len(stage.lines) == 1
    assert not stage.answer(second).done
    assert f"replay {first} is still running" in stage.answer(second).message
    stage.end('{"replayed": 1, "left": []}', 0)
    stage.ask()
    assert len(stage.lines) == 2


def test_a_failure_says_why(stage: Stage) -> None:
    asked = stage.ask()
    stage.end(
        '{"topic": "a", "replayed": 2, "left": []}\n{"topic": "b", "repl\nDLQ_BUSY a transaction', 3
    )
    assert stage.status.state == "failed"
    assert (
        stage.answer(asked).message
        == "replayed 2, left 0, 0 more beyond the limit: DLQ_BUSY a transaction"
    )
    assert not stage.answer(asked).done


def test_an_error_of_the_command_is_told_in_its_words(stage: Stage) -> None:
    told = StringIO()
    show_error_json(KafkaError("DLQ_BUSY", "a transaction is open", "try again"), told)
    asked = stage.ask()
    stage.end(f'{{"topic": "a", "replayed": 2, "left": []}}\n{told.getvalue()}', 3)
    assert stage.answer(asked).message == (
        "replayed 2, left 0, 0 more beyond the limit: DLQ_BUSY a transaction is open"
    )


def test_a_status_folder_that_takes_no_answer_ends_no_job(stage: Stage) -> None:
    asked = stage.ask()
    (stage.folder / "commands" / f"{asked}.answer").mkdir()
    stage.end('{"topic": "a", "replayed": 1, "left": []}', 0)
    assert stage.status.state == "done"


def test_it_ends_in_time_and_with_the_job(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(replays, "WITHIN_S", -1.0)
    late = stage.ask()
    stage.replays.poll()
    assert "took longer" in stage.answer(late).message
    monkeypatch.setattr(replays, "WITHIN_S", 60.0)
    cut = stage.ask()
    stage.replays.poll()
    assert stage.exit_code is None
    stage.replays.stop()
    assert stage.exit_code == -15
    assert "the job ended first" in stage.answer(cut).message
