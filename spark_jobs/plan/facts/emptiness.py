"""Inputs that never have a row, as their conditions show, and the aggregates over them."""

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
    Union,
    Unnest,
)
from spark_jobs.sql.types.expr import COMPARED, Call, Expr, Literal, conjuncts


def is_row_of_nothing(node: Aggregate) -> bool:
    """Whether the aggregate is one constant row: without GROUP BY, over no rows."""
    return not node.keys and is_empty(node.input)


def is_empty(node: Logical) -> bool:
    """Whether a condition that no row can pass keeps the node empty."""
    match node:
        case NoRows():
            return True
        case Filter(input=inner, condition=condition):
            return any(map(_is_never_true, conjuncts(condition))) or is_empty(inner)
        case Project() | RowNumber() | Rank() | Deduplicate() | Unnest():
            return is_empty(node.input)
        case Aggregate(keys=keys):
            return bool(keys) and is_empty(node.input)
        case Union(inputs=inputs):
            return all(map(is_empty, inputs))
        case Join():
            return _is_empty_join(node)
        case _:
            return False


def _is_empty_join(join: Join) -> bool:
    left, right = is_empty(join.left), is_empty(join.right)
    match join.kind:
        case "inner" | "semi":
            return left or right or any(map(_is_never_true, conjuncts(join.condition)))
        case "left" | "anti":
            return left
        case "right":
            return right
        case "full":
            return left and right


def _is_never_true(predicate: Expr) -> bool:
    match predicate:
        case Literal(value=value):
            return value is None or value is False
        case Call(op="CAST", args=(inner,)):
            return _is_null(inner)
        case Call(op=op, args=args) if op in COMPARED:
            return any(map(_is_null, args))
        case Call(op="IS NULL", args=(inner,)):
            return not inner.type.nullable
        case _:
            return False


def _is_null(expr: Expr) -> bool:
    match expr:
        case Literal(value=value):
            return value is None
        case Call(op="CAST", args=(inner,)):
            return _is_null(inner)
        case _:
            return False
