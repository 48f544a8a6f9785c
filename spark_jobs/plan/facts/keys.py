"""Key facts: which conditions of a join are equalities, and which columns make rows unique.

The rules are those of Flink's planner (FlinkRelMdUniqueKeys, JoinInfo), so that the state layouts
explain prints are the ones Flink would print.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import assert_never

from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    NoRows,
    Project,
    Rank,
    RowNumber,
    Scan,
    Sink,
    Union,
    Unnest,
)
from spark_jobs.sql.types.data_types import INTEGERS, DataType
from spark_jobs.sql.types.expr import Call, Column, Expr, columns, conjuncts, transform

Key = frozenset[int]

MAX_KEYS = 64
"""Keys kept per node: projections that repeat columns multiply them, a few suffice."""


@dataclass(frozen=True, slots=True)
class EquiKey:
    """One equality of a join: `left` over the left fields, `right` over the right fields."""

    left: Expr
    right: Expr
    null_safe: bool


@dataclass(frozen=True, slots=True)
class JoinCondition:
    """A condition taken apart; `residual` is what state keys cannot decide."""

    keys: tuple[EquiKey, ...]
    residual: tuple[Expr, ...]

    def columns_of(self, side: int) -> Key:
        """The key columns of one side (0 left, 1 right) that are columns as they stand."""
        exprs = (k.left if side == 0 else k.right for k in self.keys)
        return frozenset(e.index for e in exprs if isinstance(e, Column))

    def columns_read(self, side: int) -> Key:
        """All columns of one side that its key expressions read."""
        return columns(k.left if side == 0 else k.right for k in self.keys)


def split_condition(join: Join, right_keys: frozenset[Key]) -> JoinCondition:
    """Equalities between one expression of each side, and the rest.

    In a temporal join a column compared with a constant counts as well where it may be part of
    the lookup: the key is then known, only not from the left row.
    """
    found = condition_of(conjuncts(join.condition), len(join.left.fields))
    if join.as_of is not None or join.snapshot is not None:
        return _with_constants(join, found, right_keys)
    return found


def condition_of(predicates: Iterable[Expr], left_width: int) -> JoinCondition:
    """The predicates of a join, taken apart."""
    keys: list[EquiKey] = []
    residual: list[Expr] = []
    for predicate in predicates:
        key = _equi_key(predicate, left_width)
        if key is None:
            residual.append(predicate)
        else:
            keys.append(key)
    return JoinCondition(tuple(keys), tuple(residual))


def _equi_key(predicate: Expr, left_width: int) -> EquiKey | None:
    match predicate:
        case Call(op="=" | "IS NOT DISTINCT FROM" as op, args=(a, b)) if same_bytes(a.type, b.type):
            for left, right in ((a, b), (b, a)):
                if side_of(left, left_width) == 0 and side_of(right, left_width) == 1:
                    return EquiKey(left, shift(right, -left_width), op != "=")
    return None


def _with_constants(join: Join, found: JoinCondition, right_keys: frozenset[Key]) -> JoinCondition:
    """Versions are found by the whole key, so by event time only the primary key may count."""
    width = len(join.left.fields)
    wanted = frozenset(range(len(join.right.fields)))
    if not by_processing_time(join):
        wanted = frozenset().union(*right_keys)
    wanted -= found.columns_of(1)
    constants: list[EquiKey] = []
    rest: list[Expr] = []
    for predicate in found.residual:
        match predicate:
            case Call(op="=", args=(a, b)) if same_bytes(a.type, b.type):
                pair = next(((c, v) for c, v in ((a, b), (b, a)) if not columns((v,))), None)
                if pair and isinstance(pair[0], Column) and pair[0].index - width in wanted:
                    constants.append(EquiKey(pair[1], shift(pair[0], -width), False))
                    continue
        rest.append(predicate)
    return JoinCondition((*found.keys, *constants), tuple(rest))


def by_processing_time(join: Join) -> bool:
    """Whether left rows meet the right rows as they are now, not as they were."""
    if isinstance(join.as_of, Column) and join.as_of.index < len(join.left.fields):
        return join.left.fields[join.as_of.index].time == "proctime"
    return join.snapshot is not None


def same_bytes(a: DataType, b: DataType) -> bool:
    """Whether equal values of both types have equal bytes: state keys are compared as bytes."""
    return _key_type(a) == _key_type(b)


def _key_type(data_type: DataType) -> DataType:
    precision = data_type.precision if data_type.name == "DECIMAL" else None
    return replace(
        data_type,
        nullable=True,
        precision=precision,
        fields=tuple(replace(f, type=_key_type(f.type)) for f in data_type.fields),
        element=data_type.element and _key_type(data_type.element),
        key=data_type.key and _key_type(data_type.key),
    )


def side_of(expr: Expr, left_width: int) -> int | None:
    """0 or 1 where the expression reads one side of a join only; None for both or none."""
    sides = {0 if index < left_width else 1 for index in columns((expr,))}
    return sides.pop() if len(sides) == 1 else None


def shift(expr: Expr, by: int) -> Expr:
    """The expression over fields that stand `by` positions further right."""
    return transform(expr, lambda c: replace(c, index=c.index + by))


def unique_keys(
    node: Logical, below: Sequence[frozenset[Key]], condition: JoinCondition
) -> frozenset[Key]:
    """Every set of output columns known to be unique, as Flink derives them from those of inputs.

    The empty set is the key of a table of one row. A column of a key may be NULL. `condition` is
    that of a join.
    """
    match node:
        case Filter() | Sink() | RowNumber():
            return below[0]
        case Project(exprs=exprs):
            return _projected(below[0], exprs)
        case Join():
            return _joined(node, condition, below[0], below[1])
        case Scan(table=table, fields=fields):
            names = [f.name for f in fields]
            key = frozenset(names.index(name) for name in table.primary_key)
            return frozenset((key,)) if key else frozenset()
        case Rank():
            return _ranked(node, below[0])
        case Deduplicate(partition=partition):
            return frozenset((frozenset(partition),))
        case Aggregate(keys=keys):
            return frozenset((frozenset(range(len(keys))),))
        case Unnest():
            return _unnested(node, below[0])
        case Union() | NoRows():
            return frozenset()
        case _:
            assert_never(node)


def _ranked(node: Rank, below: frozenset[Key]) -> frozenset[Key]:
    """The keys of the rows, and the place in the partition, which one row has at a time."""
    by = frozenset(node.partition)
    if node.first == node.last:
        return below | {by}
    return below if node.number is None else below | {by | {len(node.input.fields)}}


def _unnested(node: Unnest, below: frozenset[Key]) -> frozenset[Key]:
    """The keys of the rows with the place of an element, which repeats in no row."""
    place = len(node.fields) - 1
    return frozenset(key | {place} for key in below) if node.ordinality else frozenset()


def _projected(keys: frozenset[Key], exprs: Sequence[Expr]) -> frozenset[Key]:
    places: dict[int, list[int]] = {}
    for position, expr in enumerate(exprs):
        source = _same_value(expr)
        if source is not None:
            places.setdefault(source, []).append(position)
    kept = (key for key in sorted(keys, key=key_order) if key <= places.keys())
    found = [frozenset(c) for key in kept for c in product(*(places[i] for i in sorted(key)))]
    return frozenset(found[:MAX_KEYS])


def _same_value(expr: Expr) -> int | None:
    """The column whose values the expression keeps apart: itself, or widened without loss."""
    match expr:
        case Column(index=index):
            return index
        case Call(op="CAST", args=(Column(index=index, type=source),), type=target):
            return index if _widens(source, target) else None
        case _:
            return None


def _widens(source: DataType, target: DataType) -> bool:
    if source.name in INTEGERS and target.name in INTEGERS:
        return INTEGERS.index(source.name) <= INTEGERS.index(target.name)
    return same_bytes(source, target) and (source.precision or 0) <= (target.precision or 0)


def _joined(
    join: Join, condition: JoinCondition, left: frozenset[Key], right: frozenset[Key]
) -> frozenset[Key]:
    """The keys of a join whose inputs have these; semi and anti joins keep the left ones."""
    if join.kind in ("semi", "anti"):
        return left
    width = len(join.left.fields)
    moved = frozenset(frozenset(i + width for i in key) for key in right)
    keys = {a | b for a in left for b in moved}
    if join.kind in ("inner", "left") and is_unique(right, condition.columns_of(1)):
        keys |= left
    if join.kind in ("inner", "right") and is_unique(left, condition.columns_of(0)):
        keys |= moved
    return frozenset(sorted(keys, key=key_order)[:MAX_KEYS])


def is_unique(keys: frozenset[Key], by: Key) -> bool:
    """Whether all rows differ in the columns `by`."""
    return any(key <= by for key in keys)


def smallest(keys: Iterable[Key]) -> Key | None:
    """The key with the fewest columns, the first of those."""
    return min(keys, key=key_order, default=None)


def key_order(key: Key) -> tuple[int, list[int]]:
    return len(key), sorted(key)
