"""Binds CREATE TEMPORAL TABLE FUNCTION: a table's rows as versions of a key."""

from spark_jobs.errors import CatalogError
from spark_jobs.sql.hints import TtlHints
from spark_jobs.sql.joins import FromBinder
from spark_jobs.sql.logical import Logical
from spark_jobs.sql.namespace import Namespace, TemporalFunction
from spark_jobs.sql.queries import QueryBinder
from spark_jobs.sql.source import Source, nearest
from spark_jobs.sql.statements import CreateTemporalFunction, Name


def bind_temporal_function(
    source: Source, names: Namespace, statement: CreateTemporalFunction
) -> TemporalFunction:
    """The function.

    Raises:
        PositionedError, NotBoundError: the table, the time or the key is wrong.
    """
    from_ = FromBinder(QueryBinder(source, names), TtlHints(source))
    input_ = from_.table(statement.table)
    time = _position(source, statement.table, input_, statement.time)
    if input_.fields[time].time is None:
        times = [f.name for f in input_.fields if f.time is not None]
        error = CatalogError(
            "ROWTIME_TYPE",
            f"{statement.time.text} is no time attribute of {statement.table.text}",
            f"there is {', '.join(times)}" if times else "declare a WATERMARK FOR it",
        )
        raise source.place(error, statement.time.start)
    key = [_position(source, statement.table, input_, name) for name in statement.key]
    return TemporalFunction(input_, tuple(dict.fromkeys(key)), time)


def _position(source: Source, table: Name, input_: Logical, name: Name) -> int:
    names = [f.name for f in input_.fields]
    if name.text not in names:
        hint = nearest(name.text, names) or f"there is {', '.join(names)}"
        error = CatalogError("UNKNOWN_COLUMN", f"no column {name.text} in {table.text}", hint)
        raise source.place(error, name.start)
    return names.index(name.text)
