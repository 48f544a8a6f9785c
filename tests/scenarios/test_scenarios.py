"""Every scenario file, in memory: parser, binder, planner, readers, machines and writers."""

from pathlib import Path

import pytest

from spark_jobs.scenario.file import read_scenario
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.runner import ScenarioRun, bind_scenario, check_refusal
from tests.harness.gateway import kernel

FILES = sorted(Path(__file__).parent.glob("*.scenario"))


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_scenario(path: Path) -> None:
    scenario = read_scenario(path)
    if scenario.fails is not None:
        check_refusal(scenario)
        return
    bound = bind_scenario(scenario)
    ScenarioRun(bound, MemoryBackend(bound, kernel())).all()
