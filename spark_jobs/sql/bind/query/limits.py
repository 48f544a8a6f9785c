"""Binds `ORDER BY x LIMIT n`: the first n rows of a query, as a Top-N over all of them."""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import count
from typing import Self

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
    asked = Limited.of(context, node)
    rows = bind(context, asked.query)
    width = len(rows.fields) - asked.added
    keys = asked.sort_keys(rows, width)
    found = Rank(rows, (), keys, asked.first, asked.last, None, context.position(node))
    names = [field.name for field in rows.fields[:width]]
    return project(found, all_columns(found)[:width], names)


@dataclass(frozen=True, slots=True)
class Limited:
    """A query without its ORDER BY and LIMIT, and which of its rows these leave.

    `order` has the place in the result of what is ordered by, None of a column that the query has
    got for it: those stand behind the others.
    """

    query: exp.Expr
    order: tuple[tuple[int | None, exp.Expr], ...]
    first: int
    last: int

    @classmethod
    def of(cls, context: QueryContext, node: exp.Expr) -> Self:
        skipped = _count(context, node.args["offset"]) if node.args.get("offset") else 0
        taken = _count(context, node.args["limit"])
        if taken == 0:
            context.refuse(node.args["limit"], "LIMIT 0", "take at least one row")
        bare = node.copy()
        for clause in _CLAUSES:
            bare.set(clause, None)
        order = node.args["order"].expressions if node.args.get("order") else []
        places = tuple((_added(context, bare, ordered), ordered) for ordered in order)
        return cls(bare, places, skipped + 1, skipped + taken)

    @property
    def added(self) -> int:
        """How many columns the query has got."""
        return sum(place is None for place, _ in self.order)

    def sort_keys(self, rows: Logical, width: int) -> tuple[SortKey, ...]:
        """The order of rows of the query; columns that it has got begin at `width`."""
        behind = count(width)
        return tuple(
            SortKey(
                _known(rows, next(behind) if place is None else place),
                bool(ordered.args.get("desc")),
                bool(ordered.args.get("nulls_first")),
            )
            for place, ordered in self.order
        )


def _count(context: QueryContext, node: exp.Expr) -> int:
    """The number of rows of LIMIT, FETCH or OFFSET."""
    parts = (
        {"count", "direction", "limit_options"} if isinstance(node, exp.Fetch) else {"expression"}
    )
    if others(node, parts):
        context.only(node, parts)
    number = node.args.get("count" if isinstance(node, exp.Fetch) else "expression")
    if not isinstance(number, exp.Literal) or number.is_string or not number.this.isdigit():
        context.refuse(node, "a number of rows that is no constant", "write LIMIT 10")
    return int(number.this)


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
