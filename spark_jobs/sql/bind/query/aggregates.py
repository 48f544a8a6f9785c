"""Binds GROUP BY, HAVING and aggregate functions: an Aggregate, and expressions over it."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from sqlglot import exp

from spark_jobs.errors import SqlError
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.projections import time_of, unique_names
from spark_jobs.sql.bind.scope import Scope
from spark_jobs.sql.logical import Aggregate, AggregateCall, Field, Logical, Position
from spark_jobs.sql.parse.positions import Complaint, others, start_of
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Call, Column, Expr, FieldAccess, Literal
from spark_jobs.sql.types.functions import GROUP_FUNCTIONS, AggregateFunction

_COMPARABLE = ("STRING", "BOOLEAN", *data_types.NUMERIC, *data_types.DATETIMES)
_ARGUMENTS: dict[AggregateFunction, tuple[str, ...]] = {
    "SUM": data_types.NUMERIC,
    "AVG": data_types.NUMERIC,
    "MIN": _COMPARABLE,
    "MAX": _COMPARABLE,
}
_AVG_SCALE = 6


def is_aggregated(node: exp.Select) -> bool:
    """Whether a query block makes groups of its rows."""
    if node.args.get("group") is not None or node.args.get("having") is not None:
        return True
    return any(_has_call(item) for item in node.expressions)


def group_keys(scope: Scope, node: exp.Select) -> list[Expr]:
    """What GROUP BY names, each once.

    Raises:
        NotBoundError: problems, which are reported to the source.
    """
    group = node.args.get("group")
    keys: list[Expr] = []
    with scope.source.all_or_nothing():
        for item in () if group is None else _grouping(scope, node, group):
            with scope.source.collecting():
                if isinstance(item, exp.Literal):
                    message = f"GROUP BY {item.this} groups by a constant"
                    hint = "write the column: its place in the select list has no meaning here"
                    error = SqlError("NOT_GROUPED", message, hint)
                    raise scope.source.place(error, start_of(item) or start_of(node))
                key = ExpressionBinder(scope).bind(item)
                keys += [] if key in keys else [key]
    return keys


def _grouping(scope: Scope, node: exp.Select, group: exp.Expr) -> list[exp.Expr]:
    at = Complaint(scope.source)
    for part in others(group, {"expressions"}):
        what = f"GROUP BY with {part.replace('_', ' ').upper()}"
        at.refuse(group if start_of(group) else node, what, "name the columns, in one query each")
    found: list[exp.Expr] = []
    for item in group.expressions:
        if isinstance(item, (exp.GroupingSets, exp.Cube, exp.Rollup)):
            is_sets = isinstance(item, exp.GroupingSets)
            name = "GROUPING SETS" if is_sets else type(item).__name__.upper()
            at.refuse(item, name, "write one query each")
        if isinstance(item, exp.Tuple):
            found += item.expressions
        else:
            found.append(item)
    return found


@dataclass(slots=True)
class Grouping:
    """The aggregate functions of one query block and its keys.

    `hidden` keys are no keys to the select list: a subquery has them for the query around it.
    While expressions are bound, call i is the column behind the input's, at `width + i`; `over`
    turns them into expressions over the Aggregate.
    """

    scope: Scope
    width: int
    keys: Sequence[Expr]
    hidden: Sequence[Expr] = ()
    calls: list[AggregateCall] = field(default_factory=list)

    def bind(self, node: exp.Expr) -> Expr | None:
        """The column that stands for an aggregate function; None for any other expression."""
        condition: exp.Expr | None = None
        call = node
        if isinstance(node, exp.Filter):
            call, condition = node.this, node.expression.this
        if isinstance(node, exp.Window):
            hint = "number the rows of a subquery in FROM that groups"
            Complaint(self.scope.source).refuse(node, "OVER beside aggregates", hint)
        if not isinstance(call, exp.Anonymous):
            return None
        function = GROUP_FUNCTIONS.get(call.name.upper())
        if function is None:
            return None
        found = self._call(function, call, condition)
        if found not in self.calls:
            self.calls.append(found)
        return Column(self.width + self.calls.index(found), call.name.upper(), found.type)

    def _call(
        self, function: AggregateFunction, node: exp.Expr, condition: exp.Expr | None
    ) -> AggregateCall:
        binder = ExpressionBinder(self.scope)
        arguments = list(node.expressions)
        distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
        if distinct:
            arguments = list(arguments[0].expressions)
        if len(arguments) != 1:
            error = f"{function} takes one argument, not {len(arguments)}"
            binder.at.fail("WRONG_ARGUMENT", error, node)
        argument = None
        if not isinstance(arguments[0], exp.Star):
            argument = binder.bind(arguments[0])
        elif function != "COUNT" or distinct:
            binder.at.fail("WRONG_ARGUMENT", f"{function} does not take *", node)
        allowed = _ARGUMENTS.get(function)
        if argument is not None and allowed and argument.type.name not in allowed:
            error = f"{function} does not take {argument.type.sql()}"
            binder.at.fail("WRONG_ARGUMENT", error, node)
        filter_ = None if condition is None else binder.condition(condition, "FILTER")
        # a copy changes neither the least nor the greatest value
        counted = distinct and function not in ("MIN", "MAX")
        type_ = self._type(function, argument, filter_ is not None)
        return AggregateCall(function, argument, counted, filter_, type_)

    def _type(self, function: AggregateFunction, argument: Expr | None, filtered: bool) -> DataType:
        """Flink's result types; without keys or with FILTER there may be no row to take."""
        if function == "COUNT" or argument is None:
            return with_nullable(data_types.BIGINT, False)
        found = argument.type
        if found.name == "DECIMAL" and function == "SUM":
            found = data_types.decimal(data_types.MAX_DECIMAL, found.scale or 0)
        if found.name == "DECIMAL" and function == "AVG":
            found = data_types.decimal(data_types.MAX_DECIMAL, max(found.scale or 0, _AVG_SCALE))
        return with_nullable(found, argument.type.nullable or filtered or not self.keys)

    def rows(self, input_: Logical, position: Position) -> Aggregate:
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
        return Column(index, expr.name if isinstance(expr, Column) else f"EXPR${index}", expr.type)

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


def _has_call(node: exp.Expr) -> bool:
    """Whether an aggregate function stands in an expression, not counting its subqueries."""
    for found in node.walk(prune=lambda n: isinstance(n, (exp.Window, exp.Query))):
        if isinstance(found, exp.Anonymous) and found.name.upper() in GROUP_FUNCTIONS:
            return True
    return False
