"""Binds UNION ALL: columns are matched by position and get their common types."""

from collections.abc import Sequence

from sqlglot import exp

from spark_jobs.sql.bind.casts import cast
from spark_jobs.sql.bind.projections import project
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.logical import Field, Logical, Union, all_columns
from spark_jobs.sql.parse.positions import others
from spark_jobs.sql.parse.source_text import NotBoundError
from spark_jobs.sql.types.coercion import common_type
from spark_jobs.sql.types.data_types import DataType, same_type

_HINTS = {
    "UNION": "write SELECT DISTINCT over UNION ALL",
    "INTERSECT": "write WHERE ... IN or EXISTS",
    "EXCEPT": "write WHERE ... NOT IN or NOT EXISTS",
}


def bind_set_operation(context: QueryContext, node: exp.SetOperation) -> Logical:
    """UNION ALL of any number of queries; every other set operation is refused by name."""
    kind = type(node).__name__.upper()
    if kind != "UNION" or node.args.get("distinct"):
        name = kind if kind == "UNION" or node.args.get("distinct") else f"{kind} ALL"
        context.refuse(node, name, _HINTS[kind])
    for part in others(node, {"this", "expression"}):
        raise context.unsupported_part(node, part)
    nodes = _operands(node)
    with context.source.all_or_nothing():
        inputs: list[Logical] = []
        for operand in nodes:
            with context.source.collecting():
                inputs.append(context.bind(operand))
    if len(inputs) < len(nodes):
        raise NotBoundError
    fields = _fields(context, inputs, nodes)
    return Union(tuple(_cast(i, fields) for i in inputs), fields, context.position(node))


def _operands(node: exp.Expr) -> list[exp.Expr]:
    """The queries of nested UNION ALLs, left to right."""
    match node:
        case exp.Union() if not node.args.get("distinct") and not others(
            node, {"this", "expression"}
        ):
            return [*_operands(node.this), *_operands(node.expression)]
        case exp.Subquery() if not others(node, {"this"}):
            return _operands(node.this)
        case _:
            return [node]


def _fields(
    context: QueryContext, inputs: Sequence[Logical], nodes: Sequence[exp.Expr]
) -> tuple[Field, ...]:
    first = inputs[0].fields
    for input_, node in zip(inputs[1:], nodes[1:], strict=True):
        if len(input_.fields) != len(first):
            counts = f"{len(first)} columns, this one {len(input_.fields)}"
            message = f"the first query of UNION ALL has {counts}"
            context.at.fail("COLUMN_COUNT", message, node)
    return tuple(_field(context, i, inputs, nodes) for i in range(len(first)))


def _field(
    context: QueryContext, index: int, inputs: Sequence[Logical], nodes: Sequence[exp.Expr]
) -> Field:
    name, found = inputs[0].fields[index].name, inputs[0].fields[index].type
    for input_, node in zip(inputs[1:], nodes[1:], strict=True):
        type_: DataType = input_.fields[index].type
        merged = common_type(found, type_)
        if merged is None:
            message = f"column {name} of UNION ALL is {found.sql()}, here it is {type_.sql()}"
            hint = "CAST one to the type of the other"
            context.at.fail("INCOMPATIBLE_TYPES", message, node, hint)
        found = merged
    times = {i.fields[index].time for i in inputs}
    return Field(name, found, times.pop() if len(times) == 1 else None)


def _cast(input_: Logical, fields: tuple[Field, ...]) -> Logical:
    if all(same_type(f.type, g.type) for f, g in zip(input_.fields, fields, strict=True)):
        return input_
    exprs = [cast(c, f.type) for c, f in zip(all_columns(input_), fields, strict=True)]
    return project(input_, exprs, [f.name for f in fields])
