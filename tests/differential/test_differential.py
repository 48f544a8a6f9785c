"""Random cases of one seed; that a wrong answer is found, shrunk and written as a scenario."""

from dataclasses import replace

import pytest

from spark_jobs.scenario.file import parse_scenario
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.runner import ScenarioRun, StepDifference, bind_scenario
from spark_jobs.scenario.values import Row
from tests.differential.case import Case, Differs, run
from tests.differential.generate import random_case
from tests.differential.judge import Judge
from tests.differential.report import scenario_text
from tests.differential.run import run_cases
from tests.differential.shrink import Shrinker
from tests.differential.tables import Change, Table
from tests.harness.gateway import kernel

CASES = 8
A = Table("a", "append", (("id", "INT"), ("k", "INT")))
B = Table("b", "upsert", (("id", "INT"), ("k", "INT"), ("j", "STRING")), (0,))
LEFT = Case(
    "by hand",
    (A, B),
    (),
    "SELECT r1.id AS c0, UPPER(r2.j) AS c1 FROM a AS r1 LEFT JOIN b AS r2 ON r1.k = r2.k",
    "retract",
    (),
    (
        (Change("b", "+I", (1, 1, "x")), Change("b", "+I", (2, 2, "y"))),
        (Change("a", "+I", (1, 1)), Change("a", "+I", (2, 7)), Change("a", "+I", (3, 2))),
        (Change("b", "-D", (1, 1, "x")),),
    ),
    frozenset({1}),
)


class InnerJudge(Judge):
    """One that is wrong about outer joins."""

    def answer(self, query: str) -> list[Row]:
        return Judge.answer(self, query.replace("LEFT JOIN", "JOIN"))


def test_random_cases_agree() -> None:
    tally = run_cases(28, 0, CASES, lambda _: None)
    assert tally.failures == []
    assert tally.agreed > CASES // 2


def test_a_wrong_answer_is_shrunk() -> None:
    judge = InnerJudge()
    outcome = run(LEFT, judge)
    assert isinstance(outcome, Differs)
    case, found = Shrinker(LEFT, outcome, judge).shrink()
    assert isinstance(found, Differs)
    assert [len(step) for step in case.steps] == [1]
    assert case.restarts == frozenset()
    assert case.sink == "debezium"


def test_the_report_is_a_scenario_that_passes_where_the_answer_is_right() -> None:
    case = replace(LEFT, sink="debezium")
    text = scenario_text(case)
    bound = bind_scenario(parse_scenario(text, "reported"))
    ScenarioRun(bound, MemoryBackend(bound, kernel())).all()
    wrong = bind_scenario(parse_scenario(text.replace("'X'", "'Z'"), "wrong"))
    with pytest.raises(StepDifference):
        ScenarioRun(wrong, MemoryBackend(wrong, kernel())).all()


def test_the_same_numbers_give_the_same_case() -> None:
    judge = Judge()
    assert random_case(3, 14, judge) == random_case(3, 14, judge)
    assert random_case(3, 14, judge).query == random_case(3, 15, judge).query
    assert random_case(3, 14, judge) != random_case(4, 14, judge)
