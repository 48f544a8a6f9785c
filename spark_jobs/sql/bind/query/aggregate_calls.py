"""Binds one call of an aggregate function: its arguments, its FILTER and Flink's result type."""

from dataclasses import dataclass
from typing import TypeAlias

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.scope import Scope
from spark_jobs.sql.logical import AggregateCall
from spark_jobs.sql.parse.positions import Complaint
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Expr, Literal
from spark_jobs.sql.types.functions import GROUP_FUNCTIONS, VARIANCES, AggregateFunction

NullTreatment: TypeAlias = exp.IgnoreNulls | exp.RespectNulls

IN_ORDER = "leave it out: values stand in the order in which they came; ARRAY_SORT sorts an array"

_COMPARABLE = ("STRING", "BOOLEAN", *data_types.NUMERIC, *data_types.DATETIMES)
_ARGUMENTS: dict[AggregateFunction, tuple[str, ...]] = {
    "SUM": data_types.NUMERIC,
    "AVG": data_types.NUMERIC,
    "MIN": _COMPARABLE,
    "MAX": _COMPARABLE,
    "LISTAGG": ("STRING",),
    **dict.fromkeys(VARIANCES, data_types.NUMERIC),
}
_AVG_SCALE = 6
# a copy changes neither the least nor the greatest value
_SAME_WITH_COPIES = ("MIN", "MAX")
# in Flink's type; a variance may be NULL although there are values
_ALWAYS_NULLABLE = (*VARIANCES, "FIRST_VALUE", "LAST_VALUE")


@dataclass(frozen=True, slots=True)
class WrittenCall:
    """`name([DISTINCT] arguments [IGNORE NULLS]) [FILTER (WHERE condition)]`, taken apart."""

    node: exp.Anonymous
    name: str
    arguments: tuple[exp.Expr, ...]
    distinct: bool
    nulls: NullTreatment | None
    condition: exp.Expr | None

    @property
    def function(self) -> AggregateFunction | None:
        return GROUP_FUNCTIONS.get(self.name)


def written_call(node: exp.Expr) -> WrittenCall | None:
    """A call with what stands behind it; None for any other expression."""
    call, nulls = _null_treatment(node)
    condition = None
    if isinstance(call, exp.Filter):
        call, condition = call.this, call.expression.this
    if not isinstance(call, exp.Anonymous):
        return None
    arguments = tuple(call.expressions)
    if len(arguments) == 1 and nulls is None:
        inner, nulls = _null_treatment(arguments[0])
        arguments = (inner,)
    distinct = len(arguments) == 1 and isinstance(arguments[0], exp.Distinct)
    if distinct:
        arguments = tuple(arguments[0].expressions)
    return WrittenCall(call, call.name.upper(), arguments, distinct, nulls, condition)


def _null_treatment(node: exp.Expr) -> tuple[exp.Expr, NullTreatment | None]:
    """What IGNORE NULLS or RESPECT NULLS stands behind: a call, or the argument inside it."""
    return (node.this, node) if isinstance(node, NullTreatment) else (node, None)


@dataclass(frozen=True, slots=True)
class CallBinder:
    """Binds calls over the rows of `scope`; `may_be_empty`: a group may have no row."""

    scope: Scope
    may_be_empty: bool

    @property
    def at(self) -> Complaint:
        return Complaint(self.scope.source)

    def bind(self, call: WrittenCall, function: AggregateFunction) -> AggregateCall:
        binder = ExpressionBinder(self.scope)
        first, separator = self._arguments(call, function, binder)
        if isinstance(first, exp.Order):
            self.at.refuse(first, f"ORDER BY in {function}", IN_ORDER)
        if call.nulls is not None and function != "ARRAY_AGG":
            hint = "leave it out: NULL is a value to ARRAY_AGG alone"
            self.at.refuse(call.node, f"IGNORE NULLS or RESPECT NULLS of {function}", hint)
        argument = None
        if not isinstance(first, exp.Star):
            argument = binder.bind(first)
        elif function != "COUNT" or call.distinct:
            self.at.fail("WRONG_ARGUMENT", f"{function} does not take *", call.node)
        allowed = _ARGUMENTS.get(function)
        if argument is not None and allowed and argument.type.name not in allowed:
            error = f"{function} does not take {argument.type.sql()}"
            self.at.fail("WRONG_ARGUMENT", error, call.node)
        keep = None if call.condition is None else binder.condition(call.condition, "FILTER")
        return AggregateCall(
            function,
            argument,
            call.distinct and function not in _SAME_WITH_COPIES,
            keep,
            self._type(function, argument, keep is not None),
            takes_nulls=_takes_nulls(call, argument, function),
            separator=separator,
        )

    def _arguments(
        self, call: WrittenCall, function: AggregateFunction, binder: ExpressionBinder
    ) -> tuple[exp.Expr, str]:
        """The one argument, and the separator of LISTAGG."""
        if function == "LISTAGG" and len(call.arguments) == 2:
            return call.arguments[0], self._separator(call.arguments[1], binder)
        if len(call.arguments) != 1:
            count = "one or two arguments" if function == "LISTAGG" else "one argument"
            error = f"{function} takes {count}, not {len(call.arguments)}"
            self.at.fail("WRONG_ARGUMENT", error, call.node)
        return call.arguments[0], "," if function == "LISTAGG" else ""

    def _separator(self, node: exp.Expr, binder: ExpressionBinder) -> str:
        found = binder.bind(node)
        value = found.value if isinstance(found, Literal) else None
        if not isinstance(value, str) or found.type.name != "STRING":
            self.at.fail("WRONG_ARGUMENT", "the separator of LISTAGG must be a constant text", node)
        return value

    def _type(self, function: AggregateFunction, argument: Expr | None, filtered: bool) -> DataType:
        """Flink's result types; without keys or with FILTER there may be no row to take."""
        if function == "COUNT" or argument is None:
            return with_nullable(data_types.BIGINT, False)
        found = argument.type
        if found.name == "DECIMAL" and function == "SUM":
            found = data_types.decimal(data_types.MAX_DECIMAL, found.scale or 0)
        if found.name == "DECIMAL" and (function == "AVG" or function in VARIANCES):
            found = data_types.decimal(data_types.MAX_DECIMAL, max(found.scale or 0, _AVG_SCALE))
        if function == "ARRAY_AGG":
            found = DataType("ARRAY", element=found)
        nullable = argument.type.nullable or function in _ALWAYS_NULLABLE
        return with_nullable(found, nullable or filtered or self.may_be_empty)


def _takes_nulls(call: WrittenCall, argument: Expr | None, function: str) -> bool:
    """Whether NULLs are elements of an array; where none can come they cost nothing."""
    if function != "ARRAY_AGG" or argument is None or isinstance(call.nulls, exp.IgnoreNulls):
        return False
    return argument.type.nullable
