"""Binds subqueries that are values: in a select list, in CASE, below OR, in any expression.

Each becomes a LEFT JOIN that adds one column and no row: an aggregate has one row per group, and
EXISTS and IN look for one row of each kind. That is how Flink plans them, too.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.projections import project
from spark_jobs.sql.bind.query.aggregates import Grouping
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.set_operations import distinct
from spark_jobs.sql.bind.query.subquery.outer_values import with_outer_values
from spark_jobs.sql.bind.query.subquery.subquery_rows import (
    Pair,
    SubqueryRows,
    counted,
    is_one_row,
    or_zero,
    own_items,
    rows_of,
)
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
_NULL_SAFE = "IS NOT DISTINCT FROM"


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
        """The value of a query of one row: NULL where it has none."""
        select = node.unnest() if isinstance(node, exp.Subquery) else node
        if not isinstance(select, exp.Select) or not is_one_row(select):
            refuse_version_lookup(self.context.source, self.context.names, select)
            hint = "use an aggregate without GROUP BY, which is one value, LIMIT 1, or JOIN"
            self.context.at.refuse(node, "a scalar subquery of several rows", hint)
        rows = rows_of(self.context, self.scope, node, self._outer)
        if len(rows.items) != 1:
            message = f"a scalar subquery must have one column, found {len(rows.items)}"
            self.context.at.fail("COLUMN_COUNT", message, node)
        input_, pairs, _ = self._correlation(node, rows.input, rows.conditions)
        item = rows.items[0]
        if select.args.get("from_") is None and not rows.conditions and _reads_outside(item):
            return self._over(mirrored(item), node)
        own_items(self.context, node, rows.items)
        if rows.without == "nothing":
            [value] = self._joined(node, input_, pairs, [item])
            return or_zero(value) if counted(select) is not None else value
        read = sorted(columns(rows.items))
        found = self._joined(node, input_, pairs, [column(input_.fields, i) for i in read])
        values = [or_zero(v) if i in rows.counts else v for i, v in zip(read, found, strict=True)]
        return transform(item, lambda c: values[read.index(c.index)])

    def _exists(self, node: exp.Expr, rows: SubqueryRows, equal: Sequence[Expr]) -> Expr:
        """Whether there is a row with these values; the column is TRUE or NULL."""
        if rows.without != "nothing":
            hint = "add GROUP BY to the subquery, which leaves out the row for no rows"
            self.context.at.refuse(node, "EXISTS or IN with a correlated aggregate", hint)
        input_, pairs, _ = self._correlation(node, rows.input, (*rows.conditions, *equal))
        if not pairs:
            count = self._count(input_, (), (None,), node)
            [found] = self._joined(node, count, (), [Column(0, "COUNT", _COUNT)])
            return Call(">", (found, Literal(0, _COUNT)), with_nullable(data_types.BOOLEAN, True))
        keys = [pair.inner for pair in pairs]
        names = [f"EXPR${i}" for i in range(len(keys))]
        kinds = distinct(project(input_, keys, names), self.context.position(node))
        own = [pair._replace(inner=column(kinds.fields, i)) for i, pair in enumerate(pairs)]
        [mark] = self._joined(node, kinds, own, [_TRUE])
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
        input_, pairs, by = self._correlation(node, rows.input, rows.conditions)
        keys = [pair.inner for pair in pairs]
        item = transform(rows.items[0], lambda c: replace(c, index=c.index + by))
        counts = self._count(input_, keys, (None, item), node)
        own = [pair._replace(inner=column(counts.fields, i)) for i, pair in enumerate(pairs)]
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
        items: Sequence[Expr],
    ) -> list[Expr]:
        """LEFT JOIN the rows on pairs of an inner and an outer value; the items as they come."""
        names = [f"EXPR${i}" for i in range(len(pairs) + len(items))]
        given = project(right, [*(pair.inner for pair in pairs), *items], names)
        own = [pair._replace(inner=column(given.fields, i)) for i, pair in enumerate(pairs)]
        position, width = self.context.position(node), len(self.rows.fields)
        self.rows = Join(self.rows, given, "left", _placed(own, width), None, position)
        first = width + len(pairs)
        return [column(self.rows.fields, first + i) for i in range(len(items))]

    def _correlation(
        self, node: exp.Expr, rows: Logical, conditions: Sequence[Expr]
    ) -> tuple[Logical, list[Pair], int]:
        """The rows that pass what reads no outer column, and both sides of the equalities.

        The last is how much further behind the columns of the rows stand. The outer sides are over
        `rows` of this block.
        """
        outside = [c for c in conditions if any(index < 0 for index in columns((c,)))]
        local = and_all(c for c in conditions if c not in outside)
        rows = rows if local is None else Filter(rows, local)
        sides = [_sides(condition) for condition in outside]
        if all(sides):
            own = [p._replace(outer=self._over(p.outer, node)) for p in sides if p is not None]
            return rows, own, 0
        if self._outer is None:
            hint = "compare columns of the subquery only by = with columns of the outer query"
            what = "a subquery of groups, with another condition than ="
            self.context.at.refuse(node, what, hint)
        joined, values = with_outer_values(self.context, node, self._outer, rows, outside)
        equal = [
            Pair(column(joined.fields, i), value, _NULL_SAFE) for i, value in enumerate(values)
        ]
        return joined, equal, len(values)

    @property
    def _outer(self) -> Logical | None:
        """The rows whose first columns are those of the scope; the rows of groups have others."""
        return self.rows if self.grouping is None else None

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
    """The pairs as one condition of a join: the left side has `width` columns, the right one is
    the subquery.
    """

    def behind(found: Column) -> Column:
        return Column(found.index + width, found.name, found.type)

    def equal(pair: Pair) -> Expr:
        sides = (transform(pair.inner, behind), pair.outer)
        unknown = pair.op == "=" and any(side.type.nullable for side in sides)
        return Call(pair.op, sides, with_nullable(data_types.BOOLEAN, unknown))

    return and_all(map(equal, pairs))


def _sides(condition: Expr) -> Pair | None:
    """An expression over the subquery, and one over the query around it, that are equal."""
    if not isinstance(condition, Call) or condition.op not in ("=", _NULL_SAFE):
        return None
    left, right = condition.args
    for inner, outer in ((left, right), (right, left)):
        own, others = columns((inner,)), columns((outer,))
        if min(own, default=0) >= 0 > max(others, default=0):
            return Pair(inner, mirrored(outer), condition.op)
    return None


def _reads_outside(item: Expr) -> bool:
    """Whether an item reads columns of the outer query and no others."""
    read = columns((item,))
    return bool(read) and max(read) < 0


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
