"""Bounds that a join condition puts on one side's time by the other's: interval joins.

Flink runs every join with such bounds on both sides as an interval join.

Every comparison is read as `left time - right time <op> constant`, so the spelling does not matter:
operand order, BETWEEN, intervals added on either side, negated or multiplied, casts that lose
nothing.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal as OneOf

from spark_jobs.plan.facts.keys import JoinCondition, condition_of
from spark_jobs.sql.logical import Join, TimeAttribute
from spark_jobs.sql.types.data_types import INTEGERS, TIMESTAMPS, DataType
from spark_jobs.sql.types.expr import FLIPPED, Call, Column, Expr, Literal, conjuncts

OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<"}

Times = Sequence[TimeAttribute]

_MS = -1  # a sum is a map from positions of times to factors; its milliseconds stand here


@dataclass(frozen=True, slots=True)
class Interval:
    """Left time within [right time + lower_ms, right time + upper_ms], both inclusive.

    `left` and `right` are the positions of the times in the fields of their own side. `condition`
    is the rest of the join condition. `lower_ms > upper_ms` is a join without matches.
    """

    time: OneOf["rowtime", "proctime"]
    left: int
    right: int
    lower_ms: int
    upper_ms: int
    condition: JoinCondition


@dataclass(frozen=True, slots=True)
class Bound:
    """`left time - right time <op> ms` for the time attributes at two positions."""

    left: int
    right: int
    op: str
    ms: int


def interval(join: Join, left: Times, right: Times) -> Interval | None:
    """The interval of a join whose inputs have these time attributes; None for a regular join."""
    if not _may_bound(join):
        return None
    parts = _parts(join)
    bounds = [(part, _bound(part, left, right)) for part in parts]
    pairs = dict.fromkeys((b.left, b.right) for _, b in bounds if b is not None)
    for pair in pairs:
        kind = left[pair[0]]
        if kind is None or kind != right[pair[1]]:
            continue
        used = [b for _, b in bounds if b is not None and (b.left, b.right) == pair]
        lower = max((b.ms + (b.op == ">") for b in used if b.op in (">", ">=", "=")), default=None)
        upper = min((b.ms - (b.op == "<") for b in used if b.op in ("<", "<=", "=")), default=None)
        if lower is not None and upper is not None:
            rest = [part for part, b in bounds if b is None or (b.left, b.right) != pair]
            condition = condition_of(rest, len(left))
            return Interval(kind, pair[0], pair[1], lower, upper, condition)
    return None


def fires_early(join: Join, bounds: Interval | None) -> bool:
    """Whether rows are padded that may still find a partner, and their paddings taken back.

    Elsewhere the hint has no effect, as in Flink: nothing is padded, or no row can have a partner.
    """
    pads = join.early_fire is not None and join.kind in ("left", "right", "full")
    return pads and bounds is not None and bounds.lower_ms <= bounds.upper_ms


def mixed_times(join: Join, left: Times, right: Times) -> bool:
    """Whether the condition bounds an event time by a processing time."""
    if not _may_bound(join):
        return False
    found = (_bound(part, left, right) for part in _parts(join))
    return any(b is not None and left[b.left] != right[b.right] for b in found)


def _may_bound(join: Join) -> bool:
    """Flink has no interval form of semi and anti joins, nor of temporal ones."""
    plain = join.as_of is None and join.snapshot is None
    return plain and join.kind not in ("semi", "anti")


def _parts(join: Join) -> list[Expr]:
    return [part for c in conjuncts(join.condition) for part in _comparisons(c)]


def _comparisons(predicate: Expr) -> Iterator[Expr]:
    match predicate:
        case Call(op="BETWEEN", args=(value, low, high), type=type_):
            yield Call(">=", (value, low), type_)
            yield Call("<=", (value, high), type_)
        case Call(op="NOT", args=(Call(op=op, args=args, type=type_),)) if op in OPPOSITE:
            yield Call(OPPOSITE[op], args, type_)
        case _:
            yield predicate


def _bound(predicate: Expr, left: Times, right: Times) -> Bound | None:
    match predicate:
        case Call(op=op, args=(a, b)) if op in FLIPPED:
            difference = _sum(a, b, -1)
        case _:
            return None
    if difference is None:
        return None
    offset = difference.pop(_MS, 0)
    times = {sign: index for index, sign in difference.items()}
    if len(difference) != 2 or times.keys() != {1, -1}:
        return None
    first, second, width = times[1], times[-1], len(left)
    if first >= width > second:
        first, second, op, offset = second, first, FLIPPED[op], -offset
    if not first < width <= second or left[first] is None or right[second - width] is None:
        return None
    return Bound(first, second - width, op, -offset)


def _linear(expr: Expr) -> dict[int, int] | None:
    """A sum of times and intervals: how often each time is added, and `_MS` milliseconds."""
    match expr:
        case Column(index=index, type=DataType(name=name)) if name in TIMESTAMPS:
            return {index: 1}
        case Literal(value=value, type=DataType(name="INTERVAL_DAY")) if value is not None:
            return {_MS: int(value)}
        case Call(op="+" | "-" as op, args=(a, b)):
            return _sum(a, b, 1 if op == "+" else -1)
        case Call(op="-", args=(a,)):
            inner = _linear(a)
            return None if inner is None else {place: -n for place, n in inner.items()}
        case Call(op="*", args=(a, b)):
            return _multiple(a, b) or _multiple(b, a)
        case Call(op="CAST", args=(a,), type=type_) if _keeps_time(a.type, type_):
            return _linear(a)
        case _:
            return None


def _sum(a: Expr, b: Expr, sign: int) -> dict[int, int] | None:
    """`a + b`, or `a - b` where the sign is -1."""
    left, right = _linear(a), _linear(b)
    if left is None or right is None:
        return None
    total = Counter(left)
    total.update({place: sign * n for place, n in right.items()})
    return {place: n for place, n in total.items() if n}


def _multiple(length: Expr, factor: Expr) -> dict[int, int] | None:
    match factor:
        case Literal(value=int() as times, type=DataType(name=name)) if name in INTEGERS:
            inner = _linear(length)
            if inner is not None and inner.keys() <= {_MS}:
                return {_MS: inner.get(_MS, 0) * times}
    return None


def _keeps_time(source: DataType, target: DataType) -> bool:
    """Whether a cast keeps every millisecond; event times have three digits at most."""
    if source.name == target.name == "INTERVAL_DAY":
        return True
    same = source.name == target.name and source.name in TIMESTAMPS
    return same and (target.precision or 0) >= min(source.precision or 0, 3)
