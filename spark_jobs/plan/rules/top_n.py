"""`ROW_NUMBER() OVER (PARTITION BY k ORDER BY x) <= n`: the first rows of each partition."""

from spark_jobs.plan.rules.constants import integer
from spark_jobs.plan.rules.rewriting import filtered, map_inputs
from spark_jobs.sql.logical import Filter, Logical, Project, Rank, RowNumber, all_columns
from spark_jobs.sql.types.data_types import BIGINT, with_nullable
from spark_jobs.sql.types.expr import FLIPPED, Call, Column, Expr, Literal, conjuncts, transform


def rank(node: Logical) -> Logical:
    """A filter that bounds the row number from above becomes a Rank.

    What else the filter asks for stays above it. A range of one row needs no number: it is known.
    """
    node = map_inputs(node, rank)
    match node:
        case Filter(input=RowNumber() as numbered, condition=condition):
            rest, first, last = taken_range(condition, len(numbered.input.fields))
        case _:
            return node
    if last is None or last < first:
        return node
    input_, place = numbered.input, len(numbered.input.fields)
    number = numbered.fields[-1] if first < last else None
    rows = Rank(input_, numbered.partition, numbered.order, first, last, number, numbered.position)
    if number is not None:
        return filtered(rows, rest)
    only = Literal(first, with_nullable(BIGINT, False))
    known = tuple(transform(p, lambda c: only if c.index == place else c) for p in rest)
    return Project(filtered(rows, known), (*all_columns(input_), only), numbered.fields)


def taken_range(condition: Expr, place: int) -> tuple[tuple[Expr, ...], int, int | None]:
    """The first and last row number that pass, and the predicates that say something else."""
    first, last = 1, None
    rest: list[Expr] = []
    for predicate in conjuncts(condition):
        bounds = _bounds(predicate, place)
        if bounds is None:
            rest.append(predicate)
            continue
        low, high = bounds
        first = max(first, low or 1)
        last = high if last is None or (high is not None and high < last) else last
    return tuple(rest), first, last


def _bounds(predicate: Expr, place: int) -> tuple[int | None, int | None] | None:
    """The row numbers between which a predicate holds; None if it is about something else."""
    match predicate:
        case Call(op="BETWEEN", args=(value, low, high)) if _is_number(value, place):
            least, most = integer(low), integer(high)
            return None if least is None or most is None else (least, most)
        case Call(op=op, args=(a, b)) if op in FLIPPED:
            if _is_number(a, place):
                return _compared(op, integer(b))
            return _compared(FLIPPED[op], integer(a)) if _is_number(b, place) else None
        case _:
            return None


def _compared(op: str, value: int | None) -> tuple[int | None, int | None] | None:
    if value is None:
        return None
    match op:
        case "=":
            return value, value
        case "<=":
            return None, value
        case "<":
            return None, value - 1
        case ">=":
            return value, None
        case ">":
            return value + 1, None
        case _:
            return None


def _is_number(expr: Expr, place: int) -> bool:
    match expr:
        case Column(index=found) | Call(op="CAST", args=(Column(index=found),)):
            return found == place
        case _:
            return False
