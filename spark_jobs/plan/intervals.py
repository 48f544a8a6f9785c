"""Recognises interval joins: conditions that bound one time attribute by another.

Flink runs such a join as an interval join whatever its author had in mind, so it must be told
apart from a regular join over the same columns.
"""

from spark_jobs.plan.keys import side_of
from spark_jobs.plan.logical import Join
from spark_jobs.sql.expr import Call, Column, Expr, columns, conjuncts, walk
from spark_jobs.sql.types import INTERVALS

BOUNDS = {"<": "upper", "<=": "upper", ">": "lower", ">=": "lower", "=": "both"}
FLIPPED = {"lower": "upper", "upper": "lower", "both": "both"}


def is_interval_join(join: Join) -> bool:
    """Whether the condition bounds the left time attribute from both sides by the right one."""
    found = {bound for p in conjuncts(join.condition) for bound in _bounds(p, join)}
    return "both" in found or {"lower", "upper"} <= found


def _bounds(predicate: Expr, join: Join) -> set[str]:
    match predicate:
        case Call(op="BETWEEN", args=(value, low, high)):
            pairs = [(value, low, "lower"), (value, high, "upper")]
        case Call(op=op, args=(a, b)) if op in BOUNDS:
            pairs = [(a, b, BOUNDS[op])]
        case _:
            return set()
    return {b for left, right, kind in pairs for b in _bound(left, right, kind, join)}


def _bound(a: Expr, b: Expr, kind: str, join: Join) -> tuple[str, ...]:
    width = len(join.left.fields)
    if not (_is_time(a, join) and _is_time(b, join)):
        return ()
    match side_of(a, width), side_of(b, width):
        case (0, 1):
            return (kind,)
        case (1, 0):
            return (FLIPPED[kind],)
        case _:
            return ()


def _is_time(expr: Expr, join: Join) -> bool:
    """A time attribute, plus or minus constant intervals."""
    fields = (*join.left.fields, *join.right.fields)
    if any(fields[i].time is None for i in columns((expr,))):
        return False
    steps = (e for e in walk(expr) if isinstance(e, Call))
    return len([e for e in walk(expr) if isinstance(e, Column)]) == 1 and all(
        e.op in ("+", "-") and any(a.type.name in INTERVALS for a in e.args) for e in steps
    )
