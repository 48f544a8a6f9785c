"""Key facts: which conditions of a join are equalities, and which columns tell rows apart.

The rules are those of Flink's planner (FlinkRelMdUniqueKeys, JoinInfo), so that the state layouts
explain prints are the ones Flink would print.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import assert_never

from spark_jobs.plan.logical import Filter, Join, Logical, Project, Scan, Sink
from spark_jobs.sql.expr import Call, Column, Expr, columns, conjuncts, transform
from spark_jobs.sql.types import DataType

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


def split_condition(join: Join) -> JoinCondition:
    """Equalities between one expression of each side, and the rest.

    In a temporal join a primary key column compared with a constant counts as well: the key is
    then known, only not from the left row.
    """
    keys: list[EquiKey] = []
    residual: list[Expr] = []
    for predicate in conjuncts(join.condition):
        key = _equi_key(predicate, len(join.left.fields))
        if key is None:
            residual.append(predicate)
        else:
            keys.append(key)
    if join.as_of is not None:
        return _with_constants(join, tuple(keys), tuple(residual))
    return JoinCondition(tuple(keys), tuple(residual))


def _equi_key(predicate: Expr, left_width: int) -> EquiKey | None:
    match predicate:
        case Call(op="=" | "IS NOT DISTINCT FROM" as op, args=(a, b)) if same_bytes(a.type, b.type):
            for left, right in ((a, b), (b, a)):
                if side_of(left, left_width) == 0 and side_of(right, left_width) == 1:
                    return EquiKey(left, shift(right, -left_width), op != "=")
    return None


def _with_constants(
    join: Join, keys: tuple[EquiKey, ...], residual: tuple[Expr, ...]
) -> JoinCondition:
    width = len(join.left.fields)
    condition = JoinCondition(keys, residual)
    wanted = frozenset().union(*unique_keys(join.right)) - condition.columns_of(1)
    constants: list[EquiKey] = []
    rest: list[Expr] = []
    for predicate in residual:
        match predicate:
            case Call(op="=", args=(a, b)) if same_bytes(a.type, b.type):
                pair = next(((c, v) for c, v in ((a, b), (b, a)) if not columns((v,))), None)
                if pair and isinstance(pair[0], Column) and pair[0].index - width in wanted:
                    constants.append(EquiKey(pair[1], shift(pair[0], -width), False))
                    continue
        rest.append(predicate)
    return JoinCondition((*keys, *constants), tuple(rest))


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


def and_all(predicates: Iterable[Expr]) -> Expr | None:
    """One condition of all predicates; None of none."""
    parts = tuple(predicates)
    if len(parts) < 2:
        return parts[0] if parts else None
    nullable = any(p.type.nullable for p in parts)
    return Call("AND", parts, DataType("BOOLEAN", nullable))


def unique_keys(node: Logical) -> frozenset[Key]:
    """Every set of output columns known to be unique, as Flink derives them."""
    match node:
        case Scan(table=table, fields=fields):
            names = [f.name for f in fields]
            key = frozenset(names.index(name) for name in table.primary_key)
            return frozenset((key,)) if key else frozenset()
        case Filter(input=inner) | Sink(input=inner):
            return unique_keys(inner)
        case Project(input=inner, exprs=exprs):
            return _projected(unique_keys(inner), exprs)
        case Join():
            return _joined(node)
        case _:
            assert_never(node)


def _projected(keys: frozenset[Key], exprs: Sequence[Expr]) -> frozenset[Key]:
    places: dict[int, list[int]] = {}
    for position, expr in enumerate(exprs):
        if isinstance(expr, Column):
            places.setdefault(expr.index, []).append(position)
    kept = (key for key in sorted(keys, key=key_order) if key <= places.keys())
    found = [frozenset(c) for key in kept for c in product(*(places[i] for i in sorted(key)))]
    return frozenset(found[:MAX_KEYS])


def _joined(join: Join) -> frozenset[Key]:
    width = len(join.left.fields)
    left = unique_keys(join.left)
    if join.kind in ("semi", "anti"):
        return left
    right = frozenset(frozenset(i + width for i in key) for key in unique_keys(join.right))
    condition = split_condition(join)
    keys = {a | b for a in left for b in right}
    if is_unique(unique_keys(join.right), condition.columns_of(1)) and join.kind in (
        "inner",
        "left",
    ):
        keys |= left
    if is_unique(left, condition.columns_of(0)) and join.kind in ("inner", "right"):
        keys |= right
    return frozenset(sorted(keys, key=key_order)[:MAX_KEYS])


def is_unique(keys: frozenset[Key], by: Key) -> bool:
    """Whether the columns `by` tell all rows apart."""
    return any(key <= by for key in keys)


def smallest(keys: Iterable[Key]) -> Key | None:
    """The key with the fewest columns, the first of those."""
    return min(keys, key=key_order, default=None)


def key_order(key: Key) -> tuple[int, list[int]]:
    return len(key), sorted(key)
