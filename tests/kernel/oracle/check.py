"""Runs a machine over random batches beside a model, and shrinks what goes wrong."""

import json
import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeAlias

Event: TypeAlias = list[Any]  # [side, kind, values] | [mark, ms]
Batch: TypeAlias = list[Event]
Emitted: TypeAlias = list[list[Any]]  # [kind, values...] in the order in which they left

_CALL_EVENTS = 2_000
_SHRINK_TRIALS = 600


class Machine(Protocol):
    """The kernel's MachineRun as py4j shows it."""

    def run(self, batches: str) -> str: ...
    def restart(self) -> None: ...
    def stateRows(self) -> str: ...


class Model(Protocol):
    """Recomputes from nothing but the inputs what the machine must have emitted so far."""

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        """What is wrong with the output of this batch."""
        ...

    def state_rows(self) -> list[int] | None:
        """Rows per side that the machine should count, if the model can tell."""
        ...


@dataclass(frozen=True, slots=True)
class Case:
    """One random configuration, its input, and where restarts happen (before these batches)."""

    name: str
    node: dict[str, Any]
    batches: list[Batch]
    restarts: frozenset[int]
    model: Callable[[], Model]


@dataclass(frozen=True, slots=True)
class Failure:
    """The first batch whose output is wrong."""

    case: Case
    batch: int
    emitted: Emitted
    problems: list[str]

    def report(self) -> str:
        lines = [f"{self.case.name}: batch {self.batch} of {len(self.case.batches)}"]
        lines += [f"  {problem}" for problem in self.problems]
        lines.append("  node " + json.dumps(self.case.node))
        for number, batch in enumerate(self.case.batches[: self.batch + 1]):
            if number in self.case.restarts:
                lines.append("  restart")
            lines.append(f"  batch {number}: {json.dumps(batch)}")
        lines.append(f"  emitted: {json.dumps(self.emitted)}")
        return "\n".join(lines)


MakeMachine: TypeAlias = Callable[[str], Machine]


def check(case: Case, make_machine: MakeMachine) -> Failure | None:
    """Run the case; the first failing batch, if any."""
    machine = make_machine(json.dumps(case.node))
    model = case.model()
    for start, stop in _segments(case):
        if start in case.restarts:
            machine.restart()
        batches = case.batches[start:stop]
        for offset, emitted in enumerate(json.loads(machine.run(json.dumps(batches)))):
            problems = model.step(batches[offset], emitted)
            if problems:
                return Failure(case, start + offset, emitted, problems)
        wanted = model.state_rows()
        stored = json.loads(machine.stateRows())
        if wanted is not None and stored != wanted:
            problem = f"the machine counts {stored} stored rows, expected {wanted}"
            return Failure(case, stop - 1, [], [problem])
    return None


def _segments(case: Case) -> Iterable[tuple[int, int]]:
    """Ranges of batches for one call each: up to a restart, or enough events."""
    start = 0
    events = 0
    for number, batch in enumerate(case.batches):
        if number > start and (number in case.restarts or events >= _CALL_EVENTS):
            yield start, number
            start, events = number, 0
        events += len(batch)
    if start < len(case.batches):
        yield start, len(case.batches)


@dataclass(slots=True)
class Shrinker:
    """Leaves out restarts, batches and events as long as the case still fails."""

    make_machine: MakeMachine
    trials: int = field(default=0, init=False)

    def shrink(self, failure: Failure) -> Failure:
        last = failure.batch + 1
        best = (
            self._try(failure.case, failure.case.batches[:last], failure.case.restarts) or failure
        )
        best = self._try(best.case, best.case.batches, frozenset()) or best
        while self.trials < _SHRINK_TRIALS:
            smaller = self._without_batches(best)
            smaller = self._without_events(smaller)
            if smaller is best:
                break
            best = smaller
        return best

    def _without_batches(self, best: Failure) -> Failure:
        size = max(len(best.case.batches) // 2, 1)
        while size >= 1 and self.trials < _SHRINK_TRIALS:
            start = 0
            while start < len(best.case.batches):
                rest = best.case.batches[:start] + best.case.batches[start + size :]
                found = self._try(best.case, rest, best.case.restarts)
                if found is None:
                    start += size
                else:
                    best = found
            size //= 2
        return best

    def _without_events(self, best: Failure) -> Failure:
        for number in range(len(best.case.batches) - 1, -1, -1):
            position = 0
            while number < len(best.case.batches) and position < len(best.case.batches[number]):
                batches = [list(batch) for batch in best.case.batches]
                del batches[number][position]
                found = self._try(best.case, [b for b in batches if b], best.case.restarts)
                if found is None:
                    position += 1
                else:
                    best = found
        return best

    def _try(self, case: Case, batches: list[Batch], restarts: frozenset[int]) -> Failure | None:
        self.trials += 1
        if not batches or self.trials > _SHRINK_TRIALS:
            return None
        found = check(Case(case.name, case.node, batches, restarts, case.model), self.make_machine)
        if found is None:
            return None
        cut = Case(case.name, case.node, batches[: found.batch + 1], restarts, case.model)
        return Failure(cut, found.batch, found.emitted, found.problems)


def cut_into_batches(events: Sequence[Event], rng: random.Random) -> list[Batch]:
    """Row by row, or several rows at once; a case has one habit."""
    largest = rng.choice([1, 1, 2, 5, 20])
    batches: list[Batch] = []
    at = 0
    while at < len(events):
        size = rng.randint(1, largest)
        batches.append(list(events[at : at + size]))
        at += size
    return batches


def random_restarts(batches: Sequence[Batch], rng: random.Random) -> frozenset[int]:
    every = rng.choice([0, 10, 50])
    chosen = (n for n in range(1, len(batches)) if every and rng.random() < 1 / every)
    return frozenset(chosen)


def struct(columns: Iterable[tuple[str, str]]) -> dict[str, Any]:
    """Spark's JSON schema of a row."""
    fields = [{"name": n, "type": t, "nullable": True, "metadata": {}} for n, t in columns]
    return {"type": "struct", "fields": fields}
