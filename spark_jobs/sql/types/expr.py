"""The typed expressions that the binder makes and the planner rewrites.

A `Column` names its position in the fields of the node it is evaluated over (Calcite's `$i`);
for a join these are the left fields followed by the right ones.
"""

import operator
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, TypeAlias

from spark_jobs.sql.types.data_types import DataType

COMPARED: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "<>": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}
FLIPPED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "=": "="}
"""The comparison that says the same with its sides exchanged."""

Value: TypeAlias = bool | int | float | str | bytes | None


@dataclass(frozen=True, slots=True)
class Column:
    """Field `index` of the input; `name` is for people only."""

    index: int
    name: str
    type: DataType


@dataclass(frozen=True, slots=True)
class Literal:
    """A constant. DECIMAL, DATE, TIME, TIMESTAMP and INTERVAL values are kept as SQL text.

    An interval's value is its length in milliseconds (or in months for year-month intervals).
    """

    value: Value
    type: DataType


@dataclass(frozen=True, slots=True)
class FieldAccess:
    """`row.field` on a ROW-typed expression."""

    row: "Expr"
    field: str
    type: DataType


@dataclass(frozen=True, slots=True)
class Call:
    """An operator or function by its upper-case Flink name: =, <>, AND, NOT, IS NULL, CAST, ..."""

    op: str
    args: tuple["Expr", ...]
    type: DataType


@dataclass(frozen=True, slots=True)
class PythonCall(Call):
    """A call of the Python function `target` ('module.function'), and where it stands."""

    target: str = ""
    line: int = field(default=0, compare=False)
    column: int = field(default=0, compare=False)


Expr: TypeAlias = Column | Literal | FieldAccess | Call


def children(expr: Expr) -> tuple[Expr, ...]:
    match expr:
        case Call(args=args):
            return args
        case FieldAccess(row=row):
            return (row,)
        case _:
            return ()


def walk(expr: Expr) -> Iterator[Expr]:
    """The expression and everything below it, parents first."""
    yield expr
    for child in children(expr):
        yield from walk(child)


def python_calls(exprs: Iterable[Expr]) -> tuple[PythonCall, ...]:
    """All calls of Python functions in the expressions."""
    return tuple(e for root in exprs for e in walk(root) if isinstance(e, PythonCall))


def columns(exprs: Iterable[Expr]) -> frozenset[int]:
    """Positions of all columns that the expressions read."""
    return frozenset(e.index for root in exprs for e in walk(root) if isinstance(e, Column))


def transform(expr: Expr, fn: Callable[[Column], Expr]) -> Expr:
    """Replace every column; everything else keeps its shape."""
    match expr:
        case Column():
            return fn(expr)
        case Call(args=args):
            return replace(expr, args=tuple(transform(a, fn) for a in args))
        case FieldAccess(row=row):
            return replace(expr, row=transform(row, fn))
        case _:
            return expr


def predicate(op: str, args: Iterable[Expr]) -> Call:
    """An operator whose BOOLEAN result may be NULL where an argument may."""
    args = tuple(args)
    return Call(op, args, DataType("BOOLEAN", any(a.type.nullable for a in args)))


def and_all(predicates: Iterable[Expr]) -> Expr | None:
    """One condition of all predicates; None of none."""
    parts = tuple(predicates)
    if len(parts) < 2:
        return parts[0] if parts else None
    return predicate("AND", parts)


def conjuncts(expr: Expr | None) -> tuple[Expr, ...]:
    """Split at AND: `a AND (b AND c)` gives a, b, c; None gives nothing."""
    match expr:
        case None:
            return ()
        case Call(op="AND", args=args):
            return tuple(c for a in args for c in conjuncts(a))
        case _:
            return (expr,)
