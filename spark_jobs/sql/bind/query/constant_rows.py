"""Binds rows that no table has: VALUES, and SELECT without FROM."""

from collections.abc import Sequence

from sqlglot import exp

from spark_jobs.sql.bind.casts import unified
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.projections import project
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.scope import Scope
from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Field,
    Logical,
    NoRows,
    Position,
    Unnest,
    all_columns,
)
from spark_jobs.sql.parse.dialect import CONSTRUCTORS
from spark_jobs.sql.types.data_types import BIGINT, BOOLEAN, DataType, RowField, with_nullable
from spark_jobs.sql.types.expr import Call, Expr

_COUNT = with_nullable(BIGINT, False)


def one_row(position: Position) -> Logical:
    """A table of one row, whose only column is of no interest."""
    nothing = NoRows((Field("NOTHING", BOOLEAN),), position)
    count = AggregateCall("COUNT", None, False, None, _COUNT)
    return Aggregate(nothing, (), (count,), (Field("EXPR$0", _COUNT),), position)


def bind_values(context: QueryContext, node: exp.Values) -> Logical:
    """The rows of VALUES; each column has the common type of its values.

    Raises:
        PositionedError: rows of different lengths, values without a common type.
    """
    context.only(node, {"expressions", "alias"})
    binder = ExpressionBinder(Scope(context.source, ()))
    written = [_items(row) for row in node.expressions]
    for row, items in zip(node.expressions, written, strict=True):
        if len(items) != len(written[0]):
            counts = f"{len(written[0])} values, this one {len(items)}"
            message = f"the first row of VALUES has {counts}"
            context.at.fail("COLUMN_COUNT", message, row)
    columns = [
        _column(context, node, place, [binder.bind(items[place]) for items in written])
        for place in range(len(written[0]))
    ]
    rows = list(zip(*columns, strict=True))
    names = [f"EXPR${i}" for i in range(len(columns))]
    position = context.position(node)
    if len(rows) == 1:
        return project(one_row(position), rows[0], names)
    spread = spread_out(one_row(position), rows, names, position)
    return project(spread, all_columns(spread)[1:], names)


def spread_out(
    input_: Logical, rows: Sequence[Sequence[Expr]], names: Sequence[str], position: Position
) -> Unnest:
    """Each row of the input with each of the constant rows."""
    columns = zip(names, zip(*rows, strict=True), strict=True)
    elements = tuple(
        Field(name, with_nullable(values[0].type, any(v.type.nullable for v in values)))
        for name, values in columns
    )
    return Unnest(input_, row_array(rows, elements), "inner", None, elements, False, position)


def row_array(rows: Sequence[Sequence[Expr]], elements: Sequence[Field]) -> Expr:
    """The rows as one value, whose elements have these columns."""
    fields = tuple(RowField(field.name, field.type) for field in elements)
    row = DataType("ROW", nullable=False, fields=fields)
    values = tuple(Call("ROW", tuple(values), row) for values in rows)
    return Call("ARRAY", values, DataType("ARRAY", nullable=False, element=row))


def _items(row: exp.Expr) -> list[exp.Expr]:
    """The values of a row, which is written `(1, 2)`, `ROW(1, 2)` or, of one column, `1`."""
    items = list(row.expressions)
    if len(items) == 1 and isinstance(items[0], exp.Anonymous):
        is_row = items[0].name in [n for n in CONSTRUCTORS.values() if n.endswith("()")]
        return list(items[0].expressions) if is_row else items
    return items


def _column(
    context: QueryContext, node: exp.Values, place: int, values: list[Expr]
) -> tuple[Expr, ...]:
    same = unified(values)
    if same is None:
        kinds = ", ".join(dict.fromkeys(value.type.sql() for value in values))
        message = f"the types of column {place + 1} of VALUES differ: {kinds}"
        context.at.fail("INCOMPATIBLE_TYPES", message, node.expressions[0])
    return same
