"""Runs the kinds of faults one after the other, and compares what each has left behind."""

import json
import random
import shutil
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path

from tests.faults.data import Data
from tests.faults.kinds import Kind, Skipped
from tests.faults.run import Run
from tests.faults.stage import QUERIES, Stage, difference, folded

_OUTCOMES = "outcomes.jsonl"
Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class Outcome:
    """Of one kind. `restarts`: drivers started, and queries that a driver started again."""

    kind: str
    rounds: int
    moments: Sequence[str]
    drivers: int
    restarts: int
    lost: int
    doubled: int
    result: str
    seconds: float = 0.0

    @property
    def is_good(self) -> bool:
        return self.result == "ok" or self.result.startswith("skipped")


@dataclass(slots=True)
class Matrix:
    """`rounds` strikes of each kind; `patience_s` bounds each wait."""

    stage: Stage
    rounds: int
    patience_s: float
    say: Say
    outcomes: list[Outcome] = field(default_factory=list)

    def undisturbed(self) -> None:
        """The run that the others are compared with; itself compared with the join in Python."""
        run = self._run("undisturbed", random.Random(0))  # noqa: S311
        try:
            run.start()
            run.finish()
        finally:
            run.end_all()
        self.stage.expected = self.stage.read(run.name)
        if folded(self.stage.expected["upserted"]) != self.stage.data.joined():
            raise AssertionError("the undisturbed run itself is wrong")
        self._tidy(run)

    def strike(self, kind: Kind) -> Outcome:
        draw = random.Random(f"{self.stage.data.seed}-{kind.name}")  # noqa: S311
        run = self._run(kind.name.replace("-", "_"), draw)
        started = time.monotonic()
        lost = doubled = 0
        try:
            result, lost, doubled = self._judged(run, kind)
        except Skipped as reason:
            result = f"skipped: {reason}"
        except Exception as failure:
            result = f"FAILED: {failure}"
        finally:
            self._restore(run, kind)
        outcome = Outcome(
            kind.name,
            len(run.moments),
            tuple(run.moments),
            len(run.drivers),
            run.restarts,
            lost,
            doubled,
            result,
            round(time.monotonic() - started),
        )
        self.outcomes.append(outcome)
        if outcome.is_good:
            self._tidy(run)
        return outcome

    def _judged(self, run: Run, kind: Kind) -> tuple[str, int, int]:
        """The result, records lost, records doubled."""
        if kind.own_input:
            run.inputs = f"{run.name}_in"
            self.stage.create(f"{run.inputs}_left", f"{run.inputs}_right")
            self.stage.load(run.inputs)
        kind.prepare(run)
        run.start()
        for epoch in self._epochs(run, kind):
            if not run.reach(epoch):
                break  # the strikes before took so long that the run is over
            self.say(f"  {kind.name}: strikes at epoch {run.note()}")
            kind.strike(run)
        if not kind.compares:
            return "ok", 0, 0
        run.finish()
        found = self.stage.read(run.name)
        wanted = self.stage.expected
        differences = [difference(found[query], wanted[query]) for query in QUERIES]
        lost, doubled = sum(d.lost for d in differences), sum(d.doubled for d in differences)
        if all(d.is_none for d in differences):
            return "ok", 0, 0
        return f"FAILED: {differences}", lost, doubled

    def _epochs(self, run: Run, kind: Kind) -> list[int]:
        """One at random from each of as many stretches of the run as there are rounds.

        Input is spoilt once, in the first half: there has to be some that is not read yet.
        """
        if kind.own_input:
            return [run.draw.randrange(1, max(self.stage.epochs // 2, 2))]
        size = max((self.stage.epochs - 3) // self.rounds, 1)
        return [1 + n * size + run.draw.randrange(size) for n in range(self.rounds)]

    def _run(self, name: str, draw: random.Random) -> Run:
        return Run(self.stage, name, self.patience_s, draw)

    def _restore(self, run: Run, kind: Kind) -> None:
        """Whatever has happened, the next kind finds a broker and no driver."""
        run.end_all()
        kind.clean(run)
        self.stage.proxy.restore()
        self.stage.broker.start()

    def _tidy(self, run: Run) -> None:
        """Disk is not endless; a failed run keeps its folder."""
        shutil.rmtree(run.folder, ignore_errors=True)
        topics = [f"{run.name}_{query}" for query in QUERIES]
        if run.inputs != "in":
            topics += [f"{run.inputs}_left", f"{run.inputs}_right"]
        self.stage.delete(*topics)


def keep_outcome(folder: Path, data: Data, rounds: int, outcome: Outcome) -> None:
    """For a later run that goes on."""
    with (folder / _OUTCOMES).open("a", encoding="utf-8") as out:
        out.write(json.dumps([asdict(data), rounds, asdict(outcome)]) + "\n")


def good_outcomes(folder: Path, data: Data, rounds: int) -> list[Outcome]:
    """Of earlier runs of the same size, the last of each kind."""
    path = folder / _OUTCOMES
    lines = path.read_text(encoding="utf-8").splitlines() if path.exists() else []
    found: dict[str, Outcome] = {}
    for of_data, of_rounds, fields in map(json.loads, lines):
        if (of_data, of_rounds) == (asdict(data), rounds):
            found[fields["kind"]] = Outcome(**fields)
    return [outcome for outcome in found.values() if outcome.is_good]


def table(outcomes: Sequence[Outcome]) -> str:
    """Markdown, which also reads as text."""
    lines = [
        "| kind | rounds | moments (epoch of each query, + inside) | drivers | restarts by itself |"
        " lost | doubled | result |",
        "|---|---|---|---|---|---|---|---|",
    ]
    for o in outcomes:
        result = o.result.split("\n", 1)[0]
        moments = ", ".join(o.moments)
        lines.append(
            f"| {o.kind} | {o.rounds} | {moments} | {o.drivers} | {o.restarts} | {o.lost} |"
            f" {o.doubled} | {result} |"
        )
    return "\n".join(lines)
