"""More random queries beside DuckDB than `make test` has, and some beside Flink as well."""

from collections.abc import Iterator
from dataclasses import replace

import pytest

from tests.differential.case import Agrees, Differs, run
from tests.differential.elements import cases
from tests.differential.flink.client import FlinkProcess
from tests.differential.flink.opinion import Other, Same, alone, opinion
from tests.differential.generate import HISTORIES
from tests.differential.judge import Judge
from tests.differential.run import run_cases
from tests.differential.test_differential import LEFT, NUMBERS, InnerJudge

SEED = 12
RANDOM = range(0, 700, HISTORIES // 2)


@pytest.fixture(scope="module")
def flink() -> Iterator[FlinkProcess]:
    with FlinkProcess() as process:
        yield process


def test_random_cases_agree() -> None:
    tally = run_cases(SEED, RANDOM, lambda _: None)
    assert tally.failures == []
    assert tally.agreed > len(RANDOM) * 0.9


@pytest.mark.timeout(1_800)  # Flink may have to be installed
def test_flink_agrees(flink: FlinkProcess) -> None:
    tally = run_cases(28, NUMBERS, lambda _: None, flink=flink)
    assert tally.failures == []
    assert tally.flink is not None
    assert tally.flink.unlike == {}
    assert tally.flink.unanswered == {}
    assert tally.flink.agreed + sum(tally.flink.not_comparable.values()) == len(NUMBERS)
    assert tally.flink.agreed > len(NUMBERS) // 2


@pytest.mark.timeout(1_800)
def test_flink_agrees_on_elements_and_counted_rows(flink: FlinkProcess) -> None:
    judge = Judge()
    for case in cases(1):
        outcome = run(case, judge)
        assert isinstance(outcome, Agrees), (case.name, outcome)
        assert opinion(case, outcome, flink) == Same(), case.query


@pytest.mark.timeout(1_800)
def test_flink_notices_a_wrong_row(flink: FlinkProcess) -> None:
    outcome = run(LEFT, Judge())
    assert isinstance(outcome, Agrees)
    assert opinion(LEFT, outcome, flink) == Same()
    outcome.view.rows[(7, None)] += 1
    found = opinion(LEFT, outcome, flink)
    assert isinstance(found, Other)
    assert found.problems == ("too much: (7, NULL)",)


@pytest.mark.timeout(1_800)
def test_flink_says_that_duckdb_is_wrong(flink: FlinkProcess) -> None:
    judge = InnerJudge()
    outcome = run(LEFT, judge)
    assert isinstance(outcome, Differs)
    case = replace(LEFT, steps=LEFT.steps[: outcome.step + 1])
    assert alone(case, outcome, flink, judge) == (
        "DuckDB alone differs: Flink answers as rejoin does"
    )


@pytest.mark.timeout(1_800)
def test_flink_says_what_it_refuses(flink: FlinkProcess) -> None:
    answer = flink.ask({"tables": [], "views": [], "query": "SELECT x FROM nowhere"})
    assert "Object 'nowhere' not found" in answer["error"]
