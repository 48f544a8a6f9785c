"""Binds CREATE TABLE: columns, keys, event time and options become a catalog table."""

from collections.abc import Mapping, Sequence

from spark_jobs.errors import CatalogError, UnsupportedError
from spark_jobs.options.formats import Format
from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.held_types import unheld
from spark_jobs.sql.bind.metadata import keys_of
from spark_jobs.sql.bind.scope import Relation, Scope
from spark_jobs.sql.bind.table_options import OptionChecker
from spark_jobs.sql.catalog import Table, TableColumn, Watermark
from spark_jobs.sql.logical import Field
from spark_jobs.sql.parse.positions import start_of
from spark_jobs.sql.parse.source_text import SourceText, nearest
from spark_jobs.sql.parse.statements import ColumnClause, CreateTable, KeyClause, Name
from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import with_nullable
from spark_jobs.sql.types.type_text import WrittenType

MAX_ROWTIME_PRECISION = 3


def bind_table(source: SourceText, statement: CreateTable) -> Table:
    """The table.

    Raises:
        NotBoundError: it has problems; all are reported to the source.
    """
    with source.all_or_nothing():
        options = OptionChecker(source, statement).check()
        binder = _TableBinder(source, statement, Table(statement.name.text, (), options))
        table = binder.bind()
    return table


