"""Binds INSERT INTO: the query's columns are matched to the sink's by position and cast."""

from collections.abc import Iterator

from sqlglot import exp

from spark_jobs.errors import CatalogError, PositionedError, SqlError, UnsupportedError
from spark_jobs.options.formats import DebeziumJsonOptions
from spark_jobs.sql.bind.casts import cast, of_length
from spark_jobs.sql.bind.metadata import WRITABLE
from spark_jobs.sql.bind.projections import project
from spark_jobs.sql.catalog import Table, TableColumn
from spark_jobs.sql.logical import Logical, Position, Project, Sink, all_columns
from spark_jobs.sql.parse.positions import start_of
from spark_jobs.sql.parse.source_text import SourceText, nearest
from spark_jobs.sql.parse.statements import InsertInto
from spark_jobs.sql.types.coercion import assignable
from spark_jobs.sql.types.expr import Column, Expr, Literal


def bind_insert(
    source: SourceText, statement: InsertInto, table: Table, query: Logical, trims: bool
) -> Sink:
    """The query with a projection that gives exactly the sink's writable columns.

    `trims`: texts get the lengths that the sink declares.

    Raises:
        PositionedError, NotBoundError: the columns do not fit.
    """
    with source.all_or_nothing():
        for problem in _unwritable(table):
            source.report(problem, statement.table.start)
        targets = _targets(source, statement, table)
        _check_count(source, statement, table, targets, query)
        for problem in _untrimmed(table) if trims else ():
            source.report(problem, statement.table.start)
        exprs = [_written(source, statement, c, targets, query) for c in _writable(table)]
    position = Position(*source.position(statement.start))
    rows = _projected(query, exprs, table)
    rows = _trimmed(rows, table) if trims else rows
    return Sink(rows, table, position, statement.on_conflict)


def _unwritable(table: Table) -> Iterator[PositionedError]:
    """What is declared of a table that no sink may have."""
    if len(table.topics) > 1:
        topics = f"{table.name} has {len(table.topics)} topics, a sink has one"
        yield SqlError("SINK_TOPICS", topics, "name one topic in 'topic'")
    if table.topic_pattern is not None:
        problem = f"{table.name} has a 'topic-pattern', and a sink has one topic"
        yield SqlError("SINK_TOPICS", problem, "name the topic in 'topic'")
    if table.unwrapped:
        hint = (
            "declare the sink as a table of its own: upsert-kafka, or kafka with a debezium format"
        )
        yield _unwritable_with(table, "'rejoin.debezium.unwrapped'", hint)
    value_format = table.value_format and table.value_format.options
    if isinstance(value_format, DebeziumJsonOptions) and value_format.schema_include:
        yield _unwritable_with(table, "'debezium-json.schema-include'")
    if (ids := table.options.kafka.schema_ids) != "prefix":
        why = "ids are written in Confluent's form"
        yield _unwritable_with(table, f"'rejoin.schema-id' = '{ids}': {why}")
    for format_ in (table.key_format, table.value_format):
        registry = None if format_ is None else format_.registry
        if format_ is not None and registry is not None and registry.url is None:
            problem = f"{table.name} is written in {format_.name} and names no registry"
            hint = f"set '{format_.name}.url', where a sink registers its schema"
            yield SqlError("OPTION_MISSING", problem, hint)
    yield from _unwritable_metadata(table)


def _unwritable_metadata(table: Table) -> Iterator[PositionedError]:
    """Metadata that a record has only once it is written, and what two columns would write."""
    written: set[str] = set()
    for column in table.columns:
        key = column.metadata_key
        if key is None or not column.writable:
            continue
        if key not in WRITABLE:
            yield UnsupportedError(
                "UNSUPPORTED_METADATA",
                f"metadata '{key}' of column {column.name} can be read, not written",
                f"declare {column.name} in {table.name} as VIRTUAL",
            )
        elif key in written:
            problem = f"{table.name} has several columns that write the metadata '{key}'"
            hint = f"declare {column.name} as VIRTUAL"
            yield UnsupportedError("UNSUPPORTED_METADATA", problem, hint)
        written.add(key)


