"""Whether Flink answers a case as rejoin does: the final rows, and why there may be none.

Only the end is compared. What Flink shows on the way depends on the order in which it reads its
inputs, which nobody defines; the answer at the end does not, except by processing time.
"""

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, TypeAlias

from spark_jobs.scenario.fold import row_text
from spark_jobs.scenario.values import Row
from spark_jobs.sql.types.data_types import DataType
from tests.differential.case import (
    Agrees,
    Case,
    Differs,
    Outcome,
    Refused,
    canonical_rows,
    difference,
)
from tests.differential.flink.request import request
from tests.differential.judge import Judge
from tests.differential.tables import ADDS, PROCTIME

_CAUSE = re.compile(
    r"(?:Caused by)?(?::? ?[\w$.]+:)*:? ?[\w$.]*?(\w+(?:Exception|Error))(?:: (.*))?$"
)
_PARTICULAR = re.compile(r"'[^']*'|\"[^\"]*\"|\[[^\]]*\]|\([^)]*\)|\d+")
_KIND_WIDTH = 120


class Asked(Protocol):
    """What client.py starts, or a stand-in of a test."""

    def ask(self, asked: Mapping[str, Any]) -> dict[str, Any]:
        """`rows`, each with its kind in front, or an `error`."""


@dataclass(frozen=True, slots=True)
class Same:
    """Flink shows what rejoin shows."""


@dataclass(frozen=True, slots=True)
class Other:
    """`problems`: what rejoin shows too much or not, if Flink is right. `rows`: Flink's."""

    problems: tuple[str, ...]
    rows: Counter[Row]


@dataclass(frozen=True, slots=True)
class NotComparable:
    """There is nothing to compare, or it would say nothing."""

    reason: str


@dataclass(frozen=True, slots=True)
class NoAnswer:
    """Flink refuses the query or fails. `text`: its message; `kind`: without names and numbers."""

    text: str

    @property
    def kind(self) -> str:
        causes = [found for line in self.text.splitlines() if (found := _CAUSE.match(line))]
        if not causes:
            return self.text.partition("\n")[0][:_KIND_WIDTH]
        name, message = causes[-1].groups()
        return f"{name}: {' '.join(_PARTICULAR.sub('_', message or '').split())}"[:_KIND_WIDTH]


Opinion: TypeAlias = Same | Other | NotComparable | NoAnswer


def opinion(case: Case, outcome: Outcome, flink: Asked) -> Opinion:
    """What Flink says of rejoin's rows, whether or not DuckDB agrees with them."""
    match outcome:
        case Agrees(view=view) | Differs(view=view):
            if by_processing_time(case):
                return NotComparable("temporal join by processing time")
        case Refused(codes):
            return NotComparable(f"refused by rejoin ({', '.join(codes)})")
        case _:
            return NotComparable("no rows of rejoin, or none of DuckDB")
    answer = flink.ask(request(case))
    if "error" in answer:
        return NoAnswer(answer["error"])
    rows, gone = folded(answer["rows"], [field.type for field in case.fields()])
    problems = [f"Flink takes back what is not there: {row_text(row)}" for row in gone.elements()]
    problems += difference(view, rows)
    return Other(tuple(problems), rows) if problems else Same()


def by_processing_time(case: Case) -> bool:
    """Whether the answer depends on when rows are read; Flink refuses such joins anyway."""
    texts = (case.query, *(text for _, text in case.views))
    return any(f".{PROCTIME} AS " in text for text in texts)


def folded(
    changes: Sequence[Sequence[Any]], types: Sequence[DataType]
) -> tuple[Counter[Row], Counter[Row]]:
    """The rows that are left, and those that are taken back more often than they came."""
    rows: Counter[Row] = Counter()
    for kind, *values in changes:
        [row] = canonical_rows([tuple(values)], types)
        rows[row] += 1 if kind in ADDS else -1
    return +rows, -rows


def alone(case: Case, outcome: Differs, flink: Asked, judge: Judge) -> str:
    """Which of the three differs from the two others."""
    match opinion(case, outcome, flink):
        case Same():
            return "DuckDB alone differs: Flink answers as rejoin does"
        case Other(problems, rows):
            types = [field.type for field in case.fields()]
            judge.begin(case.tables, case.views, case.query)
            for step in case.steps:
                judge.apply(step)
            if rows == canonical_rows(judge.answer(case.query), types):
                return "rejoin alone differs: Flink answers as DuckDB does"
            return "\n".join(["all three differ; with Flink's answer:", *problems])
        case NotComparable(reason):
            return f"Flink is not asked: {reason}"
        case NoAnswer(text):
            return f"Flink does not answer: {text}"
