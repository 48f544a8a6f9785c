"""Checks the WITH options of one table: unknown names, wrong values, what is missing or refused."""

from collections.abc import Iterator, Mapping

from spark_jobs.errors import CatalogError, UnsupportedError
from spark_jobs.options.client_properties import CONNECTION, JAVA_ONLY, REFUSED, value_problem
from spark_jobs.options.connectors import (
    CONNECTORS,
    DISCOVERY,
    KNOWN_CONNECTORS,
    MANAGED_PROPERTIES,
    NEEDS,
    REGISTRY_TIMEOUT,
    REQUIRED,
    TOPIC_PATTERN,
    TableOptions,
    table_options,
    without_effect,
)
from spark_jobs.options.debezium import KEY_CHANGES, TRUNCATE, UNAVAILABLE, conflicts
from spark_jobs.options.formats import FORMATS, KNOWN_FORMATS, SCHEMA_ID, FormatKind
from spark_jobs.options.jdbc import DATABASES
from spark_jobs.options.kinds import Option, is_reference
from spark_jobs.options.secrets import literal_secret
from spark_jobs.sql.parse.source_text import SourceText, nearest
from spark_jobs.sql.parse.statements import CreateTable, Name, OptionClause

_FORMAT_OPTIONS = ("format", "key.format", "value.format")


