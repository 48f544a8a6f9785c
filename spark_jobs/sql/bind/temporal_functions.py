"""CREATE TEMPORAL TABLE FUNCTION: a table's rows as versions of a key."""

from collections.abc import Sequence

from spark_jobs.errors import CatalogError
from spark_jobs.sql.bind.namespace import Namespace, TemporalFunction
from spark_jobs.sql.bind.query.relations import table_or_view
from spark_jobs.sql.logical import Logical
from spark_jobs.sql.parse.source_text import SourceText, nearest
from spark_jobs.sql.parse.statements import CreateTemporalFunction, Name


def create_temporal_table_function(
    name: str, table: str, time_attribute: str, primary_key: Sequence[str]
) -> str:
    """The statement that declares a temporal table function, to stand in a job's text.

    The Table API's `Table.createTemporalTableFunction(time_attribute, primary_key)` under a name.

    Raises:
        ValueError: no key column, or an empty name.
    """
    if not primary_key:
        raise ValueError(f"temporal table function {name}: the versions need a key")
    key = ", ".join(map(_quoted, primary_key))
    return (
        f"CREATE TEMPORAL TABLE FUNCTION {_quoted(name)} FOR {_quoted(table)}"
        f" TIME ATTRIBUTE {_quoted(time_attribute)} PRIMARY KEY ({key});"
    )


def _quoted(name: str) -> str:
    if not name:
        raise ValueError("a name is empty")
    return "`" + name.replace("`", "``") + "`"


def bind_temporal_function(
    source: SourceText, names: Namespace, statement: CreateTemporalFunction
) -> TemporalFunction:
    """The function.

    Raises:
        PositionedError, NotBoundError: the table, the time or the key is wrong.
    """
    input_ = table_or_view(source, names, statement.table)
    time = _position(source, statement.table, input_, statement.time)
    if input_.fields[time].time is None:
        times = [f.name for f in input_.fields if f.time is not None]
        error = CatalogError(
            "ROWTIME_TYPE",
            f"{statement.time.text} is no time attribute of {statement.table.text}",
            f"use one of {', '.join(times)}" if times else "declare a WATERMARK FOR it",
        )
        raise source.place(error, statement.time.start)
    key = [_position(source, statement.table, input_, name) for name in statement.key]
    return TemporalFunction(input_, tuple(dict.fromkeys(key)), time)


def _position(source: SourceText, table: Name, input_: Logical, name: Name) -> int:
    names = [f.name for f in input_.fields]
    if name.text not in names:
        hint = nearest(name.text, names) or f"use one of {', '.join(names)}"
        error = CatalogError("UNKNOWN_COLUMN", f"no column {name.text} in {table.text}", hint)
        raise source.place(error, name.start)
    return names.index(name.text)
