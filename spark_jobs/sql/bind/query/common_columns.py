"""Binds USING and NATURAL: columns of both sides that are equal, and count once behind the join."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from sqlglot import exp

from spark_jobs.sql.bind.casts import unified
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.projections import project, unique_names
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.relations import Relations, join_scope
from spark_jobs.sql.bind.scope import Relation
from spark_jobs.sql.logical import Field, JoinType, Logical, all_columns, column
from spark_jobs.sql.parse.positions import start_of
from spark_jobs.sql.parse.statements import Name
from spark_jobs.sql.types.data_types import with_nullable
from spark_jobs.sql.types.expr import Call, Column, Expr


@dataclass(frozen=True, slots=True)
class CommonColumn:
    """A column of both sides: where it is on each, and the condition that they are equal."""

    name: str
    left: int
    right: int
    equal: Expr


def common_columns(
    context: QueryContext, node: exp.Expr, left: Relations, right: Relations
) -> list[CommonColumn]:
    """The columns that USING names, or that both sides of a NATURAL join have; in this order.

    Raises:
        PositionedError: a side has no such column, or several.
    """
    named = [Name(column.name, start_of(column)) for column in node.args.get("using") or ()]
    if node.args.get("method"):
        named = list(_shared(left, right, start_of(node.this)))
    scopes = [join_scope(context, relations) for relations in (left, right)]
    binder = ExpressionBinder(join_scope(context, (*left, *right)))
    found: list[CommonColumn] = []
    for name in named:
        a, b = (scope.resolve([name]) for scope in scopes)
        if not isinstance(a, Column) or not isinstance(b, Column) or min(a.index, b.index) < 0:
            message = f"USING ({name.text}) needs a column of both sides"
            context.at.fail("UNKNOWN_COLUMN", message, node)
        equal = binder.compared("=", a, b, node.this)
        found.append(CommonColumn(name.text, a.index, b.index, equal))
    return found


def _shared(left: Relations, right: Relations, start: int) -> Iterator[Name]:
    """Names on both sides, in the order of the left one."""
    names = [_names(relations) for relations in (left, right)]
    return (Name(name, start) for name in dict.fromkeys(names[0]) if name in names[1])


def _names(relations: Relations) -> list[str]:
    return [f.name for r in relations for f in r.fields if f.name not in r.hidden]


def merged(
    joined: Logical, kind: JoinType, relations: Relations, common: Sequence[CommonColumn]
) -> tuple[Logical, Relations]:
    """A join, and what the rest of the query sees of it: each common column once, first."""
    if not common:
        return joined, relations
    names = [column.name for column in common]
    rows = joined
    places = [column.right if kind == "right" else column.left for column in common]
    if kind == "full":
        either = [_either(joined, column) for column in common]
        known = unique_names([*(field.name for field in joined.fields), *names])
        rows = project(joined, [*all_columns(joined), *either], known)
        places = list(range(len(joined.fields), len(rows.fields)))
    fields = (rows.fields[place] for place in places)
    own = [
        Relation(None, (Field(name, field.type, field.time),), place)
        for name, field, place in zip(names, fields, places, strict=True)
    ]
    return rows, (*own, *_without(relations, names))


def _without(relations: Relations, names: Iterable[str]) -> Relations:
    """The relations with these names behind their aliases only; common columns have none."""
    hiding = (relation.hiding(names) for relation in relations)
    return tuple(r for r in hiding if r.alias or len(r.hidden) < len(r.fields))


def _either(joined: Logical, column_: CommonColumn) -> Expr:
    """The value of the side that has a row."""
    sides = [column(joined.fields, place) for place in (column_.left, column_.right)]
    args = unified(sides)
    if args is None:
        return sides[0]  # they have been compared, so there is a common type
    nullable = all(arg.type.nullable for arg in args)
    return Call("COALESCE", tuple(args), with_nullable(args[0].type, nullable))
