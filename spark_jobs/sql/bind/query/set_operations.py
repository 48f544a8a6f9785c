"""Binds UNION, INTERSECT and EXCEPT: columns are matched by position and get common types.

INTERSECT and EXCEPT are Flink's semi and anti joins, in which NULL equals NULL. With ALL, equal
rows of both sides are counted, and leave as often as the counts say.
"""

from collections.abc import Iterator, Sequence

from sqlglot import exp

from spark_jobs.sql.bind.casts import cast, comparable
from spark_jobs.sql.bind.projections import project
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Field,
    Join,
    JoinType,
    Logical,
    Position,
    Union,
    Unnest,
    all_columns,
    column,
)
from spark_jobs.sql.parse.positions import others
from spark_jobs.sql.parse.source_text import NotBoundError
from spark_jobs.sql.types.coercion import common_type
from spark_jobs.sql.types.data_types import (
    BIGINT,
    BOOLEAN,
    INT,
    DataType,
    same_type,
    with_nullable,
)
from spark_jobs.sql.types.expr import Call, Expr, Literal, and_all

_PARTS = {"this", "expression", "distinct"}


def bind_set_operation(context: QueryContext, node: exp.SetOperation) -> Logical:
    """The rows of UNION, INTERSECT or EXCEPT, each with or without ALL."""
    kind, is_distinct = _kind(node), bool(node.args.get("distinct"))
    context.only(node, _PARTS)
    name = kind if is_distinct else f"{kind} ALL"
    nodes = _operands(node, is_distinct) if kind == "UNION" else [node.this, node.expression]
    with context.source.all_or_nothing():
        inputs: list[Logical] = []
        for operand in nodes:
            with context.source.collecting():
                inputs.append(context.bind(operand))
    if len(inputs) < len(nodes):
        raise NotBoundError
    fields = _fields(context, name, inputs, nodes)
    rows, position = [_cast(i, fields) for i in inputs], context.position(node)
    if kind == "UNION":
        union = Union(tuple(rows), fields, position)
        return distinct(union, position) if is_distinct else union
    left, right = rows
    join_type: JoinType = "semi" if kind == "INTERSECT" else "anti"
    equal = and_all(_equal(context, left, right, node))
    if not is_distinct:
        return _as_often(kind, left, right, fields, position)
    join = Join(left, right, join_type, equal, None, position)
    return distinct(join, position)


def distinct(rows: Logical, position: Position) -> Aggregate:
    """Each row once, as SELECT DISTINCT gives them."""
    return Aggregate(rows, all_columns(rows), (), rows.fields, position)


def _as_often(
    kind: str, left: Logical, right: Logical, fields: tuple[Field, ...], position: Position
) -> Logical:
    """INTERSECT ALL: as often as in both; EXCEPT ALL: as often as it is more on the left."""
    width, counted = len(fields), with_nullable(BIGINT, False)
    side = Field("side", with_nullable(BOOLEAN, False))
    marked = [
        project(rows, [*all_columns(rows), Literal(is_left, side.type)], _names((*fields, side)))
        for rows, is_left in ((left, True), (right, False))
    ]
    both = Union(tuple(marked), (*fields, side), position)
    is_left = column(both.fields, width)
    calls = tuple(
        AggregateCall("COUNT", None, False, mine, counted)
        for mine in (is_left, Call("NOT", (is_left,), side.type))
    )
    counts = (Field("left_count", counted), Field("right_count", counted))
    keys = all_columns(both)[:width]
    groups = Aggregate(both, keys, calls, (*fields, *counts), position)
    ours, theirs = all_columns(groups)[width:]
    if kind == "INTERSECT":
        fewer = Call("<", (ours, theirs), side.type)
        times: Expr = Call("CASE", (fewer, ours, theirs), counted)
    else:
        times = Call("-", (ours, theirs), counted)
    repeated = Call("REPEAT_ROW", (times,), DataType("ARRAY", False, element=INT))
    copy = (Field("copy", INT),)
    copies = Unnest(groups, repeated, "inner", None, copy, False, position)
    return project(copies, all_columns(copies)[:width], _names(fields))


def _names(fields: Sequence[Field]) -> list[str]:
    return [field.name for field in fields]


def _kind(node: exp.Expr) -> str:
    return type(node).__name__.upper()


def _operands(node: exp.Expr, is_distinct: bool) -> list[exp.Expr]:
    """The queries of nested UNIONs, left to right; copies inside a distinct one do not matter."""
    match node:
        case exp.Union() if (is_distinct or not node.args.get("distinct")) and not others(
            node, _PARTS
        ):
            return [*_operands(node.this, is_distinct), *_operands(node.expression, is_distinct)]
        case exp.Subquery() if not others(node, {"this"}):
            return _operands(node.this, is_distinct)
        case _:
            return [node]


def _equal(context: QueryContext, left: Logical, right: Logical, node: exp.Expr) -> Iterator[Expr]:
    """Each column equal, NULL included, over the fields of a join of both."""
    fields = (*left.fields, *right.fields)
    for i, field in enumerate(left.fields):
        pair = comparable(column(fields, i), column(fields, i + len(left.fields)))
        if pair is None:
            message = f"column {field.name} is {field.type.sql()}, whose values cannot be compared"
            context.at.fail("INCOMPATIBLE_TYPES", message, node, "leave the column out")
        yield Call("IS NOT DISTINCT FROM", pair, with_nullable(BOOLEAN, False))


def _fields(
    context: QueryContext, name: str, inputs: Sequence[Logical], nodes: Sequence[exp.Expr]
) -> tuple[Field, ...]:
    first = inputs[0].fields
    for input_, node in zip(inputs[1:], nodes[1:], strict=True):
        if len(input_.fields) != len(first):
            counts = f"{len(first)} columns, this one {len(input_.fields)}"
            message = f"the first query of {name} has {counts}"
            context.at.fail("COLUMN_COUNT", message, node)
    return tuple(_field(context, name, i, inputs, nodes) for i in range(len(first)))


def _field(
    context: QueryContext,
    operation: str,
    index: int,
    inputs: Sequence[Logical],
    nodes: Sequence[exp.Expr],
) -> Field:
    name, found = inputs[0].fields[index].name, inputs[0].fields[index].type
    for input_, node in zip(inputs[1:], nodes[1:], strict=True):
        type_: DataType = input_.fields[index].type
        merged = common_type(found, type_)
        if merged is None:
            message = f"column {name} of {operation} is {found.sql()}, here it is {type_.sql()}"
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
