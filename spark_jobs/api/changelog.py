"""Changelogs: what PySpark's DataFrame is to Spark's queries, over the tables of a job.

Each is the text of a query. Nothing is planned here: the job's own parser, binder and planner do
that, so an expression, a refusal or a plan is what the same SQL gives.
"""

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Literal, TypeAlias

from pyspark.sql import Column, functions

from spark_jobs.api.columns import conjunction, operand_text, sql_text
from spark_jobs.api.script import Script
from spark_jobs.api.text import interval_text, quoted
from spark_jobs.errors import SqlError
from spark_jobs.plan.facts.intervals import interval_of
from spark_jobs.plan.nodes.logical import Filter, Join, Project
from spark_jobs.plan.rules.order import optimize
from spark_jobs.plan.text.explain import explain_text
from spark_jobs.sql.bind.temporal_functions import create_temporal_table_function

Expression: TypeAlias = Column | str
JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]

# PySpark's names of a join's kind besides ours
_SYNONYMS: dict[str, JoinKind] = {
    "left_outer": "left",
    "leftouter": "left",
    "right_outer": "right",
    "rightouter": "right",
    "outer": "full",
    "full_outer": "full",
    "fullouter": "full",
    "left_semi": "semi",
    "leftsemi": "semi",
    "left_anti": "anti",
    "leftanti": "anti",
}
_WORDS: dict[str, str] = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
}
# Flink's expression strings write an aggregate behind its argument
_BEHIND = re.compile(r"\s*(\(.*\))\.(sum|min|max|avg|count)\s*(?:(?i:as)\s+(\w+))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Changelog:
    """Rows that are inserted, updated and deleted, by a query that has not started.

    Columns are found by name, behind an alias where several tables have them: `col("o.order_id")`.
    A table's alias is its name until `alias` gives another one. `select`, and a join behind
    `where`, end a query block: behind it columns go by the names that it gave them.
    """

    script: Script
    source: str  # what stands behind FROM
    aliases: tuple[str, ...]
    table: str | None = None  # of a whole table or view
    items: str | None = None  # of the select list; None: all columns
    condition: str | None = None
    grouping: str | None = None

    @classmethod
    def of_table(cls, script: Script, name: str) -> "Changelog":
        """A table or view. Raises SqlErrors if there is none."""
        return cls(script, quoted(name), (name,), table=name)._checked()

    @property
    def sql(self) -> str:
        """The query."""
        parts = [f"SELECT {self.items or '*'}", f"FROM {self.source}"]
        if self.condition is not None:
            parts.append(f"WHERE {self.condition}")
        if self.grouping is not None:
            parts.append(f"GROUP BY {self.grouping}")
        return "\n".join(parts)

    @property
    def columns(self) -> list[str]:
        return [field.name for field in self.script.query(self.sql).query.fields]

    def __getitem__(self, name: str) -> Column:
        """The column, qualified by the alias where there is one: `orders["order_id"]`."""
        if name not in self.columns:
            hint = f"there is {', '.join(self.columns)}"
            raise SqlError("UNKNOWN_COLUMN", f"no column {name}", hint)
        path = (*self.aliases, name) if len(self.aliases) == 1 else (name,)
        return functions.col(".".join("`" + part.replace("`", "``") + "`" for part in path))

    def alias(self, name: str) -> "Changelog":
        """The same rows under a name that `col("name.column")` finds."""
        source = quoted(self.table) if self.table is not None else f"(\n{self.sql}\n)"
        named = f"{source} AS {quoted(name)}"
        return Changelog(self.script, named, (name,), table=self.table)

    def select(self, *columns: Expression) -> "Changelog":
        """Columns, expressions with `.alias(...)`, aggregates over all rows, or `"o.*"`."""
        items = ", ".join(_item(column) for column in columns)
        return replace(self._open(), table=None, items=items)._checked()

    def where(self, condition: Expression) -> "Changelog":
        """The rows of which the condition is true."""
        block = self._open()
        text = sql_text(condition)
        both = text if block.condition is None else f"({block.condition}) AND ({text})"
        return replace(block, table=None, condition=both)._checked()

    def group_by(self, *keys: Expression) -> "GroupedChangelog":
        """Groups, for `agg`."""
        return GroupedChangelog(self._open(), tuple(_item(key) for key in keys))

    def join_lateral(
        self,
        call: str,
        on: Expression = "TRUE",
        how: Literal["inner", "left"] = "inner",
        alias: str | None = None,
    ) -> "Changelog":
        """The version of a temporal table function's rows as of a time of this row.

        `call` is what calling the function gives, or Flink SQL: `"rates(o_proctime)"`.
        """
        name = alias or call.partition("(")[0].strip().strip("`")
        call = f"LATERAL TABLE ({call}) AS {quoted(name)}"
        return self._joined(how, call, (name,), on)

    def create_temporal_table_function(
        self, time_attribute: str, primary_key: str | Sequence[str]
    ) -> "TemporalTableFunction":
        """The rows of this table or view as versions of a key; `register_function` names it."""
        key = (primary_key,) if isinstance(primary_key, str) else tuple(primary_key)
        table = self._whole_table("create_temporal_table_function")
        return TemporalTableFunction(self.script, table, time_attribute, key)

    def insert_into(self, table: str) -> None:
        """Add this query to the job: its columns go into the table's, by position.

        Raises:
            SqlErrors: they do not fit, or the query cannot run; the job is as it was.
        """
        self.script.add(f"INSERT INTO {quoted(table)}\n{self.sql}")

    def explain(self) -> str:
        """What `rejoin explain` says of the query alone, before it has a sink."""
        return explain_text(f"{self.script.text}{self.sql};\n", self.script.source_name)

    def _joined(
        self, how: str, element: str, names: tuple[str, ...], on: Expression
    ) -> "Changelog":
        """This, joined with another element of FROM."""
        left = self._open()
        if left.condition is not None:
            left = left._block()
        source = f"{left.source}\n{_WORDS[how]} {element}\n  ON {sql_text(on)}"
        return Changelog(self.script, source, (*left.aliases, *names))._checked()

    def _element(self) -> str:
        """As the right side of a join."""
        block = self if self._is_plain else self._block()
        return block.source if len(block.aliases) < 2 else f"({block.source})"

    @property
    def _is_plain(self) -> bool:
        return self.items is None and self.condition is None

    def _open(self) -> "Changelog":
        """A query block whose select list is still to come."""
        return self if self.items is None else self._block()

    def _block(self) -> "Changelog":
        """This query as one element of FROM, which keeps the alias if it has but one."""
        named = f" AS {quoted(self.aliases[0])}" if len(self.aliases) == 1 else ""
        aliases = self.aliases if len(self.aliases) == 1 else ()
        return Changelog(self.script, f"(\n{self.sql}\n){named}", aliases)

    def _checked(self) -> "Changelog":
        """Raises SqlErrors at the line of Python that is wrong, and not where the job starts."""
        self.script.query(self.sql)
        return self

    def _whole_table(self, what: str) -> str:
        if self.table is None:
            hint = "job.create_view(name, changelog) makes one of a query"
            raise SqlError("UNKNOWN_TABLE", f"{what} takes a whole table or view", hint)
        return self.table


@dataclass(frozen=True, slots=True)
class GroupedChangelog:
    """A changelog in groups."""

    changelog: Changelog
    keys: tuple[str, ...]

    def agg(self, *columns: Expression) -> Changelog:
        """The keys and these aggregates of each group."""
        items = ", ".join([*self.keys, *(_item(column) for column in columns)])
        keys = ", ".join(self.keys)
        grouped = replace(self.changelog, table=None, items=items, grouping=keys)
        return grouped._checked()


@dataclass(frozen=True, slots=True)
class TemporalTableFunction:
    """A table's rows as versions; a call with a time attribute goes to `join_lateral`.

    `name` is the one that `Job.register_function` gave it, or made of the table's and the time's.
    """

    script: Script
    table: str
    time_attribute: str
    primary_key: tuple[str, ...]
    name: str = ""

    def __call__(self, time: Expression) -> str:
        name = self.name or f"{self.table}_as_of_{self.time_attribute}"
        self.declare(name)
        return f"{quoted(name)}({sql_text(time)})"

    def declare(self, name: str) -> None:
        """Raises SqlErrors: no such column, or one that is no time attribute."""
        statement = create_temporal_table_function(
            name, self.table, self.time_attribute, self.primary_key
        )
        self.script.declare_function(name, statement)


def regular_join(
    left: Changelog, right: Changelog, on: Expression, how: str = "inner"
) -> Changelog:
    """All rows of both sides, for as long as the state TTL says; every change changes the result.

    `how` is inner, left, right, full, semi or anti, or PySpark's other names of them. A condition
    that bounds the time attributes of both sides makes it an interval join, as in SQL.
    """
    _same_job(left, right)
    kind = _kind(how)
    if kind not in ("semi", "anti"):
        return left._joined(kind, right._element(), right.aliases, on)
    word = "EXISTS" if kind == "semi" else "NOT EXISTS"
    # its condition reads both sides, so that only the whole query can be checked
    inner = Changelog(right.script, right._element(), right.aliases, condition=sql_text(on))
    return left.where(f"{word} (\n{inner.sql}\n)")


def interval_join(
    left: Changelog,
    right: Changelog,
    on: Expression,
    *,
    left_time: Expression | None = None,
    right_time: Expression | None = None,
    lower: timedelta = timedelta(0),
    upper: timedelta = timedelta(0),
    how: str = "inner",
) -> Changelog:
    """Pairs whose times are close: `left_time + lower <= right_time <= left_time + upper`.

    Without the times, `on` itself bounds them, in any spelling.

    Raises:
        SqlError: the condition leaves a side unbounded, or these are no time attributes; as a
            regular join it would keep its rows for ever.
    """
    _same_job(left, right)
    kind = _kind(how)
    if kind not in _WORDS:
        raise SqlError("WRONG_ARGUMENT", f"how='{how}' is no interval join", _kinds_hint(_WORDS))
    if (left_time is None) != (right_time is None):
        raise SqlError("WRONG_ARGUMENT", "left_time and right_time go together")
    if left_time is not None and right_time is not None:
        on = conjunction(on, _between(left_time, right_time, lower, upper))
    elif lower or upper:
        raise SqlError("WRONG_ARGUMENT", "lower and upper need left_time and right_time")
    joined = left._joined(kind, right._element(), right.aliases, on)
    if not _is_interval(joined):
        raise SqlError(
            "NOT_AN_INTERVAL_JOIN",
            f"the condition does not bound a time attribute of both sides: {sql_text(on)}",
            "both times are columns with a WATERMARK, or PROCTIME(), of rows that are only added,"
            " and have a lower and an upper bound",
        )
    return joined


def temporal_join(
    left: Changelog, right: Changelog, on: Expression, *, as_of: Expression, how: str = "inner"
) -> Changelog:
    """Each left row with the version of the right row that was valid at its time.

    `right` is a whole table or view with a primary key, which `on` compares; `as_of` a time
    attribute of the left side, event time or processing time.
    """
    _same_job(left, right)
    kind = _kind(how)
    if kind not in _WORDS:
        raise SqlError("WRONG_ARGUMENT", f"how='{how}' is no temporal join", "use inner or left")
    table = quoted(right._whole_table("the right side of temporal_join"))
    [alias] = right.aliases
    version = f"{table} FOR SYSTEM_TIME AS OF {sql_text(as_of)} AS {quoted(alias)}"
    return left._joined(kind, version, right.aliases, on)


def _same_job(left: Changelog, right: Changelog) -> None:
    if left.script is not right.script:
        hint = "declare both tables in one job"
        raise SqlError("WRONG_ARGUMENT", "the sides of the join belong to two jobs", hint)


def _item(column: Expression) -> str:
    """One element of a select list."""
    if isinstance(column, str) and (found := _BEHIND.fullmatch(column)) is not None:
        argument, function, name = found.groups()
        named = f" AS {quoted(name)}" if name else ""
        return f"{function.upper()}{argument}{named}"
    return sql_text(column)


def _kind(how: str) -> JoinKind:
    kinds: dict[str, JoinKind] = {
        "inner": "inner", "left": "left", "right": "right", "full": "full", "semi": "semi",
        "anti": "anti", **_SYNONYMS,
    }  # fmt: skip
    kind = kinds.get(how.lower())
    if kind is None:
        raise SqlError("WRONG_ARGUMENT", f"how='{how}' is no kind of join", _kinds_hint(kinds))
    return kind


def _kinds_hint(kinds: dict[str, JoinKind] | dict[str, str]) -> str:
    return f"there is {', '.join(kinds)}"


def _between(
    left_time: Expression, right_time: Expression, lower: timedelta, upper: timedelta
) -> str:
    start, end = _moved(left_time, lower), _moved(left_time, upper)
    return f"{operand_text(right_time)} BETWEEN {start} AND {end}"


def _moved(time: Expression, by: timedelta) -> str:
    micros = by // timedelta(microseconds=1)
    if not micros:
        return operand_text(time)
    return f"{operand_text(time)} {'-' if micros < 0 else '+'} {interval_text(abs(micros))}"


def _is_interval(joined: Changelog) -> bool:
    """What the planner makes of the join: only its rules know which columns are time attributes."""
    bound = joined.script.query(joined.sql)
    node = optimize(bound.query, bound.settings)
    while isinstance(node, Project | Filter):
        node = node.input
    return isinstance(node, Join) and interval_of(node) is not None
