"""Random cases of one seed; that a wrong answer is found, shrunk and written as a scenario."""

import random
from dataclasses import replace
from datetime import datetime

import pytest

from spark_jobs.scenario.file import parse_scenario
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.runner import ScenarioRun, StepDifference, bind_scenario
from spark_jobs.scenario.values import Row
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Logical
from tests.differential.case import Agrees, Case, Differs, run
from tests.differential.dialect import duckdb_text, flink_text, parenthesised
from tests.differential.elements import cases
from tests.differential.generate import random_case
from tests.differential.history import LAST_STEP, Stays, Versions
from tests.differential.judge import Judge
from tests.differential.precedence import Flat
from tests.differential.queries import CONSTRUCTS
from tests.differential.report import scenario_text
from tests.differential.run import run_cases
from tests.differential.shrink import Shrinker
from tests.differential.tables import ROWTIME, Change, Contents, Table
from tests.harness.gateway import kernel
from tests.unit.sql.texts import script

pytestmark = pytest.mark.service  # it takes long

# of seed 28; between them, their queries are made of everything that random queries are made of,
# and Flink answers as rejoin does
NUMBERS = (120, 121, 328, 329, 376, 377, 496, 497, 712, 713, 744, 745, 816, 817)
TABLE = "CREATE TABLE t (id INT, k INT, j STRING, s STRING, f BOOLEAN) <append>;"
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
    tally = run_cases(28, NUMBERS, lambda _: None)
    assert tally.failures == []
    assert tally.agreed == len(NUMBERS)
    assert set(tally.constructs) == set(CONSTRUCTS)


def test_elements_and_counted_rows_agree() -> None:
    judge = Judge()
    for case in cases(2):
        outcome = run(case, judge)
        assert isinstance(outcome, Agrees), (case.name, case.query, outcome)


def test_parentheses_are_left_out_only_where_precedence_puts_them() -> None:
    rng = random.Random(7)  # noqa: S311 - repeatable, not secret
    flat = Flat(rng, {"INT": ["id", "k"], "STRING": ["j", "s"], "BOOLEAN": ["f"]})
    written = [flat.condition(4).text for _ in range(500)]
    assert sum("⟦" in text for text in written) > 400
    for text in written:
        assert _condition(flink_text(text)) == _condition(parenthesised(text)), text


def _condition(condition: str) -> Logical:
    return bind_query(script(TABLE, "SELECT id FROM t WHERE", condition)).query


def test_a_temporal_join_reads_the_rows_of_the_time() -> None:
    assert duckdb_text("a AS x LEFT JOIN b FOR SYSTEM_TIME AS OF x.rt AS y ON (x.k = y.id)") == (
        "a AS x LEFT JOIN b_versions AS y ON y.since <= x.rt AND x.rt < y.until AND (x.k = y.id)"
    )
    assert "b_steps AS y ON" in duckdb_text("JOIN b FOR SYSTEM_TIME AS OF x.pt AS y ON TRUE")


def test_versions_end_with_the_next_or_with_their_deletion() -> None:
    table = Table("b", "upsert", (("id", "INT"), ("rt", ROWTIME)), (0,))
    contents, versions = Contents(table), Versions(table)
    one, two, three = (datetime(2024, 1, day) for day in (1, 2, 3))
    changes = (
        Change("b", "+I", (1, one)),
        Change("b", "+U", (1, two)),
        Change("b", "-D", (1, one)),
    )
    for change in (*changes, Change("b", "+I", (1, three))):
        versions.apply(change, contents)
        contents.apply(change)
    assert [row[1:] for row in versions.rows()] == [
        (one, one, two),
        (three, three, datetime(9999, 1, 1)),
    ]


def test_rows_stay_from_step_to_step() -> None:
    stays = Stays()
    for step, rows in enumerate([[("a",), ("a",)], [("a",)], [("a",), ("b",)]]):
        stays.after(step, [*rows])
    assert sorted(stays.rows()) == [("a", 0, 1), ("a", 0, LAST_STEP), ("b", 2, LAST_STEP)]
    assert sorted(stays.latest()) == [("a", 0), ("b", 2)]


def test_duckdb_answers_where_its_optimizer_fails() -> None:
    flags = Table("a", "upsert", (("id", "INT"), ("f", "BOOLEAN")), (0,))
    rows = Table("b", "append", (("id", "INT"), ("k", "INT"), ("f", "BOOLEAN")))
    judge = Judge()
    judge.begin((flags, rows), ())
    joined = "b FULL JOIN a ON (b.f IS NOT DISTINCT FROM a.f)"
    never = "(b.k < b.k) AND NOT a.id IN (SELECT id FROM b)"
    assert judge.answer(f"SELECT DISTINCT b.k FROM {joined} WHERE {never}") == []  # noqa: S608


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
