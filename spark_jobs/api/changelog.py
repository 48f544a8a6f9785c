"""Changelogs: to the tables of a job what PySpark's DataFrames are to Spark's tables.

A changelog only builds the text of a query. The job's parser, binder and planner do the rest, so
expressions, errors and plans are those of the same SQL.
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
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.rules.order import optimize
from spark_jobs.plan.text.explain import explain_text
from spark_jobs.sql.bind.temporal_functions import create_temporal_table_function
from spark_jobs.sql.logical import Filter, Join, Project

Expression: TypeAlias = Column | str
JoinKind: TypeAlias = Literal["inner", "left", "right", "full", "semi", "anti"]

# PySpark's other names for the kinds of join
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
_JOIN_SQL: dict[str, str] = {
    "inner": "JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
}
# the Table API's expression strings write an aggregate after its argument: (amount).sum as total
_POSTFIX = re.compile(r"\s*(\(.*\))\.(sum|min|max|avg|count)\s*(?:(?i:as)\s+(\w+))?\s*", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Changelog:
    """The rows of a query that has not started, as inserts, updates and deletes.

    Columns are found by name, or with an alias where several tables have them: `col("o.order_id")`.
    A table's alias is its name unless `alias` gives another one. `select`, and a join after
    `where`, end a query block: after that, only the names in its select list are known.
    """

    script: Script
    source: str  # the text after FROM
    aliases: tuple[str, ...]
    table: str | None = None  # its name, if this is a whole table or view
    items: str | None = None  # the select list; None for all columns
    condition: str | None = None
    grouping: str | None = None

    @classmethod
    def of_table(cls, script: Script, name: str) -> "Changelog":
        """A table or view. Raises SqlErrors if it does not exist."""
        return cls(script, quoted(name), (name,), table=name)._checked()

    @property
    def sql(self) -> str:
        """The query as Flink SQL."""
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
        """A column, qualified by the alias if there is one: `orders["order_id"]`."""
        if name not in self.columns:
            hint = f"its columns: {', '.join(self.columns)}"
            raise SqlError("UNKNOWN_COLUMN", f"no column {name}", hint)
        path = (*self.aliases, name) if len(self.aliases) == 1 else (name,)
        return functions.col(".".join("`" + part.replace("`", "``") + "`" for part in path))

    def alias(self, name: str) -> "Changelog":
        """The same rows under an alias: their columns are `col("name.column")`."""
        source = quoted(self.table) if self.table is not None else f"(\n{self.sql}\n)"
        named = f"{source} AS {quoted(name)}"
        return Changelog(self.script, named, (name,), table=self.table)

    def select(self, *columns: Expression) -> "Changelog":
        """Columns, expressions with `.alias(...)`, aggregates over all rows, or `"o.*"`."""
        items = ", ".join(_item(column) for column in columns)
        return replace(self._without_select_list(), table=None, items=items)._checked()

    def where(self, condition: Expression) -> "Changelog":
        """The rows for which the condition is true."""
        block = self._without_select_list()
        text = sql_text(condition)
        both = text if block.condition is None else f"({block.condition}) AND ({text})"
        return replace(block, table=None, condition=both)._checked()

    def group_by(self, *keys: Expression) -> "GroupedChangelog":
        """Group the rows; `agg` computes the aggregates."""
        return GroupedChangelog(self._without_select_list(), tuple(_item(key) for key in keys))

    def join_lateral(
        self,
        call: str,
        on: Expression = "TRUE",
        how: Literal["inner", "left"] = "inner",
        alias: str | None = None,
    ) -> "Changelog":
        """Join each row with the versions that a temporal table function has as of a time.

        `call` is the result of calling the function, or Flink SQL: `"rates(o_proctime)"`.
        """
        name = alias or call.partition("(")[0].strip().strip("`")
        call = f"LATERAL TABLE ({call}) AS {quoted(name)}"
        return self._joined(how, call, (name,), on)

    def create_temporal_table_function(
        self, time_attribute: str, primary_key: str | Sequence[str]
    ) -> "TemporalTableFunction":
        """The rows of this table or view as versions by key."""
        key = (primary_key,) if isinstance(primary_key, str) else tuple(primary_key)
        table = self._whole_table("create_temporal_table_function")
        return TemporalTableFunction(self.script, table, time_attribute, key)

    def insert_into(self, table: str) -> None:
        """Add `INSERT INTO table` with this query to the job; columns match by position.

        Raises:
            SqlErrors: the columns do not fit, or the query cannot run; the job is unchanged.
        """
        self.script.add(f"INSERT INTO {quoted(table)}\n{self.sql}")

    def explain(self) -> str:
        """What `rejoin explain` prints for the query alone, before it has a sink."""
        return explain_text(f"{self.script.text}{self.sql};\n", self.script.source_name)

    def _joined(
        self, how: str, element: str, names: tuple[str, ...], on: Expression
    ) -> "Changelog":
        """This changelog joined with another element of FROM."""
        left = self._without_select_list()
        if left.condition is not None:
            left = left._as_subquery()
        source = f"{left.source}\n{_JOIN_SQL[how]} {element}\n  ON {sql_text(on)}"
        return Changelog(self.script, source, (*left.aliases, *names))._checked()

    def _as_right_side(self) -> str:
        """The text of this changelog as the right side of a join."""
        block = self if self._is_unfiltered else self._as_subquery()
        return block.source if len(block.aliases) < 2 else f"({block.source})"

    @property
    def _is_unfiltered(self) -> bool:
        return self.items is None and self.condition is None

    def _without_select_list(self) -> "Changelog":
        """A query block that has no select list yet."""
        return self if self.items is None else self._as_subquery()

    def _as_subquery(self) -> "Changelog":
        """This query as one element of FROM; keeps the alias if there is only one."""
        named = f" AS {quoted(self.aliases[0])}" if len(self.aliases) == 1 else ""
        aliases = self.aliases if len(self.aliases) == 1 else ()
        return Changelog(self.script, f"(\n{self.sql}\n){named}", aliases)

    def _checked(self) -> "Changelog":
        """Bind the query now, so that SqlErrors come from the line of Python that is wrong."""
        self.script.query(self.sql)
        return self

    def _whole_table(self, what: str) -> str:
        if self.table is None:
            hint = "turn the query into a view: job.create_view(name, changelog)"
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
    """The rows of a table as versions by key. Calling it with a time gives `join_lateral`'s `call`.

    `name` is the one given by `Job.register_function`; without one, it is made of the names of
    the table and the time attribute.
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
        """Add the function to the job. Raises SqlErrors if a column is unknown or unfit."""
        statement = create_temporal_table_function(
            name, self.table, self.time_attribute, self.primary_key
        )
        self.script.declare_function(name, statement)


