"""Every function gives what Flink gave, as flink.json has it; in the kernel, without Spark."""

from functools import cache
from typing import Any

import pytest

from spark_jobs.scenario.file import Scenario, Step
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.runner import bind_scenario
from tests.functions.cases import CASES
from tests.functions.jobs import (
    PLACES,
    RECORDS,
    Batch,
    answers,
    batches,
    calls_at,
    job_text,
    records,
    wrong,
)
from tests.harness.gateway import kernel

pytestmark = pytest.mark.service  # it takes long


def test_all_calls_are_recorded() -> None:
    assert [r["call"] for r in RECORDS] == [calls.expression for calls in CASES]


@cache
def computed() -> dict[int, list[Any]]:
    """The results of each call that Flink takes, by its place."""
    found: dict[int, list[Any]] = {}
    for places in batches():
        found |= zip(places, _run(calls_at(places)), strict=True)
    return found


def _run(batch: Batch) -> list[list[Any]]:
    bound = bind_scenario(Scenario("functions", job_text([batch]), ()))
    backend = MemoryBackend(bound, kernel())
    backend.feed("t0", records(bound, batch))
    outcome = backend.run_step(Step(0), lambda _: True)
    return answers(batch, outcome.records["s0"])


@pytest.mark.parametrize("place", PLACES, ids=lambda n: CASES[n].expression)
def test_call_gives_what_flink_gives(place: int) -> None:
    assert wrong(place, computed()[place]) == []
