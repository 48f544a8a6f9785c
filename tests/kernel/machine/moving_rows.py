"""A table whose rows change their keys, as Debezium tells of it, and what is known of it.

The model database knows the truth. Values that begin with `L` are large: an event that leaves one
as it was does not carry it. A change of the key is `d`, tombstone, `c` with one lsn, the halves in
the partitions of their keys.
"""

import base64
import json
import random
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from spark_jobs.scenario.records import to_base64

Row: TypeAlias = tuple[str | None, int]
Event: TypeAlias = dict[str, Any]
LEFT_OUT = "__debezium_unavailable_value"
SNAPSHOT_MS = 1_700_000_000_000


@dataclass
class Database:
    """`rows` is the truth, `history` all that it has been; `known` are the keys whose note a reader
    of all events can know.

    `hidden` are events that no reader can complete, by lsn; of those, `superseded` are ones whose
    row another event made whole, deleted or moved before anybody had to give up on them.
    """

    rng: random.Random
    partitions: int
    keys: int
    leaves_out: float
    rows: dict[int, Row] = field(default_factory=dict)
    history: set[tuple[int, Row]] = field(default_factory=set)
    known: set[int] = field(default_factory=set)
    events: list[Event] = field(default_factory=list)
    hidden: dict[int, int] = field(default_factory=dict)
    superseded: set[int] = field(default_factory=set)
    moved: dict[str, int] = field(default_factory=lambda: defaultdict(int))
    _lsn: int = 1_000
    _ms: int = SNAPSHOT_MS

    def unread(self, key: int) -> None:
        """A row from before the topic begins."""
        self.rows[key] = (self._large(), 0)

    def write(self) -> None:
        """One random statement."""
        rng = self.rng
        key = rng.randrange(self.keys)
        if key not in self.rows:
            self.rows[key] = (self._note(), rng.randrange(3))
            self.say("c", key, logged=True)
            return
        note, n = self.rows[key]
        match rng.choices(
            ["number", "note", "delete", "move", "swap"], weights=[4, 1, 1, 6, 2], k=1
        )[0]:
            case "number":
                self.rows[key] = (note, n + 1)
                self.say("u", key, logged=not self._is_large(note))
            case "note":
                self.rows[key] = (self._note(), n)
                self.say("u", key, logged=True)
            case "delete":
                del self.rows[key]
                self.say("d", key, logged=True)
            case "move":
                free = [k for k in range(self.keys) if k not in self.rows]
                if free:
                    self._move(key, rng.choice(free))
            case "swap":
                other = rng.choice(list(self.rows))
                free = [k for k in range(self.keys) if k not in self.rows]
                if free and other != key:
                    self._move(key, free[0])
                    self._move(other, key)
                    self._move(free[0], other)

    def set(self, key: int, row: Row, *, logged: bool) -> None:
        """An update."""
        self.rows[key] = row
        self.say("u", key, logged)

    def truncate(self) -> None:
        """All rows go at once, in one event without a key."""
        self.rows.clear()
        self._lsn += 8
        source = {"lsn": self._lsn, "ts_ms": self._ms}
        self._record(None, {"before": None, "after": None, "source": source, "op": "t"}, {})

    def said(self, statement: Callable[[], None]) -> list[Event]:
        """The events of a statement."""
        before = len(self.events)
        statement()
        return with_offsets(self.events)[before:]

    def _move(self, old: int, new: int) -> None:
        rng = self.rng
        note = self._note() if rng.random() < 0.2 else None
        self.move(old, new, note, adds=rng.random() < 0.3)

    def move(self, old: int, new: int, note: str | None, *, adds: bool = False) -> None:
        """An update of the key, and of the note unless that is None."""
        kept, n = self.rows.pop(old)
        logged = note is not None or not self._is_large(kept)
        self.rows[new] = (kept if note is None else note, n + adds)
        was_known = old in self.known
        self.say("d", old, logged=True, headers={"__debezium.newkey": new})
        self.say("c", new, logged, {"__debezium.oldkey": old}, was_known, same_change=True)
        self.moved["with its value" if logged else "known" if was_known else "unknown"] += 1

    def say(
        self,
        op: str,
        key: int,
        logged: bool,
        headers: dict[str, int] | None = None,
        was_known: bool = False,
        same_change: bool = False,
    ) -> None:
        """The event of what has been done to a row."""
        if not same_change:
            self._lsn += self.rng.choice([8, 56])
            self._ms += self.rng.choice([0, 0, 3])
        self._note_knowledge(op, key, logged, was_known)
        row = {"id": key}
        if op == "d":
            before, after = row | {"note": None, "n": 0}, None
        else:
            note, n = self.rows[key]
            self.history.add((key, (note, n)))
            before, after = None, row | {"note": note if logged else LEFT_OUT, "n": n}
        source = {"lsn": self._lsn, "ts_ms": self._ms}
        value = {"before": before, "after": after, "source": source, "op": op}
        self._record(key, value, headers or {})
        if op == "d":
            self._record(key, None, headers or {})

    def _note_knowledge(self, op: str, key: int, logged: bool, was_known: bool) -> None:
        if op == "d" or logged or was_known or (op == "u" and key in self.known):
            self.superseded |= {lsn for lsn, k in self.hidden.items() if k == key}
            if op == "d":
                self.known.discard(key)
            else:
                self.known.add(key)
        else:
            self.known.discard(key)
            self.hidden[self._lsn] = key

    def _record(self, key: int | None, value: object, headers: dict[str, int]) -> None:
        names = [{"key": h, "value": _bytes({"id": k})} for h, k in headers.items()]
        self.events.append(
            {
                "partition": (key or 0) % self.partitions,
                "timestamp": self._ms,
                "key": None if key is None else _bytes({"id": key}),
                "value": None if value is None else _bytes(value),
                "headers": names,
            }
        )

    def _note(self) -> str | None:
        rng = self.rng
        return self._large() if rng.random() < self.leaves_out else rng.choice([None, "s", "x"])

    def _large(self) -> str:
        return f"L{self.rng.randrange(1000)}"

    @staticmethod
    def _is_large(note: str | None) -> bool:
        return note is not None and note.startswith("L")

    def visible(self) -> dict[int, Row]:
        """The rows that a reader of all events can know, and therefore must show."""
        return {key: row for key, row in self.rows.items() if key in self.known}


