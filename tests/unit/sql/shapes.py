"""Logical nodes and expressions as short text, in Calcite's notation: `=($0, $3)`."""

from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Deduplicate,
    Filter,
    Join,
    Logical,
    Project,
    RowNumber,
    Scan,
    Sink,
    Union,
    Unnest,
)
from spark_jobs.sql.types.expr import Call, Column, Expr, FieldAccess, Literal


def text(expr: Expr | None) -> str:
    """`=($0, CAST($3 AS BIGINT))`."""
    match expr:
        case None:
            return "TRUE"
        case Column(index=index):
            return f"${index}"
        case Literal(value=value):
            return repr(value)
        case FieldAccess(row=row, field=field):
            return f"{text(row)}.{field}"
        case Call(op="CAST", args=(arg,), type=type_):
            return f"CAST({text(arg)} AS {type_.sql()})"
        case Call(op=op, args=args):
            return f"{op}({', '.join(map(text, args))})"


def shape(node: Logical) -> str:
    """A node and its inputs, `Join(semi, =($0, $3), Scan(A), Scan(B))`."""
    match node:
        case Scan(table=table):
            return f"Scan({table.name})"
        case Filter(input=input_, condition=condition):
            return f"Filter({text(condition)}, {shape(input_)})"
        case Project(input=input_, exprs=exprs):
            return f"Project([{', '.join(map(text, exprs))}], {shape(input_)})"
        case Join():
            as_of = "" if node.as_of is None else f" as of {text(node.as_of)}"
            on = text(node.condition)
            return f"Join({node.kind}{as_of}, {on}, {shape(node.left)}, {shape(node.right)})"
        case Union(inputs=inputs):
            return f"Union({', '.join(map(shape, inputs))})"
        case RowNumber(input=input_, partition=partition, order=order):
            by = ", ".join(f"{i}{' DESC' if descends else ''}" for i, descends, _ in order)
            return f"RowNumber({list(partition)}, [{by}], {shape(input_)})"
        case Deduplicate() | Unnest():
            return f"{type(node).__name__}({_own(node)}, {shape(node.input)})"
        case Aggregate(input=input_, keys=keys, calls=calls):
            listed = f"[{', '.join(map(text, keys))}], [{', '.join(map(_call, calls))}]"
            return f"Aggregate({listed}, {shape(input_)})"
        case Sink(input=input_, table=table):
            return f"Sink({table.name}, {shape(input_)})"


def _own(node: Deduplicate | Unnest) -> str:
    if isinstance(node, Unnest):
        return f"{node.kind}, {text(node.collection)}, {text(node.condition)}"
    return f"{list(node.partition)}, {node.order}, {node.keep}"


def _call(call: AggregateCall) -> str:
    argument = "*" if call.argument is None else text(call.argument)
    distinct = "DISTINCT " if call.distinct else ""
    separator = f", {call.separator!r}" if call.function == "LISTAGG" else ""
    nulls = " RESPECT NULLS" if call.takes_nulls else ""
    where = "" if call.filter is None else f" WHERE {text(call.filter)}"
    return f"{call.function}({distinct}{argument}{separator}){nulls}{where}"
