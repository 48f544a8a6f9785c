"""Conditions without columns: TRUE and IS TRUE go away, literals are compared at once."""

from collections.abc import Iterator
from dataclasses import replace

from spark_jobs.plan.rules.rewriting import map_inputs, without_true
from spark_jobs.sql.logical import Filter, Join, Logical
from spark_jobs.sql.types.data_types import BOOLEAN, INTEGERS, with_nullable
from spark_jobs.sql.types.expr import COMPARED, Call, Expr, Literal, and_all, conjuncts

NOT_NULL_BOOLEAN = with_nullable(BOOLEAN, False)
TRUE = Literal(True, NOT_NULL_BOOLEAN)
FALSE = Literal(False, NOT_NULL_BOOLEAN)


def fold_constants(node: Logical) -> Logical:
    """`ON TRUE`, `WHERE 1 = 1`: what holds for every row need not be evaluated."""
    node = map_inputs(node, fold_constants)
    match node:
        case Filter(input=inner, condition=condition):
            folded = _folded(condition)
            return inner if folded is None else replace(node, condition=folded)
        case Join(condition=condition) if condition is not None:
            return replace(node, condition=_folded(condition))
        case _:
            return node


def _folded(condition: Expr) -> Expr | None:
    return and_all(without_true(map(_decided, _required(condition))))


def _required(condition: Expr) -> Iterator[Expr]:
    """What has to be TRUE, as every condition of a filter or join has to: `(a = b) IS TRUE` is
    `a = b` there, which may be the equality of a join."""
    for part in conjuncts(condition):
        match part:
            case Call(op="IS TRUE", args=(inner,)):
                yield from _required(inner)
            case _:
                yield part


def _decided(predicate: Expr) -> Expr:
    match predicate:
        case Call(op=op, args=(a, b)) if op in COMPARED:
            left, right = integer(a), integer(b)
            if left is not None and right is not None:
                return TRUE if COMPARED[op](left, right) else FALSE
        case Call(op="NOT", args=(a,)):
            inner = _decided(a)
            if inner in (TRUE, FALSE):
                return FALSE if inner == TRUE else TRUE
        case Literal(value=bool() as value):
            return TRUE if value else FALSE
    return predicate


def integer(expr: Expr) -> int | None:
    """The value of a whole-number constant, also where it was cast to another integer type."""
    match expr:
        case Literal(value=int() as value, type=type_) if type_.name in INTEGERS:
            return value
        case Call(op="CAST", args=(a,), type=type_) if type_.name in INTEGERS:
            return integer(a)
        case _:
            return None
