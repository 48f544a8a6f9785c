"""Regular joins: random changelogs on both sides, and a nested loop over what they leave behind."""

import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from tests.kernel.oracle.check import (
    Batch,
    Case,
    Emitted,
    Event,
    cut_into_batches,
    random_restarts,
    struct,
)
from tests.kernel.oracle.rows import (
    COLUMNS,
    ID,
    PADDING,
    PREDICATES,
    RESIDUALS,
    WHERES,
    WIDTH,
    J,
    K,
    P,
    Row,
    V,
)
from tests.kernel.oracle.sides import Side, SideModel, take_batch

JOIN_TYPES = ("inner", "left", "right", "full", "semi", "anti")


def operator(
    where: str | None = None,
    pair_by: list[str] | None = None,
    ttl_ms: Sequence[int] = (0, 0),
    shown: list[str] | None = None,
) -> dict[str, Any]:
    """What every stateful node says of its output and of time."""
    timing = {"inputs": [], "policy": "min", "forward": None, "tickMs": None, "ttlMs": list(ttl_ms)}
    return {
        "output": {"where": where, "pairBy": pair_by, "timeZone": "UTC", "shown": shown},
        "timing": timing,
    }


@dataclass(frozen=True, slots=True)
class Join:
    """A regular join as the model understands it.

    `shown`: the positions of a result row that a SELECT list has; None: all of them.
    """

    left: Side
    right: Side
    join_type: str
    key: tuple[int, ...]
    filter_nulls: tuple[bool, ...]
    residual: str | None
    where: str | None = None
    paired: bool = False
    ttl_ms: tuple[int, int] = (0, 0)
    shown: tuple[int, ...] | None = None

    def node(self) -> dict[str, Any]:
        sides = {"left": self.left.spec("l"), "right": self.right.spec("r")}
        return {
            "kind": "regular-join",
            "joinType": self.join_type,
            **sides,
            "key": struct(COLUMNS[i] for i in self.key),
            "filterNulls": list(self.filter_nulls),
            "residual": self.residual,
            "rows": [{"schema": s["schema"], "key": list(self.key)} for s in sides.values()],
            **operator(
                self.where,
                _names(self._pair_columns()) if self.paired else None,
                self.ttl_ms,
                None if self.shown is None else _names(self.shown),
            ),
        }

    @property
    def left_only(self) -> bool:
        return self.join_type in ("semi", "anti")

    def is_outer(self, side: str) -> bool:
        return self.join_type in (side, "full")

    def _pair_columns(self) -> list[int]:
        left = list(dict.fromkeys((*self.key, *self.left.unique_key)))
        right = dict.fromkeys((*self.key, *self.right.unique_key))
        return left if self.left_only else left + [WIDTH + i for i in right]

    def pair_key(self, joined: Row) -> Row:
        return tuple(joined[i] for i in self._pair_columns())

    def show(self, joined: Row) -> Row:
        return joined if self.shown is None else tuple(joined[i] for i in self.shown)

    def showing(self, rng: random.Random) -> "Join":
        """The same behind a SELECT list that has the join key, the sink's key and some more."""
        width = WIDTH if self.left_only else 2 * WIDTH
        needed = {*self.key, *(i + WIDTH for i in self.key if not self.left_only)}
        needed |= set(self._pair_columns()) if self.paired else set()
        return replace(
            self, shown=tuple(i for i in range(width) if i in needed or rng.random() < 0.3)
        )

    def matches(self, left: Row, right: Row) -> bool:
        for i, nulls_never_match in zip(self.key, self.filter_nulls, strict=True):
            if left[i] != right[i] or (left[i] is None and nulls_never_match):
                return False
        return self.residual is None or PREDICATES[self.residual](left, right)

    def shows(self, left: Row, right: Row) -> bool:
        return self.where is None or PREDICATES[self.where](left, right)


def _names(positions: Sequence[int]) -> list[str]:
    return [f"`{'lr'[i // WIDTH]}_{COLUMNS[i % WIDTH][0]}`" for i in positions]


