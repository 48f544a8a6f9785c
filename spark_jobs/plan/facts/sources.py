"""Nodes below projections and filters, and what a query reads of one table in this way."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from spark_jobs.sql.catalog import Table
from spark_jobs.sql.logical import (
    Field,
    Filter,
    Logical,
    Position,
    Project,
    Scan,
    all_columns,
    inputs_of,
)
from spark_jobs.sql.types.expr import Column, Expr, and_all, conjuncts, transform


@dataclass(frozen=True, slots=True)
class Peeled:
    """A node without the projections and filters on top: `exprs` and `where` are over `base`."""

    base: Logical
    where: Expr | None
    exprs: tuple[Expr, ...]


def peel(node: Logical) -> Peeled:
    """Take off `Project?(Filter?(...))`, however often."""
    match node:
        case Project(input=inner, exprs=exprs):
            below = peel(inner)
            return replace(below, exprs=tuple(inline(e, below.exprs) for e in exprs))
        case Filter(input=inner, condition=condition):
            below = peel(inner)
            both = (*conjuncts(below.where), *conjuncts(inline(condition, below.exprs)))
            return replace(below, where=and_all(both))
        case _:
            return Peeled(node, None, all_columns(node))


def inline(expr: Expr, exprs: Sequence[Expr]) -> Expr:
    """The expression with columns replaced by what makes them."""
    return transform(expr, lambda c: exprs[c.index])


@dataclass(frozen=True, slots=True)
class Source:
    """`exprs` (one per field) and `filter` are over the table's physical and metadata columns."""

    table: Table
    filter: Expr | None
    exprs: tuple[Expr, ...]
    fields: tuple[Field, ...]
    position: Position


def sources(node: Logical) -> Iterator[Source]:
    """The sources of an optimised query, left to right."""
    source = source_of(node)
    if source is not None:
        yield source
        return
    for input_ in inputs_of(node):
        yield from sources(input_)


def source_of(node: Logical) -> Source | None:
    """The node as a source, if it is one; computed columns are written out."""
    above = peel(node)
    if not isinstance(above.base, Scan):
        return None
    table = above.base.table
    return Source(
        table,
        above.where and written_out(above.where, table),
        tuple(written_out(e, table) for e in above.exprs),
        node.fields,
        above.base.position,
    )


def written_out(expr: Expr, table: Table) -> Expr:
    """The expression with computed columns replaced by what computes them."""

    def definition(column: Column) -> Expr:
        computed = table.columns[column.index].expr
        return column if computed is None else written_out(computed, table)

    return transform(expr, definition)
