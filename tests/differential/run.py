"""Runs random cases one after the other, and counts what became of them."""

import math
import time
from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field

from tests.differential.case import Agrees, Case, Differs, Outcome, Refused, run
from tests.differential.flink.opinion import Asked, alone
from tests.differential.flink.tally import FlinkTally
from tests.differential.generate import random_case
from tests.differential.judge import Judge
from tests.differential.report import report
from tests.differential.shrink import Shrinker, is_wrong

Say = Callable[[str], None]
_PROGRESS_S = 10
_SHOWN = 3


@dataclass(slots=True)
class Tally:
    """What became of the cases; `unnetted` are examples of steps that say more than they must."""

    cases: int = 0
    agreed: int = 0
    with_rows: int = 0
    constructs: Counter[str] = field(default_factory=Counter)
    refused: Counter[str] = field(default_factory=Counter)
    failures: list[str] = field(default_factory=list)
    wrong_queries: set[str] = field(default_factory=set)
    unnetted_cases: int = 0
    unnetted: list[str] = field(default_factory=list)
    flink: FlinkTally | None = None

    def add(self, case: Case, outcome: Outcome) -> None:
        self.cases += 1
        match outcome:
            case Refused(codes):
                self.refused.update(codes)
            case Agrees(rows, unnetted):
                self.agreed += 1
                self.with_rows += rows > 0
                self.constructs.update(case.constructs if rows > 0 else ())
                if unnetted:
                    self.unnetted_cases += 1
                    self.unnetted.append(f"{case.name}, {unnetted[0]}: {case.select()}")

    def lines(self) -> list[str]:
        made_of = ", ".join(f"{name} {n}" for name, n in self.constructs.most_common())
        refused = ", ".join(f"{code} {n}" for code, n in self.refused.most_common())
        return [
            f"{self.cases} cases: {self.agreed} agree, {self.with_rows} of them with rows; "
            f"{len(self.failures)} failed",
            f"with rows, and: {made_of or 'none'}",
            f"refused: {refused or 'none'}",
            f"an equal row taken back and added in one step: {self.unnetted_cases} cases",
            *(f"  {example}" for example in self.unnetted[:_SHOWN]),
            *(self.flink.lines() if self.flink is not None else []),
        ]


def run_cases(
    seed: int,
    numbers: Iterable[int],
    say: Say,
    keep_going: bool = False,
    until: float = math.inf,
    flink: Asked | None = None,
) -> Tally:
    """Run the cases; the first that fails is shrunk and reported and ends the run, by default.

    `until`: no case begins after this time of the monotonic clock. Ctrl-C ends the run as well.
    `flink`: the second judge. Where it alone differs, this is reported, and nothing fails.
    """
    tally = Tally(flink=FlinkTally(flink) if flink is not None else None)
    judge = Judge()
    said = time.monotonic()
    for index in numbers:
        if time.monotonic() > until or (tally.failures and not keep_going):
            break
        try:
            _run_case(random_case(seed, index, judge), judge, tally, say)
        except KeyboardInterrupt:
            break
        if time.monotonic() - said > _PROGRESS_S:
            said = time.monotonic()
            say(f"case {index}: {tally.agreed} agree, {len(tally.failures)} failed")
    return tally


def _run_case(case: Case, judge: Judge, tally: Tally, say: Say) -> None:
    outcome = run(case, judge)
    tally.add(case, outcome)
    if is_wrong(outcome) and case.query in tally.wrong_queries:
        tally.failures.append(case.name)
        say(f"{case.name}: the same query fails again")
    elif is_wrong(outcome):
        tally.wrong_queries.add(case.query)
        smaller, found = Shrinker(case, outcome, judge).shrink()
        shown = report(smaller, found)
        if tally.flink is not None and isinstance(found, Differs):
            shown = f"{shown}\n{alone(smaller, found, tally.flink.asked, judge)}"
        tally.failures.append(shown)
        say(shown)
    elif tally.flink is not None:
        for line in tally.flink.add(case, outcome):
            say(line)
