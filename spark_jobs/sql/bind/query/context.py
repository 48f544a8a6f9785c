"""What the parts of a query are bound with, and the way back to binding a whole query."""

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import NoReturn

from sqlglot import exp

from spark_jobs.errors import PositionedError, UnsupportedError
from spark_jobs.sql.bind.namespace import Namespace
from spark_jobs.sql.bind.scope import Outer, Scope
from spark_jobs.sql.logical import Logical, Position
from spark_jobs.sql.parse.positions import Complaint, others, start_of
from spark_jobs.sql.parse.source_text import SourceText
from spark_jobs.sql.types.expr import Expr

_PART_NAMES = {
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "windows": "WINDOW",
    "qualify": "QUALIFY",
    "laterals": "LATERAL",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "locks": "FOR UPDATE",
}
_PART_HINTS = {
    "order": "a stream cannot be sorted, because it has no end: leave it out, or add LIMIT 10",
    "limit": "write it in a subquery in FROM",
    "offset": "a stream has no end: add LIMIT 10",
    "qualify": "write WHERE over a subquery in FROM",
}


@dataclass(frozen=True, slots=True)
class Block:
    """FROM and WHERE of a query block: its rows, and the names that the rest of it sees.

    `correlated` are the conditions that read the query around the block: only a join with that
    query can decide them.
    """

    rows: Logical
    scope: Scope
    correlated: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class QueryContext:
    """The tables and views that a query can read, and where its problems are reported.

    A part of a query, such as FROM or WHERE, may hold queries itself. `query` and `block` bind
    those; they are passed down, so that no part imports the module that binds whole queries.
    `outer` is what a subquery sees of the query around it.
    """

    source: SourceText
    names: Namespace
    query: Callable[["QueryContext", exp.Expr], Logical]
    block: Callable[["QueryContext", exp.Select], Block]
    outer: Outer | None = None

    @property
    def at(self) -> Complaint:
        return Complaint(self.source)

    @property
    def outer_of_from(self) -> Outer | None:
        """The same inside FROM, which may not read the query around it."""
        outer = self.outer
        return None if outer is None else Outer(outer.scope, outer.refused_in or "FROM")

    def nested(self, outer: Outer | None) -> "QueryContext":
        """The context of a query inside this one."""
        return replace(self, outer=outer)

    def bind(self, node: exp.Expr) -> Logical:
        """The logical plan of a whole query.

        Raises:
            PositionedError: a problem that ended the work; others are reported to the source.
            NotBoundError: only reported problems.
        """
        return self.query(self, node)

    def bind_block(self, node: exp.Select) -> Block:
        """FROM and WHERE of a query block. Raises as `bind` does."""
        return self.block(self, node)

    def position(self, node: exp.Expr) -> Position:
        return Position(*self.source.position(start_of(node)))

    def only(self, node: exp.Expr, parts: set[str]) -> None:
        """Refuse whatever else stands in a node."""
        for part in others(node, parts):
            raise self.unsupported_part(node, part)

    def unsupported_part(self, node: exp.Expr, part: str) -> PositionedError:
        """The refusal of a clause."""
        value = node.args[part]
        first = value[0] if isinstance(value, list) else value
        start = start_of(first) if isinstance(first, exp.Expr) else 0
        name = _PART_NAMES.get(part, part.rstrip("_").upper())
        message, hint = f"{name} is not supported", _PART_HINTS.get(part)
        error = UnsupportedError("UNSUPPORTED_CLAUSE", message, hint)
        return self.source.place(error, start or start_of(node))

    def refuse(self, node: exp.Expr, what: str, hint: str | None = None) -> NoReturn:
        error = UnsupportedError("UNSUPPORTED_CLAUSE", f"{what} is not supported", hint)
        raise self.source.place(error, start_of(node))
