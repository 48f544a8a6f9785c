"""What Flink is asked and how its answers are judged, without Flink (tests/long has it)."""

from collections.abc import Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import pytest

from spark_jobs.sql.types.data_types import DataType
from tests.differential.case import Case, Differs, Refused, run
from tests.differential.flink.opinion import (
    NoAnswer,
    NotComparable,
    Other,
    Same,
    alone,
    folded,
    opinion,
)
from tests.differential.flink.request import request, whole
from tests.differential.flink.tally import FlinkTally
from tests.differential.judge import Judge
from tests.differential.run import run_cases
from tests.differential.tables import ROWTIME, Change, Table
from tests.differential.test_differential import LEFT, InnerJudge

pytestmark = pytest.mark.service  # it takes long

ANSWER = {
    "rows": [["+I", 1, "X"], ["-D", 1, "X"], *(["+I", n, None] for n in (1, 2)), ["+I", 3, "Y"]]
}
VERSIONS = Table("v", "debezium", (("id", "INT"), ("rt", ROWTIME)), (0,), 2, is_clocked=True)


class Says:
    """Flink with one answer to all."""

    def __init__(self, answer: dict[str, Any]) -> None:
        self._answer = answer

    def ask(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        return self._answer


def test_tables_become_changelogs_of_their_mode() -> None:
    one, two = datetime(2024, 1, 1), datetime(2024, 1, 2)
    changes = (Change("v", "+I", (1, one)), Change("v", "+U", (1, two)))
    asked = request(Case("by hand", (*LEFT.tables, VERSIONS), (), "q", "retract", (), (changes,)))
    assert [(t["name"], t["mode"]) for t in asked["tables"]] == [
        ("a", "insert_only"),
        ("b", "upsert"),
        ("v", "all"),
    ]
    assert asked["tables"][2] == {
        "name": "v",
        "mode": "all",
        "columns": [["id", "INT"], ["rt", "TIMESTAMP(3)"]],
        "key": ["id"],
        "computed": [["pt", "PROCTIME()"]],
        "watermarks": [["rt", "rt - INTERVAL '2' SECOND"]],
        "rows": [["+I", 1, one], ["-U", 1, one], ["+U", 1, two]],
    }


def test_rows_that_are_only_added_come_by_time() -> None:
    table = Table("a", "append", (("id", "INT"), ("rt", ROWTIME)))
    one, two = datetime(2024, 1, 1), datetime(2024, 1, 2)
    changes = (Change("a", "+I", (1, two)), Change("a", "+I", (2, one)))
    [asked] = request(Case("by hand", (table,), (), "q", "retract", (), (changes,)))["tables"]
    assert asked["rows"] == [["+I", 2, one], ["+I", 1, two]]


def test_debezium_events_get_the_old_rows_that_are_stored() -> None:
    table = replace(VERSIONS, columns=(("id", "INT"), ("k", "INT")))
    given = (("-D", (1, 0)), ("+U", (1, 1)), ("+U", (1, 2)), ("-D", (1, 7)))
    changes = [Change("v", kind, row) for kind, row in given]
    assert [(c.kind, c.row) for c in whole(table, changes)] == [
        ("+I", (1, 1)),
        ("-U", (1, 1)),
        ("+U", (1, 2)),
        ("-D", (1, 2)),
    ]
    assert [*whole(replace(table, mode="upsert"), changes)] == changes


def test_changes_are_folded_in_the_types_of_rejoin() -> None:
    changes = [["+I", "1.50"], ["-U", "1.50"], ["+U", "2.00"], ["-D", "3"]]
    rows, gone = folded(changes, [DataType("DECIMAL", precision=10, scale=2)])
    assert [*map(str, next(iter(rows)))] == ["2"]
    assert [*map(str, next(iter(gone)))] == ["3"]


def test_messages_are_counted_without_names_and_numbers() -> None:
    text = (
        "TableException: org.apache.flink.table.api.TableException: Failed to execute sql\n"
        "Caused by: org.apache.calcite.runtime.CalciteContextException: "
        "From line 1, column 8: Column 'a.x' not found in (b, c)\n"
    )
    assert NoAnswer(text).kind == (
        "CalciteContextException: From line _, column _: Column _ not found in _"
    )
    crash = "Py4JJavaError: An error occurred while calling o35.executeSql.\n: java.lang."
    assert NoAnswer(f"{crash}IndexOutOfBoundsException: Index: 2, Size: 1\n\tat x.Y").kind == (
        "IndexOutOfBoundsException: Index: _, Size: _"
    )
    assert NoAnswer(f"{crash}NullPointerException\n\tat x.Y").kind == "NullPointerException: "
    assert NoAnswer("Timeout: no answer").kind == "Timeout: no answer"


def test_the_final_rows_are_compared() -> None:
    outcome = run(LEFT, Judge())
    assert opinion(LEFT, outcome, Says(ANSWER)) == Same()
    wrong = opinion(LEFT, outcome, Says({"rows": [*ANSWER["rows"][:-1], ["-D", 4, None]]}))
    assert isinstance(wrong, Other)
    assert wrong.problems == (
        "Flink takes back what is not there: (4, NULL)",
        "too much: (3, Y)",
    )
    by_key = replace(
        LEFT, sink="upsert", key=("c0",), query=LEFT.query.replace("r1.id", "COALESCE(r1.id, 0)")
    )
    assert opinion(by_key, run(by_key, Judge()), Says(ANSWER)) == Same()


def test_what_says_nothing_is_not_compared() -> None:
    outcome = run(LEFT, Judge())
    query = "SELECT 1 FROM a JOIN b FOR SYSTEM_TIME AS OF a.pt AS y ON a.k = y.id"
    by_clock = opinion(replace(LEFT, query=query), outcome, Says({}))
    assert by_clock == NotComparable("temporal join by processing time")
    refused = opinion(LEFT, Refused(("A", "B")), Says({}))
    assert refused == NotComparable("refused by rejoin (A, B)")
    assert opinion(LEFT, outcome, Says({"error": "no"})) == NoAnswer("no")


def test_the_one_that_differs_is_named() -> None:
    judge = InnerJudge()
    outcome = run(LEFT, judge)
    assert isinstance(outcome, Differs)
    case = replace(LEFT, steps=LEFT.steps[: outcome.step + 1])
    right = [["+I", 1, "X"], ["+I", 2, None], ["+I", 3, "Y"]]
    inner = [["+I", 1, "X"], ["+I", 3, "Y"]]
    assert "DuckDB alone" in alone(case, outcome, Says({"rows": right}), judge)
    assert "rejoin alone" in alone(case, outcome, Says({"rows": inner}), judge)
    assert "all three differ" in alone(case, outcome, Says({"rows": []}), judge)


def test_where_flink_alone_differs_nothing_fails() -> None:
    said: list[str] = []
    tally = run_cases(28, (904, 905), said.append, flink=Says({"rows": []}))
    assert tally.failures == []
    assert tally.flink is not None
    assert [len(names) for names in tally.flink.unlike.values()] == [2]
    assert "seed 28 case 904: Flink alone differs" in said
    assert "Flink: 0 agree; Flink alone differs in 2, of 1 queries" in tally.lines()


def test_each_kind_of_missing_answer_is_shown_once() -> None:
    tally = FlinkTally(Says({"error": "X: no"}))
    outcome = run(LEFT, Judge())
    assert tally.add(LEFT, outcome)[0] == "by hand, no answer of Flink: X: no"
    assert tally.add(LEFT, outcome) == []
    assert tally.lines()[-1] == "without an answer of Flink: X: no 2"
