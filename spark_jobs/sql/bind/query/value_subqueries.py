"""Binds subqueries that are values: in a select list, in CASE, below OR, in any expression.

Each becomes a LEFT JOIN that adds one column and no row: an aggregate has one row per group, and
EXISTS and IN look for one row of each kind. That is how Flink plans them, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import TypeAlias

from sqlglot import exp

from spark_jobs.sql.bind.casts import cast
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.projections import project
from spark_jobs.sql.bind.query.aggregates import Grouping, is_aggregated
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.set_operations import distinct
from spark_jobs.sql.bind.query.subquery_rows import SubqueryRows, counted, rows_of
from spark_jobs.sql.bind.query.version_lookups import refuse_version_lookup
from spark_jobs.sql.bind.scope import Scope, mirrored
from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Field,
    Filter,
    Join,
    Logical,
    column,
)
from spark_jobs.sql.parse.source_text import NotBoundError
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import with_nullable
from spark_jobs.sql.types.expr import Call, Column, Expr, Literal, and_all, columns, transform

_TRUE = Literal(True, with_nullable(data_types.BOOLEAN, False))
_FALSE = Literal(False, with_nullable(data_types.BOOLEAN, False))
_COUNT = with_nullable(data_types.BIGINT, False)

Pair: TypeAlias = tuple[Expr, Expr]
"""What is equal: an expression over the subquery, and one over the query around it."""


@dataclass(slots=True)
class ValueSubqueries:
    """The subqueries of one block's expressions; `rows` gets a column for each.

    Columns of FROM keep their places, and the added ones have no name that SQL could write.
    """

    context: QueryContext
    scope: Scope
    rows: Logical
    grouping: Grouping | None = None
    _values: dict[int, Expr | None] = field(default_factory=dict)

    @classmethod
    def of_groups(
        cls, context: QueryContext, scope: Scope, rows: Logical, grouping: Grouping
    ) -> "ValueSubqueries":
        """Of expressions over groups, such as HAVING; `rows` are the groups."""
        return cls(context, scope, rows, grouping)

    def prepare(self, node: exp.Expr, unknown_is_false: bool = False) -> None:
        """Join the subqueries of an expression, which `special` finds then.

        Problems are reported to the source. `unknown_is_false`: the expression is a condition for
        which NULL does the same as FALSE.
        """
        for found in _outermost(node):
            passes = unknown_is_false and _is_below_connectives(found, node)
            self._values[id(found)] = None
            with self.context.source.collecting():
                self._values[id(found)] = self._bind(found, passes)

    def special(self, node: exp.Expr) -> Expr | None:
        """What stands for a subquery that is prepared.

        Raises:
            NotBoundError: it has a problem, which is reported already.
        """
        found = self._values.get(id(node))
        if found is None and id(node) in self._values:
            raise NotBoundError
        return found

    def _bind(self, node: exp.Expr, unknown_is_false: bool) -> Expr:
        match node:
            case exp.Exists():
                return self._exists(node, rows_of(self.context, self.scope, node.this), ())
            case exp.In():
                return self._in(node, node.args["query"], unknown_is_false)
            case exp.EQ():
                return self._in(node, node.expression.this, unknown_is_false)
            case _:
                return self._scalar(node)

    def _scalar(self, node: exp.Expr) -> Expr:
        """The one value of an aggregate without GROUP BY."""
        select = node.unnest() if isinstance(node, exp.Subquery) else node
        if not isinstance(select, exp.Select) or not is_aggregated(select) or _groups(select):
            refuse_version_lookup(self.context.source, self.context.names, select)
            hint = "use an aggregate without GROUP BY, which is one value, or JOIN"
            self.context.at.refuse(node, "a scalar subquery of several rows", hint)
        rows = rows_of(self.context, self.scope, node)
        if len(rows.items) != 1:
            message = f"a scalar subquery must have one column, found {len(rows.items)}"
            self.context.at.fail("COLUMN_COUNT", message, node)
        input_, pairs = self._correlation(node, rows.input, rows.conditions)
        if any(index < 0 for index in columns(rows.items)):
            hint = "compute with it outside of the subquery"
            self.context.at.refuse(node, "a column of the outer query in what is selected", hint)
        value = self._joined(node, input_, pairs, rows.items[0])
        if rows.without == "zero" or counted(select) is not None:
            zero = cast(Literal(0, _COUNT), value.type)
            return Call("COALESCE", (value, zero), with_nullable(value.type, False))
        return value

    def _exists(self, node: exp.Expr, rows: SubqueryRows, equal: Sequence[Expr]) -> Expr:
        """Whether there is a row with these values; the column is TRUE or NULL."""
        if rows.without != "nothing":
            hint = "add GROUP BY to the subquery, which leaves out the row for no rows"
            self.context.at.refuse(node, "EXISTS or IN with a correlated aggregate", hint)
        input_, pairs = self._correlation(node, rows.input, (*rows.conditions, *equal))
        if not pairs:
            count = self._count(input_, (), (None,), node)
            found = self._joined(node, count, (), Column(0, "COUNT", _COUNT))
            return Call(">", (found, Literal(0, _COUNT)), with_nullable(data_types.BOOLEAN, True))
        keys = [inner for inner, _ in pairs]
        names = [f"EXPR${i}" for i in range(len(keys))]
        kinds = distinct(project(input_, keys, names), self.context.position(node))
        own = [(column(kinds.fields, i), outer) for i, (_, outer) in enumerate(pairs)]
        mark = self._joined(node, kinds, own, _TRUE)
        return Call("IS NOT NULL", (mark,), with_nullable(data_types.BOOLEAN, False))

    def _in(self, node: exp.Expr, query: exp.Expr, unknown_is_false: bool) -> Expr:
        values = node.this.expressions if isinstance(node.this, exp.Tuple) else [node.this]
        self.prepare(node.this)
        rows = rows_of(self.context, self.scope, query)
        if len(values) != len(rows.items):
            message = f"IN compares {len(values)} values with {len(rows.items)} columns"
            self.context.at.fail("COLUMN_COUNT", message, node)
        binder = ExpressionBinder(self.scope, self._special)
        bound = [self._own(binder.bind(value), value) for value in values]
        equal = [
            binder.compared("=", item, mirrored(value), node)
            for value, item in zip(bound, rows.items, strict=True)
        ]
        found = self._exists(node, rows, equal)
        may_be_unknown = any(e.type.nullable for e in (*bound, *rows.items))
        if unknown_is_false or not may_be_unknown:
            return found
        if len(values) > 1:
            hint = "compare single columns, or columns that are NOT NULL"
            self.context.at.refuse(
                node, "(a, b) IN as a value, with columns that may be NULL", hint
            )
        return self._unknown_or(node, rows, bound[0], found)

    def _unknown_or(self, node: exp.Expr, rows: SubqueryRows, value: Expr, found: Expr) -> Expr:
        """IN as a value: NULL where no row is equal, but one or the value itself is NULL."""
        input_, pairs = self._correlation(node, rows.input, rows.conditions)
        keys = [inner for inner, _ in pairs]
        counts = self._count(input_, keys, (None, rows.items[0]), node)
        own = [(column(counts.fields, i), outer) for i, (_, outer) in enumerate(pairs)]
        position, width = self.context.position(node), len(self.rows.fields)
        self.rows = Join(self.rows, counts, "left", _placed(own, width), None, position)
        every = column(self.rows.fields, width + len(keys))
        known = column(self.rows.fields, width + len(keys) + 1)
        some = Call(">", (every, Literal(0, _COUNT)), with_nullable(data_types.BOOLEAN, True))
        gaps = Call("<", (known, every), with_nullable(data_types.BOOLEAN, True))
        missing = Call(
            "IS NULL", (self._over(value, node),), with_nullable(data_types.BOOLEAN, False)
        )
        unknown = Literal(None, data_types.BOOLEAN)
        wanted = Call("AND", (some, Call("OR", (missing, gaps), gaps.type)), gaps.type)
        return Call("CASE", (found, _TRUE, wanted, unknown, _FALSE), data_types.BOOLEAN)

    def _count(
        self,
        rows: Logical,
        keys: Sequence[Expr],
        counted: Sequence[Expr | None],
        node: exp.Expr,
    ) -> Aggregate:
        """COUNT(*), or of an expression that is not NULL, per key."""
        calls = tuple(AggregateCall("COUNT", item, False, None, _COUNT) for item in counted)
        typed = [*(key.type for key in keys), *(call.type for call in calls)]
        fields = tuple(Field(f"EXPR${i}", type_) for i, type_ in enumerate(typed))
        return Aggregate(rows, tuple(keys), calls, fields, self.context.position(node))

    def _joined(
        self,
        node: exp.Expr,
        right: Logical,
        pairs: Sequence[Pair],
        item: Expr,
    ) -> Expr:
        """LEFT JOIN the rows on pairs of an inner and an outer value; the item as it comes out."""
        names = [f"EXPR${i}" for i in range(len(pairs) + 1)]
        given = project(right, [*(inner for inner, _ in pairs), item], names)
        own = [(column(given.fields, i), outer) for i, (_, outer) in enumerate(pairs)]
        position, width = self.context.position(node), len(self.rows.fields)
        self.rows = Join(self.rows, given, "left", _placed(own, width), None, position)
        return column(self.rows.fields, width + len(pairs))

    def _correlation(
        self, node: exp.Expr, rows: Logical, conditions: Sequence[Expr]
    ) -> tuple[Logical, list[Pair]]:
        """The rows that pass what reads no outer column, and both sides of the equalities."""
        own: list[Expr] = []
        pairs: list[Pair] = []
        for condition in conditions:
            found = _sides(condition)
            if all(index >= 0 for index in columns((condition,))):
                own.append(condition)
            elif found is not None:
                pairs.append((found[0], self._over(found[1], node)))
            else:
                hint = "compare columns of the subquery only by = with columns of the outer query"
                what = "a subquery as a value, with another condition than ="
                self.context.at.refuse(node, what, hint)
        local = and_all(own)
        return rows if local is None else Filter(rows, local), pairs

    def _special(self, node: exp.Expr) -> Expr | None:
        found = self.special(node)
        if self.grouping is None:
            return found
        return self.grouping.bind(node) if found is None else self.grouping.value(found)

    def _over(self, expr: Expr, node: exp.Expr) -> Expr:
        """An expression of the block over `rows`."""
        return expr if self.grouping is None else self.grouping.over(expr, node)

    def _own(self, expr: Expr, node: exp.Expr) -> Expr:
        """An expression over this block alone."""
        if any(index < 0 for index in columns((expr,))):
            self.context.refuse(node, "a column of the outer query in a subquery of a subquery")
        return expr


def _placed(pairs: Sequence[Pair], width: int) -> Expr | None:
    """The equalities over a join whose left side has that many columns."""

    def behind(found: Column) -> Column:
        return Column(found.index + width, found.name, found.type)

    def equal(inner: Expr, outer: Expr) -> Expr:
        nullable = inner.type.nullable or outer.type.nullable
        sides = (transform(inner, behind), outer)
        return Call("=", sides, with_nullable(data_types.BOOLEAN, nullable))

    return and_all(equal(inner, outer) for inner, outer in pairs)


def _sides(condition: Expr) -> Pair | None:
    """An expression over the subquery, and one over the query around it, that are equal."""
    if not isinstance(condition, Call) or condition.op != "=":
        return None
    left, right = condition.args
    for inner, outer in ((left, right), (right, left)):
        own, others = columns((inner,)), columns((outer,))
        if min(own, default=0) >= 0 > max(others, default=0):
            return inner, mirrored(outer)
    return None


def _outermost(node: exp.Expr) -> Iterator[exp.Expr]:
    """The subqueries of an expression, not those inside them."""
    for found in node.walk(prune=_is_subquery):
        if _is_subquery(found):
            yield found


def _is_subquery(node: exp.Expr) -> bool:
    if isinstance(node, exp.In):
        return node.args.get("query") is not None
    if isinstance(node, exp.EQ):
        return isinstance(node.expression, exp.Any)
    return isinstance(node, (exp.Exists, exp.Subquery, exp.Select))


def _is_below_connectives(node: exp.Expr, top: exp.Expr) -> bool:
    """Whether only AND, OR and parentheses stand between the top and a node."""
    while node is not top:
        above = node.parent
        if not isinstance(above, (exp.And, exp.Or, exp.Paren)):
            return False
        node = above
    return True


def _groups(select: exp.Select) -> bool:
    return select.args.get("group") is not None