def with_offsets(events: list[Event]) -> list[Event]:
    """The records of a topic in the order in which the connector wrote them."""
    ends: dict[int, int] = defaultdict(int)
    found = []
    for event in events:
        found.append(event | {"offset": ends[event["partition"]]})
        ends[event["partition"]] += 1
    return found


def batches(events: list[Event], rng: random.Random) -> list[list[Event]]:
    """Each partition in its order and at a pace of its own."""
    left: dict[int, list[Event]] = defaultdict(list)
    for event in with_offsets(events):
        left[event["partition"]].append(event)
    size = rng.choice([2, 5, 15, 60])
    found = []
    while any(left.values()):
        taken: list[Event] = []
        for queue in left.values():
            count = rng.randrange(size + 1)
            taken += queue[:count]
            del queue[:count]
        found.append(taken)
    return found


def repeating(events: list[Event], rng: random.Random) -> list[Event]:
    """The events as a connector writes them that crashes several times."""
    found: list[Event] = []
    for number, event in enumerate(events):
        found.append(event)
        if rng.random() < 0.04:
            found += events[max(number - rng.randrange(12), 0) : number + 1]
    return found


def without_lsn(event: Event) -> Event:
    """The event as a connector may write it whose source block says the time alone."""
    if event["value"] is None:
        return event
    value = _event(event)
    del value["source"]["lsn"]
    return event | {"value": _bytes(value)}


def with_note(event: Event, note: str) -> Event:
    """The event as somebody repairs it."""
    value = _event(event)
    value["after"]["note"] = note
    return event | {"value": _bytes(value)}


def _event(event: Event) -> Any:
    return json.loads(base64.b64decode(event["value"]))


def _bytes(value: object) -> str | None:
    return to_base64(json.dumps(value).encode())
