"""Every verb: an example that parses, JSON for programs, errors as JSON on demand."""

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from spark_jobs.cli import app, main

JOB = Path(__file__).parents[1] / "plans" / "regular_left_null_safe.sql"


def verbs(command: Any, name: str = "rejoin") -> Iterator[tuple[str, Any]]:
    for word, below in getattr(command, "commands", {}).items():
        yield from verbs(below, f"{name} {word}")
    if not hasattr(command, "commands"):
        yield name, command


VERBS = dict(verbs(typer.main.get_command(app)))


@pytest.mark.parametrize("name", VERBS)
def test_every_verb_has_an_example_and_speaks_json(name: str) -> None:
    command = VERBS[name]
    assert "--json" in {option for p in command.params for option in p.opts}
    assert len(command.help.splitlines()) > 1, "what it does, and for whom"
    example = command.epilog.removeprefix("Example: ")
    assert example.startswith(name)
    arguments = shlex.split(example.removeprefix(name))
    command.make_context(name, arguments)  # raises for options that it has not


def ends_with(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> object:
    monkeypatch.setattr(sys, "argv", ["rejoin", *arguments])
    with pytest.raises(SystemExit) as ended:
        main()
    return ended.value.code


def test_errors_are_json_for_programs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job = tmp_path / "job.sql"
    job.write_text("INSERT INTO x SELECT a FROM b;\n")
    assert ends_with(monkeypatch, "explain", str(job), "--json") == 2
    printed = capsys.readouterr()
    assert printed.out == ""
    first, *_ = json.loads(printed.err)["errors"]
    assert (first["code"], first["place"]["file"]) == ("UNKNOWN_TABLE", str(job))
    assert ends_with(monkeypatch, "explain", "--jsno", "--json") == 2
    assert json.loads(capsys.readouterr().err)["errors"][0]["code"] == "COMMAND_LINE"
    assert ends_with(monkeypatch, "explain", str(job)) == 2
    text = capsys.readouterr().err
    assert text.startswith(f"{job}:1:13: UNKNOWN_TABLE")
    assert "\x1b" not in text


def test_explain_gives_one_document(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert not ends_with(monkeypatch, "explain", str(JOB), "--json")
    told = json.loads(capsys.readouterr().out)
    assert [query["plan"]["kind"] for query in told["queries"]] == ["results"]
    assert not ends_with(monkeypatch, "explain", str(JOB))
    assert capsys.readouterr().out == JOB.with_suffix(".txt").read_text()
