"""Joins of many sides: the chain of joins as nested loops over what the changelogs leave behind."""

import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

from tests.kernel.oracle.check import (
    Batch,
    Case,
    Emitted,
    Event,
    cut_into_batches,
    random_restarts,
    struct,
)
from tests.kernel.oracle.regular import ChangelogWriter, operator, random_side
from tests.kernel.oracle.rows import COLUMNS, ID, PADDING, J, K, Row, V
from tests.kernel.oracle.sides import Side, SideModel, take_batch

_WIDTH = len(COLUMNS)
# over all columns so far, of which each side has five
Test: TypeAlias = Callable[[Row], bool]


@dataclass(frozen=True, slots=True)
class Step:
    """How one more side is joined."""

    is_left: bool
    residual: str | None
    passes: Test


@dataclass(frozen=True, slots=True)
class Chain:
    """A multi-way join as the model understands it."""

    sides: tuple[Side, ...]
    steps: tuple[Step, ...]
    key: tuple[int, ...]
    filter_nulls: tuple[bool, ...]
    where: str | None

    def node(self) -> dict[str, Any]:
        specs = [side.spec(f"s{i}") for i, side in enumerate(self.sides)]
        columns = [(f["name"], f["type"]) for spec in specs for f in spec["schema"]["fields"]]
        return {
            "kind": "multi-join",
            "joinTypes": ["left" if step.is_left else "inner" for step in self.steps],
            "sides": specs,
            "schema": struct(columns),
            "key": struct(COLUMNS[i] for i in self.key),
            "filterNulls": list(self.filter_nulls),
            "residuals": [step.residual for step in self.steps],
            "rows": [{"schema": spec["schema"], "key": list(self.key)} for spec in specs],
            **operator(self.where, None, [0] * len(specs)),
        }

    def same_key(self, first: Row, row: Row) -> bool:
        return all(
            first[i] == row[i] and not (row[i] is None and nulls_never_match)
            for i, nulls_never_match in zip(self.key, self.filter_nulls, strict=True)
        )


class ChainModel:
    """Joins all inputs anew after every batch and compares with the folded output."""

    def __init__(self, chain: Chain) -> None:
        self._chain = chain
        self._sides = [SideModel(side, chain.key) for side in chain.sides]
        self._view: Counter[Row] = Counter()

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        problems = take_batch(batch, dict(enumerate(self._sides)), emitted)
        emitted = [e for e in emitted if e[0] != "reject"]
        added: set[Row] = set()
        for kind, *values in reversed(emitted):
            row = tuple(values)
            if kind in ("+I", "+U"):
                added.add(row)
            elif row in added:
                problems.append(f"retracts and adds in one batch: {row}")
        for kind, *values in emitted:
            self._view[tuple(values)] += 1 if kind in ("+I", "+U") else -1
            if self._view[tuple(values)] < 0:
                problems.append(f"retracts what is not there: {values}")
        self._view += Counter()
        expected = self._expected()
        problems += [f"missing: {row}" for row in (expected - self._view).elements()]
        return problems + [f"too much: {row}" for row in (self._view - expected).elements()]

    def state_rows(self) -> list[int]:
        counts = [sum(side.rows.values()) for side in self._sides]
        return [counts[0], sum(counts[1:])]

    def _expected(self) -> Counter[Row]:
        result = Counter(self._sides[0].rows)
        for step, side in zip(self._chain.steps, self._sides[1:], strict=True):
            joined: Counter[Row] = Counter()
            for prefix, times in result.items():
                matches = [
                    row
                    for row in side.rows
                    if self._chain.same_key(prefix[:_WIDTH], row) and step.passes(prefix + row)
                ]
                for row in matches:
                    joined[prefix + row] += times * side.rows[row]
                if not matches and step.is_left:
                    joined[prefix + PADDING] += times
            result = joined
        if self._chain.where is not None:
            last = len(self._sides) - 1
            result = Counter({r: n for r, n in result.items() if r[last * _WIDTH + ID] is None})
        return result


def random_step(number: int, rng: random.Random) -> Step:
    """Joins side `number`; its residual looks at one of the sides before it, or at two."""
    before = rng.randrange(number)
    this, that = number * _WIDTH + V, before * _WIDTH + V
    first = ID
    residuals: list[tuple[str | None, Test]] = [
        (None, lambda _: True),
        (
            f"`s{before}_v` < `s{number}_v`",
            lambda r: r[that] is not None and r[this] is not None and r[that] < r[this],
        ),
        (
            f"`s{before}_v` IS NULL OR `s{before}_v` <> `s{number}_v`",
            lambda r: r[that] is None or (r[this] is not None and r[this] != r[that]),
        ),
        (
            f"`s0_id` = `s{number}_id` OR `s{before}_v` = `s{number}_v`",
            lambda r: (
                (r[first] is not None and r[first] == r[this - V + ID])
                or (r[that] is not None and r[that] == r[this])
            ),
        ),
    ]
    residual, passes = rng.choice([residuals[0], *residuals])
    return Step(rng.random() < 0.6, residual, passes)


def random_case(name: str, rng: random.Random, size: int) -> Case:
    key: tuple[int, ...] = rng.choice([(K,), (K,), (K, J)])
    sides = tuple(random_side(key, rng) for _ in range(rng.choice([2, 3, 3, 3, 4])))
    chain = Chain(
        sides,
        tuple(random_step(number, rng) for number in range(1, len(sides))),
        key,
        filter_nulls=tuple(rng.random() < 0.7 for _ in key),
        where=rng.choice([None, None, None, f"`s{len(sides) - 1}_id` IS NULL"]),
    )
    writers = [
        ChangelogWriter(i, side, rng, rng.choice([1, 3]), leaves_out=True)
        for i, side in enumerate(sides)
    ]
    events: list[Event] = []
    while len(events) < size:
        events += rng.choice(writers).write()
    batches = cut_into_batches(events, rng)
    return Case(
        name, chain.node(), batches, random_restarts(batches, rng), lambda: ChainModel(chain)
    )
