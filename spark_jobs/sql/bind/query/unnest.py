"""Binds UNNEST: the elements of a collection, beside the row that has it."""

from collections.abc import Iterator

from sqlglot import exp

from spark_jobs.errors import SqlError
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.relations import Relations, join_scope, on_condition, over
from spark_jobs.sql.bind.scope import Relation
from spark_jobs.sql.logical import Field, Filter, JoinType, Logical, Unnest
from spark_jobs.sql.parse.positions import start_of
from spark_jobs.sql.types.data_types import INT, DataType, with_nullable
from spark_jobs.sql.types.expr import Literal, and_all, conjuncts


def bind_unnest(
    context: QueryContext, left: Logical, relations: Relations, node: exp.Expr, kind: JoinType
) -> tuple[Logical, Relations]:
    """The rows with their elements, and what that adds to FROM.

    Raises:
        PositionedError: the argument is no collection, or a join that Flink has not either.
    """
    call = node.this
    if kind not in ("inner", "left"):
        context.refuse(call, f"{kind.upper()} JOIN UNNEST", "use CROSS JOIN or LEFT JOIN")
    if node.args.get("using") or node.args.get("method"):
        context.refuse(call, "UNNEST with USING or NATURAL", "write CROSS JOIN, or ON")
    if len(call.expressions) != 1:
        context.refuse(call, "UNNEST of several collections", "write an UNNEST for each")
    collection = ExpressionBinder(join_scope(context, relations)).bind(call.expressions[0])
    ordinality = bool(call.args.get("offset"))
    elements = _fields(context, call, collection.type, ordinality)
    added = (Relation(call.alias or None, elements, len(left.fields)),)
    needs_on = bool(node.args.get("side"))
    found = on_condition(context, node, (*relations, *added), needs_on)
    asked = (p for p in conjuncts(found) if not (isinstance(p, Literal) and p.value is True))
    condition = and_all(asked)
    position = context.position(call)
    padded = condition if kind == "left" else None
    rows: Logical = Unnest(left, collection, kind, padded, elements, ordinality, position)
    if condition is not None and padded is None:
        rows = Filter(rows, condition)
    return rows, over(rows, (*relations, *added))


def _fields(
    context: QueryContext, call: exp.Expr, type_: DataType, ordinality: bool
) -> tuple[Field, ...]:
    """The columns of the elements, under the names that the alias gives them."""
    found = list(_elements(type_))
    if not found:
        wrong = f"UNNEST takes an ARRAY or a MAP, not {type_.sql()}"
        context.at.fail("INCOMPATIBLE_TYPES", wrong, call.expressions[0])
    if len(found) == 1 and call.alias:
        found = [Field(call.alias, found[0].type)]
    if ordinality:
        found.append(Field("ORDINALITY", with_nullable(INT, False)))
    alias = call.args.get("alias")
    names = alias.args.get("columns") if alias is not None else None
    if not names:
        return tuple(found)
    if len(names) != len(found):
        raise context.source.place(
            SqlError("COLUMN_COUNT", f"{len(names)} names for {len(found)} columns"),
            start_of(names[0]),
        )
    return tuple(Field(n.name, f.type) for n, f in zip(names, found, strict=True))


def _elements(type_: DataType) -> Iterator[Field]:
    """Key and value of a MAP, the fields of a ROW, or the element itself."""
    match type_:
        case DataType(name="MAP", key=DataType() as key, element=DataType() as value):
            yield Field("KEY", key)
            yield Field("VALUE", value)
        case DataType(name="ARRAY", element=DataType(name="ROW", fields=fields)):
            yield from (Field(f.name, f.type) for f in fields)
        case DataType(name="ARRAY", element=DataType() as element):
            yield Field("EXPR$0", element)
