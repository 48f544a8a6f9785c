"""Binds GROUP BY, HAVING and aggregate functions: an Aggregate, and expressions over it."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.projections import project, time_of, unique_names
from spark_jobs.sql.bind.query.aggregate_calls import IN_ORDER, CallBinder, written_call
from spark_jobs.sql.bind.query.grouping_sets import Groups
from spark_jobs.sql.bind.scope import Scope
from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Field,
    Logical,
    Position,
    Project,
    Union,
    column,
)
from spark_jobs.sql.parse.positions import Complaint
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Call, Column, Expr, FieldAccess, Literal
from spark_jobs.sql.types.functions import GROUP_FUNCTIONS

_GROUPING = ("GROUPING", "GROUPING_ID")
# what makes a call that of an aggregate function
_AROUND = (exp.Filter, exp.WithinGroup, exp.IgnoreNulls, exp.RespectNulls)
_MARK = with_nullable(data_types.BIGINT, False)
_MARKS, _VALUES = 1_000_000, 2_000_000  # where they begin, behind any number of calls


def is_aggregated(node: exp.Select) -> bool:
    """Whether a query block makes groups of its rows."""
    if node.args.get("group") is not None or node.args.get("having") is not None:
        return True
    return any(_has_call(item) for item in node.expressions)


@dataclass(slots=True)
class Grouping:
    """The aggregate functions of one query block and its keys.

    `hidden` keys are no keys to the select list: a subquery has them for the query around it.
    `marks` are the places of keys that a GROUPING(...) asks for. While expressions are bound, call
    i is the column behind the input's, at `width + i`; marks and the values of subqueries are
    columns far behind. `over` turns them into expressions over the groups.
    """

    scope: Scope
    width: int
    groups: Groups
    hidden: Sequence[Expr] = ()
    calls: list[AggregateCall] = field(default_factory=list)
    marks: list[tuple[int, ...]] = field(default_factory=list)
    values: list[Expr] = field(default_factory=list)

    @property
    def keys(self) -> Sequence[Expr]:
        return self.groups.keys

    def bind(self, node: exp.Expr) -> Expr | None:
        """The column that stands for an aggregate function; None for any other expression."""
        if isinstance(node, exp.Window):
            hint = "number the rows of a subquery in FROM that groups"
            Complaint(self.scope.source).refuse(node, "OVER beside aggregates", hint)
        if isinstance(node, exp.WithinGroup):
            Complaint(self.scope.source).refuse(node, "WITHIN GROUP", IN_ORDER)
        call = written_call(node)
        if call is None:
            return None
        if call.name in _GROUPING:
            return self._mark(call.node)
        if call.function is None:
            return None
        found = CallBinder(self.scope, self.groups.has_empty).bind(call, call.function)
        if found not in self.calls:
            self.calls.append(found)
        return Column(self.width + self.calls.index(found), call.name, found.type)

    def bind_calls(self, node: exp.Expr) -> None:
        """Bind the functions of an expression, so that `rows` has all of them."""
        for found in _calls(node):
            with self.scope.source.collecting():
                self.bind(found)

    def value(self, expr: Expr) -> Column:
        """What stands for an expression over the groups, as long as others are bound."""
        self.values.append(expr)
        return Column(self.width + _VALUES + len(self.values) - 1, "EXPR", expr.type)

    def _mark(self, node: exp.Expr) -> Expr:
        """GROUPING(a, b): a bit for each key, the first one the highest; 1 where it is left out."""
        binder = ExpressionBinder(self.scope)
        places: list[int] = []
        for argument in node.expressions:
            key = binder.bind(argument)
            if key not in self.keys:
                problem = f"{node.name.upper()} takes what GROUP BY names"
                binder.at.fail("NOT_GROUPED", problem, argument)
            places.append(self.keys.index(key))
        if not places:
            binder.at.fail("WRONG_ARGUMENT", f"{node.name.upper()} needs an argument", node)
        if tuple(places) not in self.marks:
            self.marks.append(tuple(places))
        index = self.width + _MARKS + self.marks.index(tuple(places))
        return Column(index, node.name.upper(), _MARK)

    def rows(self, input_: Logical, position: Position) -> Logical:
        """The groups: keys, calls, marks."""
        if self.groups.is_plain and not self.marks:
            return self._aggregate(input_, position)
        branches = [self._branch(input_, own, position) for own in self.groups.sets]
        fields = tuple(
            Field(f.name, self._type_at(i, f), None if self._is_lacking(i) else f.time)
            for i, f in enumerate(branches[0].fields)
        )
        return branches[0] if len(branches) == 1 else Union(tuple(branches), fields, position)

    def _branch(self, input_: Logical, own: frozenset[int], position: Position) -> Project:
        """The groups of one set; keys that it lacks are NULL."""
        places = sorted(own)
        groups = Groups(tuple(self.keys[i] for i in places), (frozenset(range(len(places))),))
        rows = replace(self, groups=groups, hidden=(), marks=[])._aggregate(input_, position)
        values: list[Expr] = [
            column(rows.fields, places.index(i))
            if i in own
            else Literal(None, self.groups.type_of(i))
            for i in range(len(self.keys))
        ]
        values += [column(rows.fields, len(places) + i) for i in range(len(self.calls))]
        values += [Literal(_bits(mark, own), _MARK) for mark in self.marks]
        named = [k.name if isinstance(k, Column) else None for k in self.keys]
        rest = [None] * (len(self.calls) + len(self.marks))
        return project(rows, values, unique_names([*named, *rest]))

    def _type_at(self, place: int, field_: Field) -> DataType:
        return self.groups.type_of(place) if place < len(self.keys) else field_.type

    def _is_lacking(self, place: int) -> bool:
        return place < len(self.keys) and self.groups.is_lacking(place)

    def _aggregate(self, input_: Logical, position: Position) -> Aggregate:
        known = self._all_keys()
        named = [k.name if isinstance(k, Column) else None for k in known]
        names = unique_names([*named, *(None for _ in self.calls)])
        keys = [Field(n, k.type, time_of(k, input_)) for n, k in zip(names, known, strict=False)]
        calls = zip(names[len(keys) :], self.calls, strict=True)
        fields = (*keys, *(Field(n, c.type) for n, c in calls))
        return Aggregate(input_, tuple(known), tuple(self.calls), fields, position)

    def key(self, expr: Expr) -> Column:
        """A key, hidden or not, as a column of the Aggregate."""
        index = self._all_keys().index(expr)
        type_ = self.groups.type_of(index) if index < len(self.keys) else expr.type
        return Column(index, expr.name if isinstance(expr, Column) else f"EXPR${index}", type_)

    def call(self, column: Column) -> AggregateCall:
        """The call that a column of the Aggregate is."""
        return self.calls[column.index - len(self._all_keys())]

    def _all_keys(self) -> list[Expr]:
        return [*self.keys, *(h for i, h in enumerate(self.hidden) if self._is_new(h, i))]

    def _is_new(self, hidden: Expr, at: int) -> bool:
        return hidden not in self.keys and hidden not in self.hidden[:at]

    def over(self, expr: Expr, node: exp.Expr) -> Expr:
        """The expression over keys and calls.

        Raises:
            SqlError: it reads a column that is neither.
        """
        if expr in self.keys:
            return self.key(expr)
        match expr:
            case Column(index=index) if index >= self.width + _VALUES:
                return self.values[index - self.width - _VALUES]
            case Column(index=index) if index >= self.width + _MARKS:
                before = len(self._all_keys()) + len(self.calls)
                return replace(expr, index=index - self.width - _MARKS + before)
            case Column(index=index) if index >= self.width:
                return replace(expr, index=index - self.width + len(self._all_keys()))
            case Column(name=name):
                problem = f"{name} is neither in GROUP BY nor inside an aggregate function"
                hint = f"add {name} to GROUP BY"
                Complaint(self.scope.source).fail("NOT_GROUPED", problem, node, hint)
            case Call(args=args):
                return replace(expr, args=tuple(self.over(a, node) for a in args))
            case FieldAccess(row=row):
                return replace(expr, row=self.over(row, node))
            case Literal():
                return expr


def _bits(mark: Sequence[int], own: frozenset[int]) -> int:
    """Of the keys of a mark those that a set lacks, as the digits of a binary number."""
    return int("".join("0" if place in own else "1" for place in mark), 2)


def _has_call(node: exp.Expr) -> bool:
    """Whether an aggregate function stands in an expression, not counting its subqueries."""
    return any(isinstance(n, _AROUND) or _name(n) in GROUP_FUNCTIONS for n in _calls(node))


def _calls(node: exp.Expr) -> Iterator[exp.Expr]:
    """Aggregate functions with what stands behind them, and GROUPING; not those of subqueries."""

    def is_call(found: exp.Expr) -> bool:
        return isinstance(found, _AROUND) or _name(found) in (*GROUP_FUNCTIONS, *_GROUPING)

    stops = (exp.Window, exp.Query)
    for found in node.walk(prune=lambda n: isinstance(n, stops) or is_call(n)):
        if not isinstance(found, stops) and is_call(found):
            yield found


def _name(node: exp.Expr) -> str:
    return node.name.upper() if isinstance(node, exp.Anonymous) else ""
