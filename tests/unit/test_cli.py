"""Every verb: an example that parses, JSON for programs, errors as JSON on demand."""

import json
import shlex
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
import typer.main

from spark_jobs import cli
from spark_jobs.cli import app, main

JOB = Path(__file__).parents[1] / "plans" / "regular_left_null_safe.sql"


def verbs(command: Any, name: str = "rejoin") -> Iterator[tuple[str, Any]]:
    if not hasattr(command, "list_commands"):
        yield name, command
        return
    context = command.make_context(name, [], resilient_parsing=True)
    for word in command.list_commands(context):
        yield from verbs(command.get_command(context, word), f"{name} {word}")


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


INSERT = """CREATE TABLE o (v INT) WITH ('connector' = 'kafka', 'topic' = 'o', 'format' = 'json',
  'properties.bootstrap.servers' = 'b:1');
CREATE TABLE `{sink}` (v INT) WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'json',
  'properties.bootstrap.servers' = 'b:1');
INSERT INTO `{sink}` SELECT v FROM o;
"""


@pytest.mark.parametrize(
    ("raised", "code", "exit_code"),
    [
        (PermissionError(13, "denied", "/x"), "SYSTEM_REFUSED", 3),
        (KeyError("a defect"), "COMMAND_FAILED", 4),
        (KeyboardInterrupt(), None, 130),
        (typer.Abort(), None, 1),
        (BrokenPipeError(), None, 1),
    ],
)
def test_whatever_is_raised_has_a_code_and_an_exit_code(
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    raised: BaseException,
    code: str | None,
    exit_code: int,
) -> None:
    def fails(_: Path) -> str:
        raise raised

    monkeypatch.setattr(cli, "read_sql", fails)
    for asked in (("--json",), ()):
        assert ends_with(monkeypatch, "explain", "job.sql", *asked) == exit_code
        told = capsys.readouterr().err
        assert code is None or code in told
        if asked and code is not None:
            assert json.loads(told.splitlines()[-1])["errors"][0]["code"] == code


def test_a_folder_that_cannot_be_made_is_told_in_a_line(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    job, folder = tmp_path / "job.sql", tmp_path / "job.sql" / "status"
    job.write_text(INSERT.format(sink="s"))
    assert ends_with(monkeypatch, "run", str(job), "--status-dir", str(folder)) == 3
    assert capsys.readouterr().err.splitlines()[-1].startswith("SYSTEM_REFUSED")


def test_a_port_of_the_sidecar_that_is_taken_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("spark_jobs.driver.sidecar.PORT_WAIT_S", 0.0)
    job, folder = tmp_path / "job.sql", tmp_path / "status"
    job.write_text(INSERT.format(sink="s"))
    with socket.create_server(("127.0.0.1", 0)) as other:
        for port in (other.getsockname()[1], 99999):
            asked = ("--sidecar-port", str(port), "--status-dir", str(folder))
            assert ends_with(monkeypatch, "run", str(job), *asked) == 2
            assert "SIDECAR_PORT_IN_USE" in capsys.readouterr().err
    assert not folder.exists()


@pytest.mark.parametrize("name", ["../s", "a/b", ".", ".."])
def test_a_checkpoint_stays_in_its_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], name: str
) -> None:
    job = tmp_path / "job.sql"
    job.write_text(INSERT.format(sink=name))
    assert ends_with(monkeypatch, "check", str(job), "--offline") == 2
    assert "QUERY_NAME" in capsys.readouterr().err


@pytest.mark.parametrize("topic", [".", "..", "a/b", "a:0", "a:x"])
def test_what_is_no_topic_starts_no_broker(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], topic: str
) -> None:
    asked = ("--data-dir", str(tmp_path / "data"), "--topic", topic)
    assert ends_with(monkeypatch, "kafka", *asked) == 2
    assert "TOPIC_NAME" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_a_job_without_a_registry_loads_no_client_of_one() -> None:
    unused = {"cryptography", "httpx"}
    check = f"import spark_jobs.main, sys; sys.exit(str({unused} & sys.modules.keys() or ''))"
    done = subprocess.run(
        [sys.executable, "-c", check], timeout=60, check=False, stderr=subprocess.PIPE, text=True
    )
    assert done.stderr.strip() == ""