def _untrimmed(table: Table) -> Iterator[PositionedError]:
    """Columns with a length that is not of a text."""
    for column in _writable(table):
        if column.has_inner_length or (column.length and column.type.name != "STRING"):
            yield UnsupportedError(
                "UNSUPPORTED_SETTING",
                "'table.exec.sink.type-length-enforcer' is for CHAR(n) and VARCHAR(n) alone, and"
                f" {column.name} of {table.name} has another length",
                "leave that length out",
            )


def _trimmed(rows: Logical, table: Table) -> Logical:
    """The rows with the lengths of the sink's columns."""
    columns = _writable(table)
    if not any(column.length for column in columns):
        return rows
    values = [
        expr if column.length is None else of_length(expr, column.length)
        for expr, column in zip(all_columns(rows), columns, strict=True)
    ]
    return project(rows, values, [field.name for field in rows.fields])


def _unwritable_with(table: Table, option: str, hint: str = "leave it out") -> UnsupportedError:
    message = f"{table.name} cannot be written with {option}"
    return UnsupportedError("UNSUPPORTED_OPTION", message, hint)


def _writable(table: Table) -> list[TableColumn]:
    return [c for c in table.columns if c.writable]


def _targets(source: SourceText, statement: InsertInto, table: Table) -> list[str]:
    """The sink columns that the query's columns go to, in the query's order."""
    names = [c.name for c in _writable(table)]
    for name in statement.columns:
        if name.text not in names:
            hint = nearest(name.text, names) or f"use one of {', '.join(names)}"
            message = f"table {table.name} has no column {name.text} that can be written"
            source.report(CatalogError("UNKNOWN_COLUMN", message, hint), name.start)
    return [n.text for n in statement.columns] or names


def _check_count(
    source: SourceText, statement: InsertInto, table: Table, targets: list[str], query: Logical
) -> None:
    if len(targets) != len(query.fields):
        given = ", ".join(f"{f.name} {f.type.sql()}" for f in query.fields)
        types = {c.name: c.type.sql() for c in table.columns}
        wanted = ", ".join(f"{n} {types[n]}" for n in targets if n in types)
        error = SqlError(
            "COLUMN_COUNT",
            f"the query has {len(query.fields)} columns, {table.name} takes {len(targets)}",
            f"query: [{given}], sink: [{wanted}]",
        )
        raise source.place(error, start_of(statement.query) or statement.start)


def _written(
    source: SourceText,
    statement: InsertInto,
    column: TableColumn,
    targets: list[str],
    query: Logical,
) -> Expr:
    """The value of one sink column: a query column, cast where necessary, or NULL."""
    if column.name not in targets:
        if not column.type.nullable:
            error = SqlError("NOT_NULL", f"{column.name} is NOT NULL and gets no value")
            source.report(error, statement.table.start)
        return Literal(None, column.type)
    index = targets.index(column.name)
    field = query.fields[index]
    if not assignable(field.type, column.type):
        error = SqlError(
            "INCOMPATIBLE_TYPES",
            f"column {column.name} of {statement.table.text} is {column.type.sql()}, the query's"
            f" {field.name} is {field.type.sql()}",
            "CAST it in the query",
        )
        source.report(error, _start_of_item(statement, index))
    return Column(index, field.name, field.type)


def _start_of_item(statement: InsertInto, index: int) -> int:
    query = statement.query
    items = query.expressions if isinstance(query, exp.Select) else []
    start = start_of(items[index]) if index < len(items) else 0
    return start or start_of(statement.query) or statement.start


def _projected(query: Logical, exprs: list[Expr], table: Table) -> Logical:
    """The query with casts to the sink's types, put into its own projection if it has one."""
    columns = _writable(table)
    names = [c.name for c in columns]
    pairs = zip(exprs, columns, strict=True)
    cast_needed = any(e.type.name != "NULL" and cast(e, c.type) is not e for e, c in pairs)
    if exprs == [*all_columns(query)] and not cast_needed:
        return query
    input_ = query
    if isinstance(query, Project):
        input_ = query.input
        named = zip(exprs, names, strict=True)
        names = [query.fields[e.index].name if isinstance(e, Column) else n for e, n in named]
        exprs = [query.exprs[e.index] if isinstance(e, Column) else e for e in exprs]
    values = [cast(e, c.type) for e, c in zip(exprs, columns, strict=True)]
    return project(input_, values, names)
