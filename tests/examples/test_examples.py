"""Every job of examples/: its plan, its rows where it has `.steps`, its line in the list."""

import re
from collections.abc import Callable
from pathlib import Path

import pytest

from spark_jobs.plan.text.explain import explain_text
from spark_jobs.scenario.file import parse_scenario
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.runner import ScenarioRun, bind_scenario
from tests.harness.gateway import kernel

HERE = Path(__file__).parent
EXAMPLES = HERE.parents[1] / "examples"
JOBS = sorted(EXAMPLES.glob("*.sql"))
STEPS = sorted(EXAMPLES.glob("*.steps"))


@pytest.mark.parametrize("job", JOBS, ids=lambda path: path.stem)
def test_plan(job: Path, golden: Callable[[Path, str], None]) -> None:
    text = explain_text(job.read_text(encoding="utf-8"), job.name)
    golden(HERE / f"{job.stem}.txt", text + "\n")


@pytest.mark.parametrize("steps", STEPS, ids=lambda path: path.stem)
def test_rows(steps: Path) -> None:
    sql = steps.with_suffix(".sql").read_text(encoding="utf-8")
    bound = bind_scenario(parse_scenario(sql + steps.read_text(encoding="utf-8"), steps.stem))
    ScenarioRun(bound, MemoryBackend(bound, kernel())).all()


def test_the_list_names_every_example_as_it_names_itself() -> None:
    listed = re.findall(
        r"^\| \[`([\w.]+)`\]\(\1\) \| (.+) \|$",
        (EXAMPLES / "README.md").read_text(encoding="utf-8"),
        re.MULTILINE,
    )
    found = {path.name: _first_line(path) for path in (*JOBS, *EXAMPLES.glob("*.py"))}
    assert dict(listed) == found


def _first_line(path: Path) -> str:
    return path.read_text(encoding="utf-8").splitlines()[0].removeprefix("-- ").strip('"# ')
