"""Expressions in Calcite's prefix form, over positions (`$0`) or names."""

from collections.abc import Callable, Sequence
from typing import assert_never

from spark_jobs.plan.strategy.join_sides import unique_names
from spark_jobs.sql.logical import AggregateCall, Field, Join, Logical
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Call, Column, Expr, FieldAccess, Literal

Refer = Callable[[Column], str]


def expr_text(expr: Expr, refer: Refer) -> str:
    """Calcite's prefix text of an expression."""
    match expr:
        case Column():
            return refer(expr)
        case Literal():
            return literal_text(expr)
        case FieldAccess(row=row, field=field):
            return f"{expr_text(row, refer)}.{field}"
        case Call(op="CAST", args=(arg,)):
            return f"CAST({expr_text(arg, refer)} AS {_type_text(expr.type)})"
        case Call(op=op, args=args):
            return f"{op}({', '.join(expr_text(a, refer) for a in args)})"
        case _:
            assert_never(expr)


def literal_text(literal: Literal) -> str:
    """A constant, with its type where the text alone does not show it."""
    match literal.value, literal.type:
        case None, _:
            return "null"
        case bool() as value, _:
            return "true" if value else "false"
        case bytes() as value, _:
            return f"X'{value.hex()}'"
        case value, DataType(name="INTERVAL_DAY"):
            return f"{value}:INTERVAL SECOND"
        case value, DataType(name="INTERVAL_YEAR"):
            return f"{value}:INTERVAL MONTH"
        case str() as value, type_:
            quoted = "'" + value.replace("'", "''") + "'"
            return quoted if type_.name == "STRING" else f"{quoted}:{_type_text(type_)}"
        case value, _:
            return str(value)


def _type_text(type_: DataType) -> str:
    return with_nullable(type_, True).sql()


def call_text(call: AggregateCall, refer: Refer, *, retract: bool = False) -> str:
    """An aggregate call; Flink names the form that also takes rows back."""
    argument = "" if call.argument is None else expr_text(call.argument, refer)
    distinct = "DISTINCT " if call.distinct else ""
    separator = f", '{call.separator}'" if call.function == "LISTAGG" else ""
    only = "" if call.filter is None else f" FILTER {expr_text(call.filter, refer)}"
    name = f"{call.function}{'_RETRACT' if retract else ''}"
    return f"{name}({distinct}{argument}{separator}){only}"


def by_name(names: Sequence[str]) -> Refer:
    return lambda column: names[column.index]


def by_position(column: Column) -> str:
    return f"${column.index}"


def field_names(node: Logical) -> tuple[str, ...]:
    """The names of a node's fields, made different as Calcite does."""
    return names_of(node.fields)


def joined_names(join: Join) -> tuple[str, ...]:
    """The names of both inputs' fields, over which a join's condition is."""
    return names_of((*join.left.fields, *join.right.fields))


def names_of(fields: Sequence[Field]) -> tuple[str, ...]:
    return unique_names([f.name for f in fields])
