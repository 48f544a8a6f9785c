"""Runs histories, and shrinks one that breaks a rule."""

import json
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field, replace

from tests.simulation.history import History, random_history
from tests.simulation.jobs import simulation
from tests.simulation.judge import Violation, judge

Say = Callable[[str], None]
_PROGRESS_S = 10.0


@dataclass(slots=True)
class Tally:
    histories: int = 0
    steps: int = 0
    seconds: float = 0.0
    violations: list[str] = field(default_factory=list)

    @property
    def per_minute(self) -> float:
        return self.histories / max(self.seconds, 1e-9) * 60

    def text(self) -> str:
        return (
            f"{self.histories} histories, {self.steps} steps, {len(self.violations)} violations, "
            f"{self.per_minute:.0f} histories a minute"
        )


def try_history(history: History, faults: Iterable[str] = ()) -> Violation | None:
    """What the judge says of one run; the same each time."""
    given = {"faults": list(faults), "local": history.local, "steps": history.steps}
    outcomes = simulation(history.job).run(json.dumps(given))
    return judge(history, json.loads(outcomes))


def run_histories(
    seed: int,
    first: int,
    count: int,
    say: Say,
    fault: str | None = None,
    keep_going: bool = False,
) -> Tally:
    """Run histories; the first violation is shrunk, said, and ends the run by default."""
    faults = () if fault is None else (fault,)
    tally = Tally()
    started = said = time.monotonic()
    for number in range(first, first + count):
        history = random_history(seed, number)
        violation = try_history(history, faults)
        tally.histories += 1
        tally.steps += len(history.steps)
        tally.seconds = time.monotonic() - started
        if violation is not None:
            text = report(seed, number, fault, *shrunk(history, violation, faults))
            tally.violations.append(text)
            say(text)
            if not keep_going:
                break
        if time.monotonic() - said > _PROGRESS_S:
            said = time.monotonic()
            say(tally.text())
    return tally


def shrunk(
    history: History, violation: Violation, faults: Iterable[str]
) -> tuple[History, Violation]:
    """Leaves out steps as long as the same rule is broken."""
    if violation.step < len(history.steps) - history.settling:
        history = replace(history, steps=history.steps[: violation.step + 1], settling=0)
    found = violation
    width = max(len(history.steps) // 2, 1)
    while width:
        at = 0
        while at < (last := len(history.steps) - history.settling):
            steps = history.steps[:at] + history.steps[min(at + width, last) :]
            shorter = replace(history, steps=steps)
            again = try_history(shorter, faults) if _is_whole(shorter) else None
            if again is not None and again.rule == violation.rule:
                history, found = shorter, again
            else:
                at += width
        width //= 2
    return history, found


def _is_whole(history: History) -> bool:
    """Whether records go to partitions that exist."""
    counts: dict[str, int] = {}
    for name, *given in history.steps:
        if name == "topic":
            counts[given[0]] = max(counts.get(given[0], 0), given[1])
        elif name == "feed" and given[1] >= counts.get(given[0], 0):
            return False
    return True


def report(
    seed: int, number: int, fault: str | None, history: History, violation: Violation
) -> str:
    again = f"python -m tests.simulation --seed {seed} --first {number} --histories 1"
    if fault is not None:
        again += f" --fault {fault}"
    return (
        f"history {number} of seed {seed} breaks the rule '{violation.rule}' at step "
        f"{violation.step}: {violation.text}\n{history.text()}\nagain: {again}"
    )
