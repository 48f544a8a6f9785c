"""Binds queries: FROM, WHERE, groups and the select list become logical nodes."""

from collections.abc import Iterator, Sequence
from typing import NoReturn

from sqlglot import exp

from spark_jobs.errors import PositionedError, UnsupportedError
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.namespace import Namespace
from spark_jobs.sql.bind.projections import all_columns, project, unique_names
from spark_jobs.sql.bind.query.aggregates import Grouping, group_keys, is_aggregated
from spark_jobs.sql.bind.query.hints import TtlHints, read_hints
from spark_jobs.sql.bind.query.joins import FromBinder
from spark_jobs.sql.bind.query.rankings import Ranking
from spark_jobs.sql.bind.query.subqueries import bind_where
from spark_jobs.sql.bind.query.unions import bind_set_operation
from spark_jobs.sql.bind.scope import Outer, Scope
from spark_jobs.sql.logical import Aggregate, Filter, Logical, Position
from spark_jobs.sql.parse.positions import name_path, others, start_of
from spark_jobs.sql.parse.source import Source
from spark_jobs.sql.parse.statements import Name
from spark_jobs.sql.types.expr import Expr

_SELECT_PARTS = {"expressions", "from_", "joins", "where", "group", "having", "distinct", "hint"}
_PART_NAMES = {
    "order": "ORDER BY",
    "limit": "LIMIT",
    "offset": "OFFSET",
    "windows": "WINDOW",
    "qualify": "QUALIFY",
    "laterals": "LATERAL",
    "with_": "WITH",
    "sample": "TABLESAMPLE",
    "pivots": "PIVOT",
    "locks": "FOR UPDATE",
}
_PART_HINTS = {
    "order": "the rows of a stream have no end to sort up to",
    "limit": "the rows of a stream have no end",
    "with_": "make it a CREATE VIEW or a subquery in FROM",
    "qualify": "write WHERE over a subquery in FROM",
}
# one column of a select list: its name, what it is, and the element that it comes from
Item = tuple[str | None, Expr, exp.Expr]


