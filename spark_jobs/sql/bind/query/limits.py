"""Binds `ORDER BY x LIMIT n`: the first n rows of a query, as a Top-N over all of them."""

from collections.abc import Callable

from sqlglot import exp

from spark_jobs.sql.bind.projections import project
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.logical import Logical, Project, Rank, SortKey, all_columns
from spark_jobs.sql.parse.positions import others

Bind = Callable[[QueryContext, exp.Expr], Logical]

_CLAUSES = ("order", "limit", "offset")
_ORDERED = {"this", "desc", "nulls_first"}


def is_limited(node: exp.Expr) -> bool:
    """Whether the query asks for its first rows."""
    return isinstance(node, exp.Query) and node.args.get("limit") is not None


def first_rows(context: QueryContext, node: exp.Expr, bind: Bind) -> Logical:
    """The rows that ORDER BY, LIMIT and OFFSET leave of a query, which `bind` gives without them.

    Without ORDER BY they are those that came first, as in Flink. What the rows are ordered by need
    not be among the columns of the result.

    Raises:
        PositionedError: a number of rows that is no constant, ORDER BY of what is not known.
    """
    skipped = _count(context, node.args["offset"]) if node.args.get("offset") else 0
    taken = _count(context, node.args["limit"])
    if taken == 0:
        context.refuse(node.args["limit"], "LIMIT 0", "take at least one row")
    bare = node.copy()
    for clause in _CLAUSES:
        bare.set(clause, None)
    order = node.args["order"].expressions if node.args.get("order") else []
    added = [_added(context, bare, ordered) for ordered in order]
    rows = bind(context, bare)
    width = len(rows.fields) - sum(place is None for place in added)
    behind = iter(range(width, len(rows.fields)))
    keys = tuple(
        SortKey(
            _known(rows, next(behind) if place is None else place),
            bool(ordered.args.get("desc")),
            bool(ordered.args.get("nulls_first")),
        )
        for place, ordered in zip(added, order, strict=True)
    )
    position = context.position(node)
    found = Rank(rows, (), keys, skipped + 1, skipped + taken, None, position)
    names = [field.name for field in rows.fields[:width]]
    return project(found, all_columns(found)[:width], names)


def _count(context: QueryContext, node: exp.Expr) -> int:
    """The number of rows of LIMIT, FETCH or OFFSET."""
    parts = (
        {"count", "direction", "limit_options"} if isinstance(node, exp.Fetch) else {"expression"}
    )
    if others(node, parts):
        context.only(node, parts)
    count = node.args.get("count" if isinstance(node, exp.Fetch) else "expression")
    if not isinstance(count, exp.Literal) or count.is_string or not count.this.isdigit():
        context.refuse(node, "a number of rows that is no constant", "write LIMIT 10")
    return int(count.this)


def _added(context: QueryContext, bare: exp.Expr, ordered: exp.Expr) -> int | None:
    """The place in the result of what is ordered by; None: it becomes one more column."""
    if others(ordered, _ORDERED):
        context.only(ordered, _ORDERED)
    by = ordered.this
    items = bare.selects if isinstance(bare, exp.Query) else []
    if isinstance(by, exp.Literal) and not by.is_string:
        if not by.this.isdigit() or not 0 < int(by.this) <= len(items):
            context.refuse(
                by, f"ORDER BY {by.this}", "name the column that the rows are ordered by"
            )
        return int(by.this) - 1
    names = [item.alias_or_name for item in items]
    if isinstance(by, exp.Column) and not by.table and names.count(by.name) == 1:
        return names.index(by.name)
    if not isinstance(bare, exp.Select) or bare.args.get("distinct") is not None:
        hint = "name a column of the result"
        context.refuse(by, "ORDER BY of what the result does not have", hint)
    bare.append("expressions", by.copy())
    return None


def _known(rows: Logical, place: int) -> int:
    """The place of the first column that is made in the same way."""
    return rows.exprs.index(rows.exprs[place]) if isinstance(rows, Project) else place
