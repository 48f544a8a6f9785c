"""`rejoin test`: the example of its page, what differs and how it is told."""

import json
import re
import xml.etree.ElementTree as ET
from datetime import UTC, datetime
from pathlib import Path

import pytest
from typer.testing import CliRunner

from spark_jobs.cli import app
from spark_jobs.errors import ConfigError
from spark_jobs.scenario.junit import write_junit
from spark_jobs.scenario.show import as_json, problem_lines
from spark_jobs.scenario.suite import Result, find_scenarios, run_scenario
from tests.harness.gateway import kernel

PAGE = Path(__file__).parents[2] / "docs" / "scenarios.md"
REFUSED = "fails: NO_INSERT\nSET 'pipeline.name' = 'x';\n"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    """The files of docs/scenarios.md."""
    blocks = re.findall(r"```(?:sql)?\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    (tmp_path / "orders.sql").write_text(blocks[0])
    file = tmp_path / "named_orders.scenario"
    file.write_text(blocks[1])
    return file


def run(file: Path, before: str = "", after: str = "") -> Result:
    """With one text in the file replaced."""
    text = file.read_text()
    assert before in text
    file.write_text(text.replace(before, after))
    return run_scenario(file, kernel)


def test_the_example_passes(example: Path) -> None:
    result = run(example)
    assert (result.outcome, result.steps) == ("passed", 4)


def test_a_difference_shows_the_rows_of_its_step(example: Path) -> None:
    result = run(example, "19.90, 'Ada'", "19.90, 'Bob'")
    assert result.outcome == "failed"
    shown = re.search(r"  step 3 .*?(?=```)", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert shown is not None
    assert "\n".join(problem_lines(result)) + "\n" == shown[0]
    told = as_json([result], 1.0)
    [scenario] = json.loads(json.dumps(told))["scenarios"]
    [sink] = scenario["difference"]["sinks"]
    assert [(row["is"], row["values"]) for row in sink["rows"]] == [
        ("missing", ["1", "19.9", "'Bob'"]),
        ("extra", ["1", "19.9", "'Ada'"]),
    ]


def test_rows_that_nobody_expects_are_a_difference(example: Path) -> None:
    result = run(example, "< -D {order_id: 1}\n")
    assert "1 not expected" in problem_lines(result)[0]


def test_a_record_that_a_job_would_fail_on_has_its_line(example: Path) -> None:
    result = run(example, "> orders -D {order_id: 1}", "> users raw (NULL, 'no json')")
    assert result.error is not None
    [problem] = result.error.problems
    assert (problem.code, problem.place) == (
        "SCENARIO_STEP_FAILED",
        {"file": str(example), "line": 12, "column": 1},
    )


def test_junit_counts_and_holds_any_text(example: Path, tmp_path: Path) -> None:
    broken = tmp_path / "broken.scenario"
    broken.write_text("SELECT '\x01';\n> a +I (1)\n")
    results = [run(example, "'Ada')", "'B\x0bb')"), run(broken)]
    write_junit(tmp_path / "out" / "junit.xml", results, datetime.now(UTC))
    root = ET.parse(tmp_path / "out" / "junit.xml").getroot()  # noqa: S314
    [suite] = root
    counts = {name: suite.get(name) for name in ("tests", "failures", "errors")}
    assert counts == {"tests": "2", "failures": "1", "errors": "1"}
    differs, wrong = suite
    assert [case.tag for case in (*differs, *wrong)] == ["failure", "error"]
    assert "not expected" in (differs[0].text or "")
    assert wrong[0].get("type") in (wrong[0].text or "")


def test_folders_are_searched_and_names_choose(tmp_path: Path) -> None:
    for name in ("a/late.scenario", "a/b/Refund.scenario", "a/job.sql"):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    found = find_scenarios([tmp_path])
    assert sorted(path.name for path in found) == ["Refund.scenario", "late.scenario"]
    assert [path.name for path in find_scenarios([tmp_path], ["refund"])] == ["Refund.scenario"]
    for paths, names in (([tmp_path], ["no"]), ([tmp_path / "none"], [])):
        with pytest.raises(ConfigError):
            find_scenarios(paths, names)


@pytest.mark.parametrize(("code", "exit_code"), [("NO_INSERT", 0), ("NO_QUERY", 2)])
def test_the_command_ends_with_what_came_of_it(tmp_path: Path, code: str, exit_code: int) -> None:
    file = tmp_path / "refused.scenario"
    file.write_text(REFUSED.replace("NO_INSERT", code))
    done = CliRunner().invoke(app, ["test", str(tmp_path), "--json"])
    assert done.exit_code == exit_code
    told = json.loads(done.stdout)
    assert told["passed"] == (exit_code == 0)
    assert told["scenarios"][0]["file"] == str(file)
    plain = CliRunner().invoke(app, ["test", str(tmp_path)]).stdout
    assert plain.startswith("PASSED" if exit_code == 0 else "FAILED")
    assert "\x1b" not in plain
