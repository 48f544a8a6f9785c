"""What a query reads of one table: `Project?(Filter?(Scan))` with computed columns written out."""

from collections.abc import Iterator
from dataclasses import dataclass

from spark_jobs.plan.nodes.logical import Field, Filter, Logical, Position, Project, Scan, inputs_of
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.types.expr import Column, Expr, transform


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
    """The node as a source, if it is one."""
    match node:
        case Project(input=Filter(input=Scan() as scan, condition=condition), exprs=exprs):
            return _source(scan, condition, exprs, node.fields)
        case Project(input=Scan() as scan, exprs=exprs):
            return _source(scan, None, exprs, node.fields)
        case Filter(input=Scan() as scan, condition=condition):
            return _source(scan, condition, _all(scan), node.fields)
        case Scan():
            return _source(node, None, _all(node), node.fields)
        case _:
            return None


def _source(
    scan: Scan, condition: Expr | None, exprs: tuple[Expr, ...], fields: tuple[Field, ...]
) -> Source:
    table = scan.table
    return Source(
        table,
        condition and written_out(condition, table),
        tuple(written_out(e, table) for e in exprs),
        fields,
        scan.position,
    )


def written_out(expr: Expr, table: Table) -> Expr:
    """The expression with computed columns replaced by what computes them."""

    def definition(column: Column) -> Expr:
        computed = table.columns[column.index].expr
        return column if computed is None else written_out(computed, table)

    return transform(expr, definition)


def _all(scan: Scan) -> tuple[Expr, ...]:
    return tuple(Column(i, f.name, f.type) for i, f in enumerate(scan.fields))
