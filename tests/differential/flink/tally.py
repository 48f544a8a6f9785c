"""What Flink said of the cases in which DuckDB and rejoin agree."""

from collections import Counter
from dataclasses import dataclass, field

from tests.differential.case import Case, Outcome
from tests.differential.flink.opinion import (
    Asked,
    NoAnswer,
    NotComparable,
    Other,
    Same,
    opinion,
)
from tests.differential.report import scenario_text


@dataclass(slots=True)
class FlinkTally:
    """`unlike`: the queries to which Flink alone gives another answer, with its cases."""

    asked: Asked
    agreed: int = 0
    not_comparable: Counter[str] = field(default_factory=Counter)
    unanswered: Counter[str] = field(default_factory=Counter)
    unlike: dict[str, list[str]] = field(default_factory=dict)

    def add(self, case: Case, outcome: Outcome) -> list[str]:
        """Ask Flink; what is to be said of it."""
        match opinion(case, outcome, self.asked):
            case Same():
                self.agreed += 1
            case NotComparable(reason):
                self.not_comparable[reason] += 1
            case NoAnswer() as failed:
                self.unanswered[failed.kind] += 1
                if self.unanswered[failed.kind] == 1:
                    return [f"{case.name}, no answer of Flink: {failed.kind}", case.job()]
            case Other(problems):
                known = self.unlike.setdefault(case.query, [])
                known.append(case.name)
                head = f"{case.name}: Flink alone differs"
                if len(known) > 1:
                    return [f"{head}, by the same query"]
                return [head, *(f"  {problem}" for problem in problems), scenario_text(case)]
        return []

    def lines(self) -> list[str]:
        cases = sum(len(names) for names in self.unlike.values())
        return [
            f"Flink: {self.agreed} agree; Flink alone differs in {cases}, "
            f"of {len(self.unlike)} queries",
            f"not compared with Flink: {_counted(self.not_comparable)}",
            f"without an answer of Flink: {_counted(self.unanswered)}",
        ]


def _counted(counts: Counter[str]) -> str:
    return "; ".join(f"{name} {n}" for name, n in counts.most_common()) or "none"
