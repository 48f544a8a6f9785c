"""Checks the WITH options of one table: unknown names, wrong values, what is missing or refused."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from spark_jobs.errors import CatalogError, PositionedError, UnsupportedError
from spark_jobs.options.client_properties import CONNECTION, JAVA_ONLY, REFUSED, value_problem
from spark_jobs.options.connectors import (
    CONNECTORS,
    KNOWN_CONNECTORS,
    MANAGED_PROPERTIES,
    NEEDS,
    REGISTRY_OPTIONS,
    REQUIRED,
    TableOptions,
    table_options,
    without_effect,
)
from spark_jobs.options.debezium import KEY_CHANGES, TRUNCATE, UNAVAILABLE, conflicts
from spark_jobs.options.formats import FORMATS, KNOWN_FORMATS
from spark_jobs.options.kinds import Option, is_reference
from spark_jobs.options.secrets import literal_secret
from spark_jobs.sql.parse.source_text import SourceText, nearest
from spark_jobs.sql.parse.statements import CreateTable, Name, OptionClause

_FORMAT_OPTIONS = ("format", "key.format", "value.format")


@dataclass(frozen=True, slots=True)
class _Prefix:
    """The prefix of a format's options: `key.`, `value.`, or none for those of 'format'."""

    text: str
    format: str


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
            self._wrong(
                "OPTION_MISSING",
                f"table {self.statement.name.text} has no 'connector'",
                self.statement.name,
                "add WITH ('connector' = 'kafka', ...)",
            )
            return table_options(self.given)
        known = CONNECTORS.get(connector.value.text)
        if known is None:
            self._unknown_connector(connector.value)
            return table_options(self.given)
        for clause in self.clauses.values():
            if clause is not connector:
                self._check_one(connector.value.text, known, clause)
        for name in REQUIRED[connector.value.text]:
            self._need(name)
        self._check_together(connector.value.text)
        return table_options(self.given)

    def _unknown_connector(self, name: Name) -> None:
        if name.text in KNOWN_CONNECTORS:
            self._refuse(
                f"connector '{name.text}' is not supported",
                name,
                "tables are Kafka topics: 'kafka' or 'upsert-kafka'",
            )
            return
        hint = nearest(name.text, CONNECTORS) or "use 'kafka' or 'upsert-kafka'"
        self._wrong("OPTION_VALUE", f"no connector '{name.text}'", name, hint)

    def _check_one(self, connector: str, known: Mapping[str, Option], clause: OptionClause) -> None:
        name = clause.key.text
        secret = literal_secret(name, clause.value.text)
        if secret is not None:
            self._refuse_secret(name, secret, clause.value)
            return
        if name.startswith("properties."):
            self._check_property(clause)
            return
        option, value = known.get(name) or self._format_option(name), clause.value.text
        if option is None:
            candidates = (*known, *self._format_option_names(), "connector")
            self._wrong(
                "UNKNOWN_OPTION",
                f"connector '{connector}' has no option '{name}'",
                clause.key,
                nearest(name, candidates),
            )
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
        self._wrong(
            "OPTION_VALUE",
            f"'{value.text}' is not valid for '{name}': expected {option.expected}",
            value,
            hint,
        )

    def _refuse_secret(self, name: str, what: str, at: Name) -> None:
        self._wrong(
            "SECRET_IN_SQL",
            f"{what} of '{name}' is a secret, and is written in the SQL text",
            at,
            "refer to it: ${file:/run/secrets/...} or ${env:...}",
        )

    def _check_property(self, clause: OptionClause) -> None:
        name = clause.key.text.removeprefix("properties.")
        why = MANAGED_PROPERTIES.get(name) or REFUSED.get(name)
        if why is not None:
            self._refuse(f"Kafka property '{name}' cannot be set", clause.key, why)
            return
        if name not in CONNECTION and name not in JAVA_ONLY:
            self._wrong(
                "UNKNOWN_OPTION",
                f"Kafka's clients have no property '{name}'",
                clause.key,
                nearest(name, (*CONNECTION, *JAVA_ONLY)),
            )
            return
        problem = value_problem(name, clause.value.text)
        if problem is not None:
            self._refuse(problem[0], clause.value, problem[1])

    def _prefixes(self) -> Iterator[_Prefix]:
        for option in _FORMAT_OPTIONS:
            clause = self.clauses.get(option)
            if clause is not None and clause.value.text in FORMATS:
                yield _Prefix(option.removesuffix("format"), clause.value.text)

    def _format_option(self, name: str) -> Option | None:
        for prefix in self._prefixes():
            start = f"{prefix.text}{prefix.format}."
            if name.startswith(start):
                return FORMATS[prefix.format].options.get(name.removeprefix(start))
        return None

    def _format_option_names(self) -> Iterator[str]:
        for prefix in self._prefixes():
            yield from (f"{prefix.text}{prefix.format}.{o}" for o in FORMATS[prefix.format].options)

    def _need(self, name: str, why: str = "") -> None:
        if name not in self.clauses:
            table = self.statement.name
            self._wrong("OPTION_MISSING", f"table {table.text} has no '{name}'{why}", table)

    def _check_together(self, connector: str) -> None:
        given = self.given
        if connector == "kafka":
            self._check_formats()
        for prefix in self._prefixes():
            for required in FORMATS[prefix.format].required:
                self._need(f"{prefix.text}{prefix.format}.{required}")
        for name, value, needed in NEEDS:
            applies = name in given and value in ("", given[name])
            if applies and needed in CONNECTORS[connector]:
                said = f"'{name}' = '{value}'" if value else f"'{name}'"
                self._need(needed, f", which {said} needs")
        for name, problem, hint in (*without_effect(given), *conflicts(given)):
            self._wrong("OPTION_CONFLICT", problem, self.clauses[name].key, hint)
        self._check_debezium()
        self._check_registry()

    def _check_debezium(self) -> None:
        """Truncation and healing work on rows that a PRIMARY KEY identifies."""
        keyed = {TRUNCATE: "retract", UNAVAILABLE: "heal", KEY_CHANGES: "heal"}
        for name, value in keyed.items():
            clause = self.clauses.get(name)
            if clause is not None and clause.value.text == value and not self.statement.keys:
                self._wrong(
                    "OPTION_CONFLICT",
                    f"'{name}' = '{value}' needs a PRIMARY KEY, by which it finds the rows",
                    clause.key,
                    "add PRIMARY KEY (...) NOT ENFORCED",
                )

    def _check_registry(self) -> None:
        if any(FORMATS[prefix.format].registry for prefix in self._prefixes()):
            return
        for name in REGISTRY_OPTIONS:
            if name in self.clauses:
                self._wrong(
                    "OPTION_CONFLICT",
                    f"'{name}' has no effect without a format that has a schema registry",
                    self.clauses[name].key,
                )

    def _check_formats(self) -> None:
        given = self.clauses
        if "format" in given and "value.format" in given:
            self._wrong(
                "OPTION_CONFLICT",
                "'format' and 'value.format' are the same option",
                given["value.format"].key,
                "leave one out",
            )
        if "format" not in given and "value.format" not in given:
            self._need("format")

    def _wrong(self, code: str, message: str, at: Name, hint: str | None = None) -> None:
        self._report(CatalogError(code, message, hint), at)

    def _refuse(self, message: str, at: Name, hint: str) -> None:
        self._report(UnsupportedError("UNSUPPORTED_OPTION", message, hint), at)

    def _report(self, error: PositionedError, at: Name) -> None:
        self.source.report(error, at.start)