class _TableBinder:
    def __init__(self, source: SourceText, statement: CreateTable, shell: Table) -> None:
        self.source = source
        self.statement = statement
        self.shell = shell
        self.names = [c.name.text for c in statement.columns]

    def bind(self) -> Table:
        self._check_names()
        key = self._primary_key()
        columns = self._columns(key)
        table = Table(self.shell.name, columns, self.shell.options, key, self._watermark(columns))
        self._check_key_fields(table)
        self._check_connector(table)
        return table

    def _check_names(self) -> None:
        seen: set[str] = set()
        for clause in self.statement.columns:
            if clause.name.text in seen:
                problem = f"column {clause.name.text} is declared twice"
                self._wrong("COLUMN_TWICE", problem, clause.name)
            seen.add(clause.name.text)
        if not seen:
            self._wrong("NO_COLUMNS", "the table has no columns", self.statement.name)

    def _primary_key(self) -> tuple[str, ...]:
        keys = self.statement.keys
        for extra in keys[1:]:
            error = CatalogError("KEY_TWICE", "the table has more than one PRIMARY KEY")
            self.source.report(error, extra.start)
        return self._key_columns(keys[0]) if keys else ()

    def _key_columns(self, clause: KeyClause) -> tuple[str, ...]:
        physical = [c.name.text for c in self.statement.columns if _is_physical(c)]
        for name in clause.columns:
            if name.text not in self.names:
                self._unknown_column(name)
            elif name.text not in physical:
                why = "is not read from the record, so it cannot be part of the PRIMARY KEY"
                self._wrong("KEY_NOT_PHYSICAL", f"{name.text} {why}", name)
        return tuple(dict.fromkeys(n.text for n in clause.columns if n.text in physical))

    def _columns(self, key: tuple[str, ...]) -> tuple[TableColumn, ...]:
        """Computed columns see the others only, as in Flink; their types are known last."""
        found: dict[int, TableColumn] = {}
        for i, clause in enumerate(self.statement.columns):
            if clause.computed is None:
                found[i] = self._declared(clause, clause.name.text in key)
        binder = self._binder(found)
        for i, clause in enumerate(self.statement.columns):
            if clause.computed is not None:
                name = clause.name.text
                # what cannot be bound still is a column, so that it is not missed elsewhere
                found[i] = TableColumn(name, data_types.NULL, "computed")
                with self.source.collecting():
                    expr = binder.bind(clause.computed)
                    found[i] = TableColumn(name, expr.type, "computed", expr)
        return tuple(found[i] for i in sorted(found))

    def _binder(self, columns: Mapping[int, TableColumn]) -> ExpressionBinder:
        """A binder of expressions over these columns, by their places."""
        fields = ((i, Field(c.name, c.type)) for i, c in columns.items())
        relations = tuple(Relation(None, (field,), i) for i, field in fields)
        return ExpressionBinder(Scope(self.source, relations))

    def _declared(self, clause: ColumnClause, in_key: bool) -> TableColumn:
        written = clause.type or WrittenType(data_types.NULL)
        type_ = written.type
        if clause.metadata_key is None:
            type_ = with_nullable(type_, type_.nullable and not in_key)
            return TableColumn(
                clause.name.text, type_, length=written.length, has_inner_length=written.has_inner
            )
        self._check_metadata(clause, clause.metadata_key)
        return TableColumn(
            clause.name.text,
            type_,
            "metadata",
            metadata_key=clause.metadata_key.text,
            virtual=clause.virtual,
        )

    def _check_metadata(self, clause: ColumnClause, key: Name) -> None:
        value_format = self.shell.value_format
        name = value_format.name if value_format else None
        known = keys_of(name, self.shell.unwrapped)
        found = known.get(key.text)
        if found is None:
            hint = nearest(key.text, known) or f"use one of {', '.join(known)}"
            self._wrong("UNKNOWN_METADATA", f"no metadata '{key.text}'", key, hint)
        elif found.refused is not None:
            self._refuse(f"metadata '{key.text}' is not supported", key, found.refused)
        elif clause.type is not None and not found.takes(clause.type.type):
            self._wrong(
                "METADATA_TYPE",
                f"metadata '{key.text}' cannot be read as {clause.type.type.sql()}",
                clause.name,
                f"declare it as {' or '.join(t.sql() for t in found.types)}",
            )

    def _watermark(self, columns: tuple[TableColumn, ...]) -> Watermark | None:
        clauses = self.statement.watermarks
        for extra in clauses[1:]:
            error = CatalogError("WATERMARK_TWICE", "the table has more than one WATERMARK")
            self.source.report(error, extra.start)
        if not clauses:
            return None
        clause = clauses[0]
        if clause.column.text not in self.names:
            self._unknown_column(clause.column)
            return None
        column = columns[self.names.index(clause.column.text)]
        self._check_rowtime(column, clause.column)
        with self.source.collecting():
            expr = self._binder(dict(enumerate(columns))).bind(clause.expr)
            if expr.type.name != column.type.name:
                error = CatalogError(
                    "WATERMARK_TYPE",
                    f"the watermark is {expr.type.sql()}, its column {column.type.sql()}",
                    "subtract an INTERVAL from the column",
                )
                raise self.source.place(error, start_of(clause.expr))
            return Watermark(column.name, expr)
        return None

    def _check_rowtime(self, column: TableColumn, name: Name) -> None:
        if column.type.name == "NULL":
            return
        precision = column.type.precision or 0
        if column.type.name not in data_types.TIMESTAMPS or precision > MAX_ROWTIME_PRECISION:
            problem = f"event time {name.text} is {column.type.sql()}"
            hint = "declare it as TIMESTAMP(3) or TIMESTAMP_LTZ(3)"
            self._wrong("ROWTIME_TYPE", problem, name, hint)

    def _check_key_fields(self, table: Table) -> None:
        clause = next((o for o in self.statement.options if o.key.text == "key.fields"), None)
        if table.connector != "kafka" or clause is None:
            return
        physical = [c.name for c in table.columns if c.kind == "physical"]
        for field in table.key_fields:
            if field not in physical:
                problem = f"'key.fields' names {field}, which is not a physical column"
                self._wrong("UNKNOWN_COLUMN", problem, clause.value, nearest(field, physical))
        prefix = table.key_prefix
        for field in table.key_fields:
            if not field.startswith(prefix):
                problem = f"key field {field} does not begin with the 'key.fields-prefix' {prefix}"
                self._wrong("OPTION_VALUE", problem, clause.value)

    def _check_connector(self, table: Table) -> None:
        if table.connector == "upsert-kafka" and not self.statement.keys:
            self._wrong(
                "NO_PRIMARY_KEY",
                "an upsert-kafka table needs a PRIMARY KEY",
                self.statement.name,
                "add PRIMARY KEY (...) NOT ENFORCED",
            )
        if table.unwrapped:
            self._check_unwrapped(table)
        if table.connector not in ("kafka", "upsert-kafka"):
            return
        for which, format_ in (("key", table.key_format), ("value", table.value_format)):
            names = table.key_fields if which == "key" else [c.name for c in table.value_columns]
            if format_ is not None:
                self._check_held(table, f"the {format_.name} format of the {which}", format_, names)

    def _check_held(self, table: Table, what: str, format_: Format, names: Sequence[str]) -> None:
        """Columns that the format's records cannot hold, and their number."""
        if format_.name == "raw" and len(names) != 1:
            problem = f"{what} takes one column, not {len(names)}"
            self._wrong("RAW_COLUMNS", problem, self.statement.name)
            return
        for column, clause in zip(table.columns, self.statement.columns, strict=True):
            if column.name in names and (error := unheld(format_.name, what, column)):
                self.source.report(error, clause.name.start)

    def _check_unwrapped(self, table: Table) -> None:
        if not self.statement.keys:
            self._wrong(
                "NO_PRIMARY_KEY",
                "a table of unwrapped Debezium rows needs a PRIMARY KEY: its changes come as"
                " upserts and deletions by key",
                self.statement.name,
                "add PRIMARY KEY (...) NOT ENFORCED",
            )
        for column, clause in zip(table.columns, self.statement.columns, strict=True):
            if column.name == "__deleted" and column.type.name not in ("STRING", "BOOLEAN"):
                self._wrong(
                    "OPTION_CONFLICT",
                    f"__deleted is the text 'true' or 'false', and {column.type.sql()} cannot"
                    " hold it",
                    clause.name,
                    "declare it as STRING or leave it out: deletions are recognised without it",
                )

    def _unknown_column(self, name: Name) -> None:
        hint = nearest(name.text, self.names)
        self._wrong("UNKNOWN_COLUMN", f"no column {name.text} in the table", name, hint)

    def _wrong(self, code: str, message: str, at: Name, hint: str | None = None) -> None:
        self.source.report(CatalogError(code, message, hint), at.start)

    def _refuse(self, message: str, at: Name, hint: str) -> None:
        self.source.report(UnsupportedError("UNSUPPORTED_METADATA", message, hint), at.start)


def _is_physical(clause: ColumnClause) -> bool:
    return clause.computed is None and clause.metadata_key is None
