"""Joins by USING and NATURAL: both sides are given columns of the same names first."""

import random
from collections.abc import Sequence
from typing import Protocol

from tests.differential.expressions import Column, Scope
from tests.differential.tables import ROWTIME


class Joined(Protocol):
    """One side: its text in FROM, and its columns."""

    @property
    def text(self) -> str: ...

    @property
    def scope(self) -> Scope: ...


def by_common_columns(
    rng: random.Random, left: Joined, right: Joined, join: str
) -> tuple[str, Scope] | None:
    """The join of two subqueries and its columns; None if the sides share no type.

    Common columns are read without a table, and behind those of both sides.
    """
    pairs = [(a, b) for a in left.scope for b in right.scope if a.type == b.type != ROWTIME]
    if not pairs:
        return None
    chosen = rng.sample(pairs, rng.randint(1, min(2, len(pairs))))
    number = rng.randrange(1_000_000)
    names = [f"u{number}_{i}" for i in range(len(chosen))]
    sides = []
    found: list[Column] = [Column(name, a.type) for name, (a, _) in zip(names, chosen, strict=True)]
    for side, letter, place in ((left, "l", 0), (right, "r", 1)):
        alias = f"{letter}{number}"
        rest = [c for c in side.scope if c.type != ROWTIME][:3]
        own = [f"{alias}_{i}" for i in range(len(rest))]
        listed = [*(f"{pair[place].text} AS {n}" for n, pair in zip(names, chosen, strict=True))]
        listed += [f"{c.text} AS {n}" for n, c in zip(own, rest, strict=True)]
        sides.append(f"(SELECT {', '.join(listed)} FROM {side.text}) AS {alias}")  # noqa: S608
        found += [Column(f"{alias}.{n}", c.type) for n, c in zip(own, rest, strict=True)]
        found += [Column(f"{alias}.{n}", p[place].type) for n, p in zip(names, chosen, strict=True)]
    return _text(rng, sides, join, names), tuple(found)


def _text(rng: random.Random, sides: Sequence[str], join: str, names: Sequence[str]) -> str:
    if rng.random() < 0.4:
        return f"{sides[0]} NATURAL {join} {sides[1]}"
    return f"{sides[0]} {join} {sides[1]} USING ({', '.join(names)})"
