"""Select lists as projections: names of columns, and which of them stay time attributes."""

from collections.abc import Sequence
from itertools import chain, count

from spark_jobs.sql.catalog import Table, TableColumn
from spark_jobs.sql.logical import Field, Logical, Position, Project, Scan, TimeAttribute
from spark_jobs.sql.types.expr import Call, Column, Expr


def scan(table: Table, position: Position) -> Scan:
    """All columns of a table; its event time and PROCTIME() columns are time attributes."""
    fields = tuple(Field(c.name, c.type, _time_of_column(table, c)) for c in table.columns)
    return Scan(table, fields, position)


def project(input_: Logical, exprs: Sequence[Expr], names: Sequence[str]) -> Project:
    """A projection; a time attribute that is passed on as it is stays one."""
    fields = tuple(Field(n, e.type, time_of(e, input_)) for n, e in zip(names, exprs, strict=True))
    return Project(input_, tuple(exprs), fields)


def time_of(expr: Expr, input_: Logical) -> TimeAttribute:
    """Whether an expression over the input is a time attribute."""
    if isinstance(expr, Column):
        return input_.fields[expr.index].time
    return "proctime" if _is_proctime(expr) else None


def unique_names(names: Sequence[str | None]) -> list[str]:
    """Calcite's names for a select list: EXPR$0 for what has none, a0 for a second a."""
    found: list[str] = []
    for i, name in enumerate(names):
        wanted = f"EXPR${i}" if name is None else name
        candidates = chain((wanted,), (f"{wanted}{n}" for n in count()))
        found.append(next(c for c in candidates if c not in found))
    return found


def _time_of_column(table: Table, column: TableColumn) -> TimeAttribute:
    if table.watermark is not None and table.watermark.column == column.name:
        return "rowtime"
    return "proctime" if _is_proctime(column.expr) else None


def _is_proctime(expr: Expr | None) -> bool:
    return isinstance(expr, Call) and expr.op == "PROCTIME"