def regular_join(
    left: Changelog, right: Changelog, on: Expression, how: str = "inner"
) -> Changelog:
    """Join all rows of both sides; every change of a row updates the result.

    State grows with the rows unless a state TTL removes them. `how` is inner, left, right, full,
    semi, anti or one of PySpark's synonyms. As in SQL, a condition that bounds the time attributes
    of both sides makes it an interval join.
    """
    _same_job(left, right)
    kind = _kind(how)
    if kind not in ("semi", "anti"):
        return left._joined(kind, right._as_right_side(), right.aliases, on)
    word = "EXISTS" if kind == "semi" else "NOT EXISTS"
    # the condition reads both sides, so only the whole query can be checked
    inner = Changelog(right.script, right._as_right_side(), right.aliases, condition=sql_text(on))
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
    """Join rows whose times are close: `left_time + lower <= right_time <= left_time + upper`.

    Without `left_time` and `right_time`, `on` itself has to bound the times.

    Raises:
        SqlError: the condition does not bound a time attribute of both sides. It would be a
            regular join, which keeps all its rows.
    """
    _same_job(left, right)
    kind = _kind(how)
    if kind not in _JOIN_SQL:
        raise SqlError(
            "WRONG_ARGUMENT", f"how='{how}' does not fit an interval join", _kinds_hint(_JOIN_SQL)
        )
    if (left_time is None) != (right_time is None):
        raise SqlError("WRONG_ARGUMENT", "give both left_time and right_time, or neither")
    if left_time is not None and right_time is not None:
        on = conjunction(on, _time_bound(left_time, right_time, lower, upper))
    elif lower or upper:
        raise SqlError("WRONG_ARGUMENT", "lower and upper need left_time and right_time")
    joined = left._joined(kind, right._as_right_side(), right.aliases, on)
    if not _is_interval(joined):
        raise SqlError(
            "NOT_AN_INTERVAL_JOIN",
            f"the condition does not bound a time attribute of both sides: {sql_text(on)}",
            "both times have to be columns with a WATERMARK, or PROCTIME(), of append-only tables,"
            " with a lower and an upper bound",
        )
    return joined


def temporal_join(
    left: Changelog, right: Changelog, on: Expression, *, as_of: Expression, how: str = "inner"
) -> Changelog:
    """Join each left row with the version of the right row that was valid at the left row's time.

    `right` is a whole table or view with a primary key, which `on` compares. `as_of` is a time
    attribute of the left side, in event time or processing time.
    """
    _same_job(left, right)
    kind = _kind(how)
    if kind not in _JOIN_SQL:
        raise SqlError(
            "WRONG_ARGUMENT", f"how='{how}' does not fit a temporal join", "use inner or left"
        )
    table = quoted(right._whole_table("the right side of temporal_join"))
    [alias] = right.aliases
    version = f"{table} FOR SYSTEM_TIME AS OF {sql_text(as_of)} AS {quoted(alias)}"
    return left._joined(kind, version, right.aliases, on)


def _same_job(left: Changelog, right: Changelog) -> None:
    if left.script is not right.script:
        hint = "declare both tables in one job"
        raise SqlError("WRONG_ARGUMENT", "the two sides of the join belong to different jobs", hint)


def _item(column: Expression) -> str:
    """One element of a select list."""
    if isinstance(column, str) and (found := _POSTFIX.fullmatch(column)) is not None:
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
    return f"known: {', '.join(kinds)}"


def _time_bound(
    left_time: Expression, right_time: Expression, lower: timedelta, upper: timedelta
) -> str:
    start, end = _shifted(left_time, lower), _shifted(left_time, upper)
    return f"{operand_text(right_time)} BETWEEN {start} AND {end}"


def _shifted(time: Expression, by: timedelta) -> str:
    micros = by // timedelta(microseconds=1)
    if not micros:
        return operand_text(time)
    return f"{operand_text(time)} {'-' if micros < 0 else '+'} {interval_text(abs(micros))}"


def _is_interval(joined: Changelog) -> bool:
    """Whether the planner makes an interval join of it; only its rules know the time attributes."""
    bound = joined.script.query(joined.sql)
    node = optimize(bound.query, bound.settings)
    while isinstance(node, Project | Filter):
        node = node.input
    return isinstance(node, Join) and facts(node).interval is not None
