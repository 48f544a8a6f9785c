"""Binds LATERAL (SELECT ...): for each row on the left, what a query finds that may read that row.

Such a query becomes a join: its conditions on the row are those of the join. An aggregate is
grouped, and the first rows by ORDER BY and LIMIT are numbered, by what the row is compared with.
"""

from collections.abc import Sequence
from dataclasses import replace

from sqlglot import exp

from spark_jobs.errors import SqlError
from spark_jobs.sql.bind.projections import project, unique_names
from spark_jobs.sql.bind.query.aggregates import is_aggregated
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.limits import is_limited
from spark_jobs.sql.bind.query.relations import Relations, join_scope, on_condition, over
from spark_jobs.sql.bind.query.set_operations import distinct
from spark_jobs.sql.bind.query.subquery.subquery_rows import (
    SubqueryRows,
    bare,
    block,
    or_zero,
    own_items,
    rows_of,
    with_keys,
)
from spark_jobs.sql.bind.query.with_clauses import with_queries
from spark_jobs.sql.bind.scope import Relation, Scope
from spark_jobs.sql.logical import (
    Field,
    Filter,
    Join,
    JoinType,
    Logical,
    all_columns,
    column,
)
from spark_jobs.sql.parse.positions import start_of
from spark_jobs.sql.types.expr import (
    Column,
    Expr,
    Literal,
    and_all,
    conjuncts,
    transform,
)


def bind_lateral_query(
    context: QueryContext, left: Logical, relations: Relations, node: exp.Expr, kind: JoinType
) -> tuple[Logical, Relations]:
    """The rows with what the query finds for each, and what that adds to FROM.

    Raises:
        PositionedError: a query that no join can stand for, or a join that Flink has not either.
    """
    subquery = node.this.this
    if kind not in ("inner", "left"):
        context.refuse(node.this, f"{kind.upper()} JOIN LATERAL", "use JOIN or LEFT JOIN")
    if node.args.get("using") or node.args.get("method"):
        context.refuse(node.this, "LATERAL with USING or NATURAL", "write ON")
    context.only(subquery, {"this", "alias"})
    found = _rows(context, join_scope(context, relations), subquery.this, left)
    joined = _joined(context, left, found, node, kind)
    width = len(left.fields)
    fields = _renamed(context, subquery, joined.fields[width:])
    added = (Relation(subquery.alias or None, fields, width),)
    both = over(joined, (*relations, *added))
    condition = on_condition(context, node, both, bool(node.args.get("side")))
    asked = [p for p in conjuncts(condition) if not (isinstance(p, Literal) and p.value is True)]
    if not asked:
        return joined, both
    if kind == "left":
        hint = "write ON TRUE, and the condition into the WHERE of the query"
        context.refuse(node.this, "LEFT JOIN LATERAL with another condition than TRUE", hint)
    wanted = and_all(asked)
    return joined if wanted is None else Filter(joined, wanted), both


def _rows(context: QueryContext, scope: Scope, node: exp.Expr, left: Logical) -> SubqueryRows:
    """The rows of the query, before the conditions that read the row on the left."""
    node = bare(context, node)
    if isinstance(node, exp.Select) and not is_limited(node) and not is_aggregated(node):
        context = with_queries(context, node)
        if node.args.get("distinct") is not None:
            return _distinct(context, scope, node)
    return rows_of(context, scope, node, left)


def _distinct(context: QueryContext, scope: Scope, node: exp.Select) -> SubqueryRows:
    """Each row once for each row on the left; a block alone would keep its copies."""
    rows = block(context, scope, node, node.expressions)
    given, equal = with_keys(context, node, rows, "DISTINCT in a subquery")
    once = distinct(given, context.position(node))
    return SubqueryRows(once, equal, all_columns(once)[: len(rows.items)], rows.names)


def _joined(
    context: QueryContext, left: Logical, rows: SubqueryRows, node: exp.Expr, kind: JoinType
) -> Logical:
    """The join, with the left columns and the items of the query."""
    width, inner = len(left.fields), rows.input.fields
    pads = kind == "left" or rows.without != "nothing"
    if pads:
        own_items(context, node.this, rows.items)
    # where the join finds nothing, what is computed below is NULL, and what is above is computed
    below = [e for e in rows.items if not isinstance(e, Column)] if kind == "left" else []
    below = [] if rows.without != "nothing" else below
    known = unique_names([*(field.name for field in inner), *(None for _ in below)])
    right = project(rows.input, [*all_columns(rows.input), *below], known)

    def placed(found: Column) -> Column:
        index = found.index + width if found.index >= 0 else -1 - found.index
        return replace(found, index=index)

    condition = and_all(transform(p, placed) for c in rows.conditions for p in conjuncts(c))
    position = context.position(node.this)
    joined = Join(left, right, "left" if pads else "inner", condition, None, position)

    def there(found: Column) -> Expr:
        value = column(joined.fields, placed(found).index)
        return or_zero(value) if found.index in rows.counts else value

    items = [
        column(joined.fields, width + len(inner) + below.index(item))
        if item in below
        else transform(item, there)
        for item in rows.items
    ]
    names = [*(field.name for field in left.fields), *unique_names(rows.names)]
    return project(joined, [*all_columns(joined)[:width], *items], names)


def _renamed(
    context: QueryContext, subquery: exp.Expr, fields: Sequence[Field]
) -> tuple[Field, ...]:
    """The columns under the names that the alias gives them."""
    alias = subquery.args.get("alias")
    names = alias.args.get("columns") if alias is not None else None
    if not names:
        return tuple(fields)
    if len(names) != len(fields):
        raise context.source.place(
            SqlError("COLUMN_COUNT", f"{len(names)} names for {len(fields)} columns"),
            start_of(names[0]),
        )
    return tuple(replace(f, name=n.name) for n, f in zip(names, fields, strict=True))
