"""How many rows the operator of a scenario stores after each step: what is forgotten is gone."""

import json
from collections.abc import Callable
from pathlib import Path

from spark_jobs.scenario.file import Step, read_scenario
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.runner import BoundScenario, ScenarioRun, StepOutcome, bind_scenario
from tests.harness.gateway import kernel

SCENARIOS = Path(__file__).parents[2] / "scenarios"


class CountingBackend(MemoryBackend):
    """Notes the rows of the left and the right side, after each step with new rows."""

    def __init__(self, bound: BoundScenario) -> None:
        super().__init__(bound, kernel())
        self.stored: list[tuple[int, int]] = []

    def run_step(self, step: Step, is_settled: Callable[[StepOutcome], bool]) -> StepOutcome:
        outcome = super().run_step(step, is_settled)
        [run] = self._runs
        [(left, right), *_] = json.loads(run.jvm.counters())
        if step.inputs:
            self.stored.append((left, right))
        return outcome


def stored_rows(name: str) -> list[tuple[int, int]]:
    bound = bind_scenario(read_scenario(SCENARIOS / f"{name}.scenario"))
    backend = CountingBackend(bound)
    ScenarioRun(bound, backend).all()
    return backend.stored


def test_rows_of_an_inner_interval_join_leave_the_state() -> None:
    """The rows 1 to 5, which only move the watermark, are stored too."""
    four_rows = [(1, 0), (1, 1), (2, 1), (2, 2)]
    a_1001_leaves = [(2, 3), (2, 3), (1, 4), (1, 4)]
    b_1002_leaves = [(2, 4), (2, 4), (3, 3), (3, 3)]
    late_rows_of_1003, all_but_the_last = [(3, 3), (3, 3)], [(1, 0)]
    assert stored_rows("interval_inner_rows_are_forgotten_of_seed_000") == [
        *four_rows, *a_1001_leaves, *b_1002_leaves, *late_rows_of_1003, *all_but_the_last,
    ]  # fmt: skip


def test_an_interval_join_keeps_what_its_bounds_still_reach() -> None:
    """Orders for four hours, shipments for the moment: what seed 002 draws."""
    rows = stored_rows("interval_shipments_within_4_hours_of_order")
    assert rows == [(2, 2), (2, 2), (2, 2), (2, 4), (2, 2)]


def test_versions_below_the_watermark_leave_but_for_the_newest() -> None:
    """Two rates of the euro while an order may still need the older one, one afterwards."""
    rows = stored_rows("temporal_function_rates_of_seed_004")
    assert rows == [(2, 3), (0, 4), (2, 3), (0, 4), (0, 5)]


def test_a_lookup_keeps_the_newest_rows_of_the_build_side_only() -> None:
    rows = stored_rows("latest_rates_of_seed_004")
    assert rows == [(0, 3), (0, 3), (0, 3), (0, 3), (0, 3), (0, 2), (0, 2)]


def test_a_regular_join_keeps_all_rows() -> None:
    assert stored_rows("seed_002_continuous_inner_join") == [(2, 1), (2, 4), (5, 4)]


def test_expired_rows_of_a_regular_join_leave_the_state() -> None:
    rows = stored_rows("seed_001_state_time_to_live")
    assert rows == [(1, 0), (2, 0), (2, 1), (1, 2), (0, 3)]


def test_a_regular_join_forgets_what_is_retracted() -> None:
    """One order and two products are left."""
    rows = stored_rows("seed_004_regular_join_of_changing_tables")
    assert rows == [(1, 0), (1, 1), (2, 1), (2, 1), (1, 1), (1, 0), (1, 2), (1, 2)]
