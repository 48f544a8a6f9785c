"""Subqueries that are compared with the outer query by more than `=`.

No key of the subquery says then which outer row its rows belong to. So the values that the outer
rows have are joined with the subquery first, each once; what comes out is equal to them.
"""

from collections.abc import Sequence

from sqlglot import exp

from spark_jobs.sql.bind.projections import project
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.set_operations import distinct
from spark_jobs.sql.logical import Join, Logical, all_columns, column
from spark_jobs.sql.types.expr import Column, Expr, and_all, columns, conjuncts, transform


def with_outer_values(
    context: QueryContext,
    node: exp.Expr,
    outer: Logical,
    rows: Logical,
    conditions: Sequence[Expr],
) -> tuple[Join, tuple[Column, ...]]:
    """The rows behind the outer values that they belong to, and those values as outer columns.

    `conditions` are over the rows and, mirrored, over the fields of `outer`.
    """
    read = sorted(-1 - index for index in columns(conditions) if index < 0)
    values = tuple(column(outer.fields, index) for index in read)
    position = context.position(node)
    each = distinct(project(outer, values, [value.name for value in values]), position)

    def placed(found: Column) -> Expr:
        if found.index < 0:
            return all_columns(each)[read.index(-1 - found.index)]
        return Column(found.index + len(read), found.name, found.type)

    condition = and_all(transform(p, placed) for c in conditions for p in conjuncts(c))
    return Join(each, rows, "inner", condition, None, position), values
