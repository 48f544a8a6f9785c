"""The text of a job file -> what it means: tables, settings, and one logical plan per INSERT."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Self, TypeVar, assert_never

from sqlglot import exp

from spark_jobs.errors import (
    CatalogError,
    SqlError,
    SqlErrors,
    UnsupportedError,
    nesting_refused,
)
from spark_jobs.options.settings import (
    IDLE_SETTINGS,
    REFUSED_SETTINGS,
    SETTINGS,
    DeclaredSettings,
    declared_settings,
)
from spark_jobs.options.spark import is_property, refusals
from spark_jobs.sql.bind.inserts import bind_insert
from spark_jobs.sql.bind.namespace import Namespace
from spark_jobs.sql.bind.python_functions import bind_python_function
from spark_jobs.sql.bind.query.queries import bind_node
from spark_jobs.sql.bind.query.relations import renamed
from spark_jobs.sql.bind.table_like import like_table
from spark_jobs.sql.bind.tables import bind_table
from spark_jobs.sql.bind.temporal_functions import bind_temporal_function
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.logical import Logical, Sink
from spark_jobs.sql.parse.parser import parse
from spark_jobs.sql.parse.source_text import SourceText, nearest
from spark_jobs.sql.parse.statements import (
    CreateFunction,
    CreateTable,
    CreateTemporalFunction,
    CreateView,
    InsertInto,
    Name,
    Query,
    SetOption,
    Statement,
)
from spark_jobs.sql.types.functions import is_built_in

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Job:
    """A bound job file. Option values may still hold `${env:...}` and `${file:...}`."""

    settings: DeclaredSettings
    tables: Mapping[str, Table]
    inserts: tuple[Sink, ...]
    text: str = ""
    source_name: str = "<sql>"


@dataclass(frozen=True, slots=True)
class BoundQuery:
    """A script that ends with a bare SELECT."""

    settings: DeclaredSettings
    tables: Mapping[str, Table]
    query: Logical


def bind(
    text: str, source_name: str = "<sql>", declared: Callable[[Table], Table] | None = None
) -> Job:
    """The meaning of a job file; what `declared` makes of its tables is what queries see.

    Raises:
        SqlErrors: all its problems.
    """
    return _ScriptBinder(SourceText(text, source_name), declared).run().job()


def bind_to_explain(text: str, source_name: str = "<sql>") -> Job | BoundQuery:
    """As `bind`, but a script may end with a bare SELECT, which then is all that it means.

    Raises:
        SqlErrors: all its problems.
    """
    binder = _ScriptBinder(SourceText(text, source_name)).run()
    return binder.query() if binder.ends_in_select else binder.job()


def bind_query(text: str, source_name: str = "<sql>") -> BoundQuery:
    """The meaning of a script whose last statement is a bare SELECT.

    Raises:
        SqlErrors: all its problems.
    """
    return _ScriptBinder(SourceText(text, source_name)).run().query()


class _ScriptBinder:
    """Binds one statement after the other; a later one sees the tables of the earlier ones."""

    def __init__(
        self, source: SourceText, declared: Callable[[Table], Table] | None = None
    ) -> None:
        self.source = source
        self.declared = declared or (lambda table: table)
        self.names = Namespace()
        self.created: dict[str, CreateTable] = {}  # with what LIKE has taken over
        self.inserts: list[Sink] = []
        self.queries: list[Query] = []
        self.bound: list[Logical] = []
        self.ends_in_select = False

    def run(self) -> Self:
        for statement in parse(self.source):
            self.ends_in_select = isinstance(statement, Query)
            line, column = self.source.position(_start(statement))
            with self.source.collecting(), nesting_refused(line, column):
                self._statement(statement)
        return self

    def job(self) -> Job:
        no_insert = SqlError(
            "NO_INSERT", "the job file has no INSERT INTO", "add INSERT INTO ... SELECT ..."
        )
        self._end(self.queries, None if self.inserts else no_insert)
        text, name = self.source.text, self.source.name
        return Job(self.names.settings, self.names.tables, tuple(self.inserts), text, name)

    def query(self) -> BoundQuery:
        no_query = None if self.bound else SqlError("NO_QUERY", "the script has no SELECT")
        self._end(self.queries[:-1], no_query)
        return BoundQuery(self.names.settings, self.names.tables, self.bound[-1])

    def _end(self, unread: Sequence[Query], nothing: SqlError | None) -> None:
        """Raise the problems found: with `nothing` to run, that if there are no others."""
        for statement in unread:
            hint = "write INSERT INTO table SELECT ..."
            refusal = UnsupportedError("SELECT_WITHOUT_SINK", "this SELECT has no sink", hint)
            self.source.report(refusal, statement.start)
        if nothing is not None and not self.source.problems:
            self.source.report(nothing, 0)
        if self.source.problems:
            raise SqlErrors(self.source.problems)

    def _statement(self, statement: Statement) -> None:
        match statement:
            case CreateTable(name=name, if_not_exists=tolerated):
                self._create(name, tolerated, self.names.tables, partial(self._table, statement))
            case CreateView(name=name, if_not_exists=tolerated):
                self._create(name, tolerated, self.names.views, partial(self._view, statement))
            case CreateTemporalFunction(name=name):
                made = partial(bind_temporal_function, self.source, self.names, statement)
                self._create(name, False, self.names.functions, made)
            case CreateFunction(name=name, if_not_exists=tolerated):
                self._function(statement, name, tolerated)
            case SetOption():
                self._set(statement)
            case InsertInto():
                self._insert(statement)
            case Query():
                self.queries.append(statement)
                self.bound.append(self._query(statement.query))
            case _:
                assert_never(statement)

    def _create(
        self, name: Name, tolerated: bool, into: dict[str, T], make: Callable[[], T]
    ) -> None:
        """Make what a statement creates, unless the name is taken."""
        names = self.names
        if any(name.text in known for known in (names.tables, names.views, names.functions)):
            if not tolerated:
                twice = CatalogError("TABLE_TWICE", f"{name.text} exists already")
                self.source.report(twice, name.start)
            return
        self.source.broken.add(name.text)
        into[name.text] = make()
        self.source.broken.discard(name.text)

    def _table(self, statement: CreateTable) -> Table:
        if statement.like is not None:
            statement = like_table(self.source, statement, statement.like, self.created)
        table = self.declared(bind_table(self.source, statement))
        self.created[statement.name.text] = statement
        return table

    def _function(self, statement: CreateFunction, name: Name, tolerated: bool) -> None:
        known = name.text.upper()
        if known in self.source.functions or is_built_in(known):
            if not tolerated:
                twice = CatalogError("TABLE_TWICE", f"the function {name.text} exists already")
                self.source.report(twice, name.start)
            return
        self.source.functions[known] = bind_python_function(self.source, statement)

    def _view(self, statement: CreateView) -> Logical:
        node = self._query(statement.query)
        return renamed(self.source, node, [*statement.columns]) if statement.columns else node

    def _set(self, statement: SetOption) -> None:
        key, value = statement.key, statement.value
        if is_property(key.text):
            self._set_property(statement)
            return
        option = SETTINGS.get(key.text)
        if key.text in REFUSED_SETTINGS:
            message = f"setting '{key.text}' is not supported"
            refusal = UnsupportedError("UNSUPPORTED_SETTING", message, REFUSED_SETTINGS[key.text])
            self.source.report(refusal, key.start)
        elif (idle := IDLE_SETTINGS.get(key.text)) is not None:
            if idle.accepts(value.text):
                self._given(statement)
                return
            message = f"setting '{key.text}' is not supported with '{value.text}'"
            refusal = UnsupportedError("UNSUPPORTED_SETTING", message, idle.instead)
            self.source.report(refusal, value.start)
        elif option is None:
            hint = nearest(key.text, SETTINGS)
            error = SqlError("UNKNOWN_SETTING", f"no setting '{key.text}'", hint)
            self.source.report(error, key.start)
        elif not option.accepts(value.text):
            message = f"'{value.text}' is not valid for '{key.text}': expected {option.expected}"
            self.source.report(SqlError("SETTING_VALUE", message), value.start)
        else:
            self._given(statement)

    def _set_property(self, statement: SetOption) -> None:
        key, value = statement.key, statement.value
        for problem in refusals({key.text: value.text}):
            self.source.report(SqlError("SPARK_PROPERTY_REFUSED", problem), key.start)
            return
        self._given(statement)

    def _given(self, statement: SetOption) -> None:
        given = {**self.names.settings.given, statement.key.text: statement.value.text}
        self.names.settings = declared_settings(given)

    def _query(self, node: exp.Expr) -> Logical:
        return bind_node(self.source, self.names, node)

    def _insert(self, statement: InsertInto) -> None:
        table = self.names.tables.get(statement.table.text)
        query: Logical | None = None
        with self.source.collecting():
            query = self._query(statement.query)
        if table is None:
            self._no_sink(statement)
        elif query is not None:
            trims = self.names.settings.type_length_enforcer == "trim_pad"
            self.inserts.append(bind_insert(self.source, statement, table, query, trims))

    def _no_sink(self, statement: InsertInto) -> None:
        name = statement.table
        if name.text in self.names.views:
            error = CatalogError("UNKNOWN_TABLE", f"{name.text} is a view and cannot be written")
            self.source.report(error, name.start)
        elif name.text not in self.source.broken:
            known = self.names.tables
            hint = nearest(name.text, known) or "CREATE TABLE must come before the INSERT"
            error = CatalogError("UNKNOWN_TABLE", f"no table {name.text}", hint)
            self.source.report(error, name.start)


def _start(statement: Statement) -> int:
    match statement:
        case InsertInto() | Query():
            return statement.start
        case SetOption():
            return statement.key.start
        case _:
            return statement.name.start
