"""Joins with constant rows, such as those of VALUES, need no state: each row is tested at once."""

from collections.abc import Sequence
from dataclasses import replace

from spark_jobs.plan.facts.emptiness import is_row_of_nothing
from spark_jobs.plan.facts.sources import inline, peel
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.rules.constants import FALSE
from spark_jobs.plan.rules.rewriting import filtered, map_inputs
from spark_jobs.sql.bind.query.constant_rows import row_array
from spark_jobs.sql.logical import (
    Aggregate,
    Filter,
    Join,
    Logical,
    NoRows,
    Project,
    Union,
    Unnest,
    all_columns,
)
from spark_jobs.sql.types.data_types import BIGINT, BOOLEAN, with_nullable
from spark_jobs.sql.types.expr import Call, Column, Expr, Literal, conjuncts, predicate, transform

Rows = Sequence[tuple[Expr, ...]]

MOST_ROWS = 100
"""Each row of the other side carries the constants to the task that joins it; state is cheaper for
more of them."""


def join_constants(node: Logical) -> Logical:
    """A join with constants as UNNEST of them, as a filter, or as more columns.

    The constants are there from the first row on and never change, so each change of the other
    side has all its results at once, and its retraction has the same.
    """
    node = map_inputs(node, join_constants)
    if not isinstance(node, Join) or is_versioned(node):
        return node
    rows = _constants(node.right)
    if rows is not None and node.kind in ("inner", "left"):
        return _with_rows(node, rows)
    if rows is not None and node.kind in ("semi", "anti"):
        return _tested(node, rows)
    if node.kind == "inner" and _constants(node.left) is not None:
        return _exchanged(node)
    return node


def _constants(node: Logical) -> Rows | None:
    """The rows of a table of few constants; None of any other, and of one under a WHERE."""
    above = peel(node)
    rows = _base_rows(above.base)
    if rows is None or above.where is not None or len(rows) > MOST_ROWS:
        return None
    return [tuple(inline(expr, row) for expr in above.exprs) for row in rows]


def _base_rows(base: Logical) -> Rows | None:
    match base:
        case Aggregate() if is_row_of_nothing(base) and isinstance(peel(base.input).base, NoRows):
            return [(Literal(0, with_nullable(BIGINT, False)),)]
        case Unnest(collection=Call(op="ARRAY", args=elements), kind="inner", ordinality=False):
            below = _constants(base.input)
            if below is None or len(below) != 1:
                return None
            spread = [e.args for e in elements if isinstance(e, Call) and e.op == "ROW"]
            return [(*below[0], *row) for row in spread] if len(spread) == len(elements) else None
        case Union(inputs=inputs):
            parts = [_constants(i) for i in inputs]
            return [row for part in parts for row in part or ()] if all(parts) else None
        case _:
            return None


def _with_rows(join: Join, rows: Rows) -> Logical:
    """Each left row with each constant row that the condition lets it have."""
    is_left = join.kind == "left"
    if len(rows) == 1 and (not is_left or join.condition is None):
        whole = Project(join.left, (*all_columns(join.left), *rows[0]), join.fields)
        return filtered(whole, conjuncts(join.condition))
    elements = join.right.fields
    values, at = row_array(rows, elements), join.position
    if is_left:
        return Unnest(join.left, values, "left", join.condition, elements, False, at)
    spread = Unnest(join.left, values, "inner", None, elements, False, at)
    return filtered(spread, conjuncts(join.condition))


def _tested(join: Join, rows: Rows) -> Logical:
    """The left rows for which the condition holds with one of the rows, or with none."""
    width = len(join.left.fields)

    def over_left(row: tuple[Expr, ...], condition: Expr) -> Expr:
        return transform(condition, lambda c: c if c.index < width else row[c.index - width])

    if join.condition is None:
        return join.left if join.kind == "semi" else Filter(join.left, FALSE)
    tests = [over_left(row, join.condition) for row in rows]
    if join.kind == "anti":
        sure = with_nullable(BOOLEAN, False)
        return filtered(join.left, [Call("IS NOT TRUE", (test,), sure) for test in tests])
    return Filter(join.left, tests[0] if len(tests) == 1 else predicate("OR", tests))


def _exchanged(join: Join) -> Logical:
    """The join with its sides, and then its columns, in the other order."""
    ours, theirs = len(join.left.fields), len(join.right.fields)

    def moved(column: Column) -> Expr:
        by = theirs if column.index < ours else -ours
        return replace(column, index=column.index + by)

    condition = None if join.condition is None else transform(join.condition, moved)
    turned = replace(
        join,
        left=join.right,
        right=join.left,
        condition=condition,
        ttl_ms=(join.ttl_ms[1], join.ttl_ms[0]),
    )
    found = join_constants(turned)
    exprs = all_columns(found)
    return Project(found, (*exprs[theirs:], *exprs[:theirs]), join.fields)