class QueryBinder:
    """Binds queries over the tables and views of one job file.

    `outer` is what a subquery sees of the query around it.
    """

    def __init__(self, source: Source, names: Namespace, outer: Outer | None = None) -> None:
        self.source = source
        self.names = names
        self.outer = outer

    def bind(self, node: exp.Expr) -> Logical:
        """The logical plan of a query.

        Raises:
            PositionedError: a problem that ended the work; others are reported to the source.
            NotBoundError: only reported problems.
        """
        match node:
            case exp.Select():
                return self._select(node)
            case exp.Subquery() if not others(node, {"this", "alias"}):
                return self.bind(node.this)
            case exp.SetOperation():
                return bind_set_operation(self, node)
            case exp.Values():
                self.refuse(node, "VALUES", "a query reads from a Kafka topic")
            case _:
                self.refuse(node, type(node).__name__.upper())

    def nested(self, outer: Outer | None) -> "QueryBinder":
        """A binder for a query inside of this one."""
        return QueryBinder(self.source, self.names, outer)

    def rows(self, node: exp.Select) -> tuple[Logical, Scope, tuple[Expr, ...]]:
        """FROM and WHERE of a query block: the rows, the names that the rest of it sees, and the
        conditions that read the query around it, which only a join with it can decide."""
        for part in others(node, _SELECT_PARTS):
            self.source.problems.append(self.unsupported_part(node, part))
        from_ = node.args.get("from_")
        if from_ is None:
            self.refuse(node, "SELECT without FROM", "a query reads from a Kafka topic")
        hints = TtlHints(self.source)
        with self.source.collecting():
            hints = read_hints(self.source, node.args.get("hint"))
        input_, scope = FromBinder(self, hints).bind(from_.this, node.args.get("joins") or [])
        correlated: tuple[Expr, ...] = ()
        where = node.args.get("where")
        if where is not None:
            with self.source.collecting():
                input_, correlated = bind_where(self, where.this, input_, scope, hints)
        aliases = [r.alias for r in scope.relations if r.alias]
        hints.check(aliases, is_aggregated(node) or node.args.get("distinct") is not None)
        return input_, scope, correlated

    def items(
        self, nodes: Sequence[exp.Expr], scope: Scope, binder: ExpressionBinder
    ) -> list[Item]:
        """A select list; problems are reported to the source."""
        found: list[Item] = []
        for item in nodes:
            with self.source.collecting():
                found += ((n, e, item) for n, e in self._item(item, scope, binder))
        return found

    def _select(self, node: exp.Select) -> Logical:
        with self.source.all_or_nothing():
            # no condition is left over: what is bound whole may not read the query around it
            input_, scope, _ = self.rows(node)
            if is_aggregated(node):
                input_, _, items = self.grouped(node, input_, scope, ())
            else:
                ranking = Ranking(scope, len(input_.fields))
                bound = self.items(node.expressions, scope, ExpressionBinder(scope, ranking.bind))
                input_ = ranking.rows(input_)
                items = [(name, ranking.over(expr)) for name, expr, _ in bound]
        names = unique_names([n for n, _ in items])
        projected = project(input_, [e for _, e in items], names)
        return projected if node.args.get("distinct") is None else self._distinct(node, projected)

    def grouped(
        self, node: exp.Select, input_: Logical, scope: Scope, hidden: Sequence[Expr]
    ) -> tuple[Logical, Grouping, list[tuple[str | None, Expr]]]:
        """GROUP BY, HAVING and the select list over it; problems are reported to the source."""
        grouping = Grouping(scope, len(input_.fields), group_keys(scope, node), hidden)
        binder = ExpressionBinder(scope, grouping.bind)
        bound = self.items(node.expressions, scope, binder)
        having = node.args.get("having")
        condition: Expr | None = None
        if having is not None:
            with self.source.collecting():
                found = binder.condition(having.this, "HAVING")
                condition = grouping.over(found, having.this)
        items: list[tuple[str | None, Expr]] = []
        for name, expr, item in bound:
            with self.source.collecting():
                items.append((name, grouping.over(expr, item)))
        grouped: Logical = grouping.rows(input_, self._position(node.args.get("group") or node))
        return grouped if condition is None else Filter(grouped, condition), grouping, items

    def _distinct(self, node: exp.Select, projected: Logical) -> Logical:
        distinct = node.args["distinct"]
        if others(distinct, set()):
            self.refuse(node, "DISTINCT ON", "number the rows of a subquery with ROW_NUMBER()")
        keys = tuple(all_columns(projected))
        return Aggregate(projected, keys, (), projected.fields, self._position(node))

    def _position(self, node: exp.Expr) -> Position:
        return Position(*self.source.position(start_of(node)))

    def _item(
        self, node: exp.Expr, scope: Scope, binder: ExpressionBinder
    ) -> Iterator[tuple[str | None, Expr]]:
        """The columns that one element of the select list stands for; None is an unnamed one."""
        if isinstance(node, exp.Star):
            self._plain_star(node)
            yield from ((c.name, c) for c in scope.columns_of(None))
        elif isinstance(node, exp.Column) and isinstance(node.this, exp.Star):
            self._plain_star(node.this)
            alias = node.args["table"]
            name = Name(alias.name, start_of(alias))
            yield from ((c.name, c) for c in scope.columns_of(name))
        elif isinstance(node, exp.Alias):
            yield node.alias, binder.bind(node.this)
        else:
            expr = binder.bind(node)
            parts, _ = name_path(node)
            yield (parts[-1].text if parts else None), expr

    def _plain_star(self, node: exp.Expr) -> None:
        if others(node, set()):
            self.refuse(node, "* with EXCEPT, REPLACE or RENAME", "name the columns")

    def unsupported_part(self, node: exp.Expr, part: str) -> PositionedError:
        """The refusal of a clause."""
        value = node.args[part]
        first = value[0] if isinstance(value, list) else value
        start = start_of(first) if isinstance(first, exp.Expr) else 0
        name = _PART_NAMES.get(part, part.rstrip("_").upper())
        error = UnsupportedError(
            "UNSUPPORTED_CLAUSE", f"{name} is not supported", _PART_HINTS.get(part)
        )
        return self.source.place(error, start or start_of(node))

    def only(self, node: exp.Expr, parts: set[str]) -> None:
        """Refuse whatever else stands in a node."""
        for part in others(node, parts):
            raise self.unsupported_part(node, part)

    def refuse(self, node: exp.Expr, what: str, hint: str | None = None) -> NoReturn:
        error = UnsupportedError("UNSUPPORTED_CLAUSE", f"{what} is not supported", hint)
        raise self.source.place(error, start_of(node))