class JoinModel:
    """Joins both inputs anew after every batch and compares with the folded output."""

    def __init__(self, join: Join) -> None:
        self._join = join
        self._sides = {
            "left": SideModel(join.left, join.key),
            "right": SideModel(join.right, join.key),
        }
        self._view: Counter[Row] = Counter()
        self._by_pair: dict[Row, Row] = {}

    def step(self, batch: Batch, emitted: Emitted) -> list[str]:
        problems = take_batch(batch, self._sides, emitted)
        emitted = [e for e in emitted if e[0] != "reject"]
        changes = [(change[0], tuple(change[1:])) for change in emitted]
        problems += self._wrong_kinds(changes)
        problems += self._fold_pairs(changes) if self._join.paired else self._fold(changes)
        expected = self._expected()
        shown = Counter(map(self._join.show, self._by_pair.values()))
        found = shown if self._join.paired else self._view
        problems += [f"missing: {row}" for row in (expected - found).elements()]
        problems += [f"too much: {row}" for row in (found - expected).elements()]
        return problems

    def state_rows(self) -> list[int] | None:
        return [sum(side.rows.values()) for side in self._sides.values()]

    def _expected(self) -> Counter[Row]:
        join = self._join
        lefts, rights = (side.rows for side in self._sides.values())
        pairs = {(a, b) for a in lefts for b in rights if join.matches(a, b)}
        matched = {a for a, _ in pairs}, {b for _, b in pairs}
        result: Counter[Row] = Counter()
        if join.left_only:
            for row, copies in lefts.items():
                if (row in matched[0]) == (join.join_type == "semi"):
                    self._add(result, row, PADDING, copies)
            return result
        for a, b in pairs:
            self._add(result, a, b, lefts[a] * rights[b])
        for row, copies in lefts.items():
            if row not in matched[0] and join.is_outer("left"):
                self._add(result, row, PADDING, copies)
        for row, copies in rights.items():
            if row not in matched[1] and join.is_outer("right"):
                self._add(result, PADDING, row, copies)
        return result

    def _add(self, result: Counter[Row], left: Row, right: Row, copies: int) -> None:
        if self._join.shows(left, right):
            result[self._join.show(left + right)] += copies

    def _fold(self, changes: list[tuple[str, Row]]) -> list[str]:
        problems = []
        show = self._join.show
        added = {show(row) for kind, row in changes if kind in ("+I", "+U")}
        for kind, joined in changes:
            row = show(joined)
            if kind in ("+I", "+U"):
                self._view[row] += 1
                continue
            self._view[row] -= 1
            if self._view[row] < 0:
                problems.append(f"retracts what is not there: {row}")
            if self._view[row] == 0:
                del self._view[row]
            is_padding = self._join.shown is None and PADDING in (row[:WIDTH], row[WIDTH:])
            if row in added and not is_padding:
                problems.append(f"retracts and adds in one batch: {row}")
        return problems

    def _fold_pairs(self, changes: list[tuple[str, Row]]) -> list[str]:
        problems = []
        seen: set[Row] = set()
        for kind, row in changes:
            pair = self._join.pair_key(row)
            if pair in seen:
                problems.append(f"written twice in one batch: {pair}")
            seen.add(pair)
            if kind in ("+I", "+U"):
                known = self._by_pair.get(pair)
                if known is not None and self._join.show(known) == self._join.show(row):
                    problems.append(f"writes what is there: {row}")
                self._by_pair[pair] = row
            elif self._by_pair.pop(pair, None) is None:
                problems.append(f"deletes what is not there: {pair}")
        return problems

    def _wrong_kinds(self, changes: list[tuple[str, Row]]) -> list[str]:
        never = {"+U"} if self._join.join_type in ("left", "right", "full") else set()
        never |= {"-U"} if self._join.paired else set()
        return [f"emits a {kind}: {row}" for kind, row in changes if kind in never]