class OptionChecker:
    """All checks of one CREATE TABLE; every problem is reported to the source."""

    def __init__(self, source: SourceText, statement: CreateTable) -> None:
        self.source = source
        self.statement = statement
        self.clauses: dict[str, OptionClause] = {}
        for clause in statement.options:
            if clause.key.text in self.clauses:
                self._wrong("OPTION_TWICE", f"option '{clause.key.text}' is set twice", clause.key)
            self.clauses[clause.key.text] = clause

    @property
    def given(self) -> dict[str, str]:
        return {k: c.value.text for k, c in self.clauses.items()}

    def check(self) -> TableOptions:
        """What the options mean."""
        connector = self.clauses.get("connector")
        if connector is None:
            name, hint = self.statement.name, "add WITH ('connector' = 'kafka', ...)"
            self._wrong("OPTION_MISSING", f"table {name.text} has no 'connector'", name, hint)
        elif connector.value.text not in CONNECTORS:
            self._unknown_connector(connector.value)
        else:
            self._check_all(connector.value.text)
        return table_options(self.given)

    def _check_all(self, connector: str) -> None:
        for option, clause in self.clauses.items():
            if option != "connector":
                self._check_one(connector, CONNECTORS[connector], clause)
        for required in REQUIRED[connector]:
            self._need(required)
        self._check_together(connector)

    def _unknown_connector(self, name: Name) -> None:
        if name.text in KNOWN_CONNECTORS:
            hint = "tables are Kafka topics ('kafka', 'upsert-kafka') or looked up by 'jdbc'"
            self._refuse(f"connector '{name.text}' is not supported", name, hint)
        else:
            hint = nearest(name.text, CONNECTORS) or "use 'kafka' or 'upsert-kafka'"
            self._wrong("OPTION_VALUE", f"no connector '{name.text}'", name, hint)

    def _check_one(self, connector: str, known: Mapping[str, Option], clause: OptionClause) -> None:
        name = clause.key.text
        secret = literal_secret(name, clause.value.text)
        if secret is not None:
            problem = f"{secret} of '{name}' is a secret, and is written in the SQL text"
            hint = "refer to it: ${file:/run/secrets/...} or ${env:...}"
            self._wrong("SECRET_IN_SQL", problem, clause.value, hint)
            return
        if name.startswith("properties."):
            self._check_property(clause)
            return
        of_formats = {start + n: o for start, f in self._formats() for n, o in f.options.items()}
        option, value = known.get(name) or of_formats.get(name), clause.value.text
        if option is None:
            candidates = (*known, *of_formats, "connector")
            problem = f"connector '{connector}' has no option '{name}'"
            self._wrong("UNKNOWN_OPTION", problem, clause.key, nearest(name, candidates))
        elif option.refused is not None:
            self._refuse(f"option '{name}' is not supported", clause.key, option.refused)
        elif not option.accepts(value) and (name in known or not is_reference(value)):
            self._wrong_value(name, option, clause.value)

    def _wrong_value(self, name: str, option: Option, value: Name) -> None:
        if name in _FORMAT_OPTIONS and value.text in KNOWN_FORMATS:
            self._refuse(f"format '{value.text}' is not supported", value, f"use {option.expected}")
            return
        choices = option.expected.split(" | ")
        hint = nearest(value.text, choices) if len(choices) > 1 else None
        if is_reference(value.text):
            hint = "write the value itself: references are looked up when the job starts"
        problem = f"'{value.text}' is not valid for '{name}': expected {option.expected}"
        self._wrong("OPTION_VALUE", problem, value, hint)

    def _check_property(self, clause: OptionClause) -> None:
        name = clause.key.text.removeprefix("properties.")
        why = MANAGED_PROPERTIES.get(name) or REFUSED.get(name)
        if why is not None:
            self._refuse(f"Kafka property '{name}' cannot be set", clause.key, why)
            return
        if name not in CONNECTION and name not in JAVA_ONLY:
            hint = nearest(name, (*CONNECTION, *JAVA_ONLY))
            problem = f"Kafka's clients have no property '{name}'"
            self._wrong("UNKNOWN_OPTION", problem, clause.key, hint)
            return
        if (found := value_problem(name, clause.value.text)) is not None:
            self._refuse(found[0], clause.value, found[1])

    def _formats(self) -> Iterator[tuple[str, FormatKind]]:
        """The formats of key and value, with what the names of their options begin with."""
        for option in _FORMAT_OPTIONS:
            clause = self.clauses.get(option)
            if clause is not None and clause.value.text in FORMATS:
                format_ = FORMATS[clause.value.text]
                yield f"{option.removesuffix('format')}{format_.name}.", format_

    def _need(self, name: str, why: str = "") -> None:
        if name not in self.clauses:
            table = self.statement.name
            self._wrong("OPTION_MISSING", f"table {table.text} has no '{name}'{why}", table)

    def _check_together(self, connector: str) -> None:
        given = self.given
        if connector == "kafka":
            self._check_formats()
        if connector != "jdbc":
            self._check_topics()
        if connector == "jdbc" and "url" in given:
            self._check_database(self.clauses["url"].value)
        for start, format_ in self._formats():
            for required in format_.required:
                self._need(start + required)
        for name, value, needed in NEEDS:
            applies = name in given and value in ("", given[name])
            if applies and needed in CONNECTORS[connector]:
                said = f"'{name}' = '{value}'" if value else f"'{name}'"
                self._need(needed, f", which {said} needs")
        for name, problem, hint in (*without_effect(given), *conflicts(given)):
            self._wrong("OPTION_CONFLICT", problem, self.clauses[name].key, hint)
        self._check_debezium()
        self._check_registry()
        self._check_quotes()

    def _check_topics(self) -> None:
        """Topics are listed or matched; offsets of partitions are those of one topic."""
        pattern = self.clauses.get(TOPIC_PATTERN)
        if pattern is None:
            self._need("topic", f", nor a '{TOPIC_PATTERN}'")
            if (interval := self.clauses.get(DISCOVERY)) is not None:
                problem = f"'{DISCOVERY}' has no effect without '{TOPIC_PATTERN}'"
                hint = "leave it out: every micro-batch looks for new partitions of listed topics"
                self._wrong("OPTION_CONFLICT", problem, interval.key, hint)
            return
        given = self.given
        if "topic" in given:
            problem = f"'topic' and '{TOPIC_PATTERN}' both say which topics are read"
            self._wrong("OPTION_CONFLICT", problem, pattern.key, "leave one out")
        for mode in ("scan.startup.mode", "scan.bounded.mode"):
            if given.get(mode) == "specific-offsets":
                problem = f"'{mode}' = 'specific-offsets' is for one topic, named in 'topic'"
                self._wrong("OPTION_CONFLICT", problem, self.clauses[mode].key)

    def _check_database(self, url: Name) -> None:
        if not url.text.startswith((*DATABASES, "${")):
            hint = (
                f"'url' = '{DATABASES[0]}//host:port/database'; also {' and '.join(DATABASES[1:])}"
            )
            self._refuse("the URL is of another database, which is not supported", url, hint)

    def _check_debezium(self) -> None:
        """Truncation and healing work on rows that a PRIMARY KEY identifies."""
        keyed = {TRUNCATE: "retract", UNAVAILABLE: "heal", KEY_CHANGES: "heal"}
        for name, value in keyed.items():
            clause = self.clauses.get(name)
            if clause is not None and clause.value.text == value and not self.statement.keys:
                problem = f"'{name}' = '{value}' needs a PRIMARY KEY, by which it finds the rows"
                hint = "add PRIMARY KEY (...) NOT ENFORCED"
                self._wrong("OPTION_CONFLICT", problem, clause.key, hint)

    def _check_registry(self) -> None:
        formats = [format_ for _, format_ in self._formats()]
        has = {
            SCHEMA_ID: any(format_.names_schemas for format_ in formats),
            REGISTRY_TIMEOUT: any(format_.registry for format_ in formats),
        }
        for name, has_effect in has.items():
            if name in self.clauses and not has_effect:
                problem = f"'{name}' has no effect without a format that has a schema registry"
                self._wrong("OPTION_CONFLICT", problem, self.clauses[name].key)

    def _check_quotes(self) -> None:
        for start, _ in self._formats():
            quote, disabled = f"{start}quote-character", f"{start}disable-quote-character"
            if quote in self.clauses and self.given.get(disabled, "").lower() == "true":
                problem = f"'{quote}' has no effect with '{disabled}' = 'true'"
                self._wrong("OPTION_CONFLICT", problem, self.clauses[quote].key, "leave one out")

    def _check_formats(self) -> None:
        given = self.clauses
        if "format" in given and "value.format" in given:
            problem = "'format' and 'value.format' are the same option"
            self._wrong("OPTION_CONFLICT", problem, given["value.format"].key, "leave one out")
        if "format" not in given and "value.format" not in given:
            self._need("format")

    def _wrong(self, code: str, message: str, at: Name, hint: str | None = None) -> None:
        self.source.report(CatalogError(code, message, hint), at.start)

    def _refuse(self, message: str, at: Name, hint: str) -> None:
        self.source.report(UnsupportedError("UNSUPPORTED_OPTION", message, hint), at.start)
