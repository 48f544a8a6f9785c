"""Probe rows that come, change and go, for the temporal joins; what a join remembers of them."""

import random
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from tests.kernel.oracle.check import Event

Row: TypeAlias = tuple[Any, ...]
Identity: TypeAlias = Literal["key", "row"]
IDENTITIES: tuple[Identity, ...] = ("key", "row")


class ProbeWriter:
    """A sound changelog of probe rows, but for a retraction now and then of a row that never was.

    `fresh` makes the values of a new row, `changed` those of an update; place `ident` is the row's
    own name. Identified by all their columns, rows may be equal.
    """

    def __init__(
        self,
        rng: random.Random,
        ident: int,
        identity: Identity,
        fresh: Callable[[], list[Any]],
        changed: Callable[[list[Any]], list[Any]],
    ) -> None:
        self._rng = rng
        self._ident = ident
        self._is_keyed = identity == "key"
        self._fresh = fresh
        self._changed = changed
        self._rows: list[list[Any]] = []

    def write(self) -> list[Event]:
        rng = self._rng
        pick = rng.random()
        if pick < 0.03:
            stranger = self._fresh()
            stranger[self._ident] += "stranger"
            return [["left", rng.choice(["-U", "-D"]), stranger]]
        if not self._rows or pick < 0.4:
            return self._insert()
        old = self._rows.pop(rng.randrange(len(self._rows)))
        if pick < 0.6:
            return [["left", "-D", old]]
        new = self._changed(old)
        self._rows.append(new)
        return [["left", "-U", old], ["left", "+U", new]]

    def _insert(self) -> list[Event]:
        row = self._fresh()
        if self._is_keyed and any(r[self._ident] == row[self._ident] for r in self._rows):
            return []
        self._rows.append(row)
        return [["left", "+I", row]]


@dataclass(slots=True)
class Known:
    """What equal rows were joined with: each different partner with its number of copies."""

    written: int
    partners: list[list[Any]] = field(default_factory=list)


@dataclass(slots=True)
class Memory:
    """What each probe row was joined with, until a TTL after the last change of its identity."""

    ttl_ms: int
    known: dict[Row, Known] = field(default_factory=dict)

    def expire(self, clock: int) -> None:
        if self.ttl_ms:
            now = max(clock, 0)
            old = [i for i, k in self.known.items() if k.written + self.ttl_ms <= now]
            for identity in old:
                del self.known[identity]

    def add(self, identity: Row, partner: Any, clock: int) -> None:
        known = self.known.setdefault(identity, Known(0))
        known.written = max(clock, 0)
        same = next((p for p in known.partners if p[1] == partner), None)
        if same is None:
            known.partners.append([1, partner])
        else:
            same[0] += 1

    def partners(self, identity: Row) -> list[Any]:
        """The different partners of equal rows, the newest first."""
        known = self.known.get(identity)
        return [] if known is None else [partner for _, partner in reversed(known.partners)]

    def take(self, identity: Row, partner: Any, clock: int) -> None:
        known = self.known[identity]
        known.written = max(clock, 0)
        entry = next(p for p in known.partners if p[1] == partner)
        entry[0] -= 1
        if not entry[0]:
            known.partners.remove(entry)
        if not known.partners:
            del self.known[identity]