class ChangelogWriter:
    """Random changes of one input: complete changelogs, or upserts without old rows."""

    def __init__(
        self,
        name: str | int,
        side: Side,
        rng: random.Random,
        spread: int,
        not_null: tuple[int, ...] = (),
        *,
        leaves_out: bool = False,
    ) -> None:
        self._not_null = not_null
        self._name = name
        self._side = side
        self._rng = rng
        self._spread = spread
        self._rows: list[Row] = []
        self._wanted = rng.choice([2, 5, 10]) if spread > 1 else rng.choice([2, 30])
        # several pages under one key, now and then
        self._long = rng.random() < (0.2 if spread > 1 else 0.6)
        self._leaves_out = rng.choice([0.0, 0.3]) if leaves_out and side.upsert else 0.0
        self._other = [i for i in range(WIDTH) if i not in side.unique_key]

    def write(self) -> list[Event]:
        rng = self._rng
        if rng.random() < self._leaves_out:
            return self._partial()
        if rng.random() < 0.03:
            return self._nonsense()
        grows = rng.random() < (0.8 if len(self._rows) < self._wanted else 0.3)
        if grows or not self._rows:
            return self._insert(self._random_row())
        position = rng.randrange(len(self._rows))
        if rng.random() < 0.5:
            return self._delete(position)
        return self._update(position)

    def _random_row(self) -> Row:
        rng = self._rng

        def pick(n: int) -> int | None:
            return None if rng.random() < 0.12 else rng.randrange(n)

        text = rng.choice([None, "", "x", "yy" * (300 if self._long else 1)])
        ident = pick(6 if self._spread > 1 else 60)
        row = (ident, pick(self._spread), rng.choice(["a", "b", None]), pick(4), text)
        null_keys = [i for i in self._not_null if row[i] is None]
        return self._random_row() if null_keys else row

    def _identity(self, row: Row) -> Row:
        return tuple(row[i] for i in self._side.unique_key)

    def _insert(self, row: Row) -> list[Event]:
        if self._side.layout != "no-unique-key":
            for position, old in enumerate(self._rows):
                if self._identity(old) == self._identity(row):
                    return self._replace(position, row)
        elif self._rows and self._rng.random() < 0.3:
            row = self._rng.choice(self._rows)
        self._rows.append(row)
        return [[self._name, "+U" if self._side.upsert else "+I", list(row)]]

    def _update(self, position: int) -> list[Event]:
        old = self._rows[position]
        fresh = self._random_row()
        change = self._rng.choice([(V,), (P,), (K,), (J,), (K, V), ()])
        row = tuple(fresh[i] if i in change else old[i] for i in range(WIDTH))
        if self._side.layout == "no-unique-key":
            return self._replace(position, row)
        if self._identity(row) == self._identity(old):
            return self._replace(position, row)
        return self._delete(position) + self._insert(row)

    def _replace(self, position: int, row: Row) -> list[Event]:
        old = self._rows[position]
        self._rows[position] = row
        if self._side.upsert:
            return [[self._name, "+U", list(row)]]
        return [[self._name, "-U", list(old)], [self._name, "+U", list(row)]]

    def _delete(self, position: int) -> list[Event]:
        row = self._rows.pop(position)
        if self._side.upsert and self._rng.random() < 0.7:
            row = tuple(v if i in self._side.unique_key else None for i, v in enumerate(row))
        kind = "-D" if self._side.upsert else self._rng.choice(["-D", "-D", "-U"])
        return [[self._name, kind, list(row)]]

    def _partial(self) -> list[Event]:
        """An upsert without some of its values; of an unknown row now and then."""
        row = self._random_row()
        missing = self._rng.sample(self._other, self._rng.randrange(1, len(self._other) + 1))
        for position, old in enumerate(self._rows):
            if self._identity(old) == self._identity(row):
                self._rows[position] = tuple(
                    old[i] if i in missing else v for i, v in enumerate(row)
                )
        sent = [None if i in missing else v for i, v in enumerate(row)]
        return [[self._name, "+U", sent, {"missing": sorted(missing)}]]

    def _nonsense(self) -> list[Event]:
        """A retraction that nobody knows; ignored by all layouts."""
        row = self._random_row()
        keyed = self._side.layout != "no-unique-key"
        known = any(
            self._identity(r) == self._identity(row) if keyed else r == row for r in self._rows
        )
        return [] if known else [[self._name, "-D", list(row)]]


def random_case(name: str, rng: random.Random, size: int) -> Case:
    key: tuple[int, ...] = rng.choice([(K,), (K,), (K,), (K, J), ()])
    left, right = random_side(key, rng), random_side(key, rng)
    keyed = "no-unique-key" not in (left.layout, right.layout)
    join_type = rng.choice(JOIN_TYPES)
    if join_type == "full":  # a row of each side may be padded at once
        keyed = keyed and bool(left.unique_key) and bool(right.unique_key)
    wheres = [where for where in WHERES if join_type not in ("semi", "anti") or "r_" not in where]
    join = Join(
        left,
        right,
        join_type,
        key=key,
        filter_nulls=tuple(rng.random() < 0.7 for _ in key),
        residual=rng.choice([None, None, *RESIDUALS]),
        where=rng.choice([None, None, None, *wheres]),
        paired=keyed and rng.random() < 0.5,
    )
    join = join.showing(rng) if rng.random() < 0.4 else join
    spread = rng.choice([1, 3, 6]) if key else 1
    # paddings of both sides that are all NULL would have one key in the sink
    not_null = join.paired and join_type == "full"
    writers = [
        ChangelogWriter(
            name, side, rng, spread, side.unique_key if not_null else (), leaves_out=True
        )
        for name, side in (("left", left), ("right", right))
    ]
    bias = rng.choice([0.1, 0.5, 0.9])
    events: list[Event] = []
    while len(events) < size:
        events += writers[rng.random() < bias].write()
    batches = cut_into_batches(events, rng)
    return Case(name, join.node(), batches, random_restarts(batches, rng), lambda: JoinModel(join))


def random_side(key: tuple[int, ...], rng: random.Random) -> Side:
    layout = rng.choice(["join-key-contains-unique-key", "has-unique-key", "no-unique-key"])
    match layout:
        case "join-key-contains-unique-key":
            unique_key = rng.choice([key, key[:1]])
        case "has-unique-key":
            unique_key = rng.choice([(ID,), (*key, ID)])
        case _:
            unique_key = ()
    fits = bool(unique_key) and set(key) <= set(unique_key)
    return Side(layout, unique_key, upsert=fits and rng.random() < 0.5)
