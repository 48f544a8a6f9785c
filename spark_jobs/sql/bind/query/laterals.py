"""Binds LATERAL TABLE: temporal table functions and SNAPSHOT become joins of their own kinds."""

from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from spark_jobs.sql.bind.expressions import ExpressionBinder
from spark_jobs.sql.bind.namespace import TemporalFunction
from spark_jobs.sql.bind.query.context import QueryContext
from spark_jobs.sql.bind.query.relations import (
    Relations,
    aliased,
    join_scope,
    on_condition,
    table_or_view,
)
from spark_jobs.sql.bind.scope import Relation, Scope
from spark_jobs.sql.logical import Deduplicate, Join, JoinType, Logical, Snapshot
from spark_jobs.sql.parse.positions import start_of
from spark_jobs.sql.parse.source_text import NotBoundError, nearest
from spark_jobs.sql.parse.statements import Name
from spark_jobs.sql.parse.syntax import NamedArgument, TableArgument
from spark_jobs.sql.types.expr import Expr, Literal
from spark_jobs.sql.types.instants import instant_ms

# the arguments of SNAPSHOT, in the order for those without names
_SNAPSHOT = (
    "input",
    "load_completed_condition",
    "load_completed_time",
    "load_completed_idle_timeout",
    "state_ttl",
)
_CONDITIONS = ("compile_time", "user_time")


def bind_lateral(
    context: QueryContext, left: Logical, relations: Relations, node: exp.Expr, kind: JoinType
) -> tuple[Join, Relations]:
    """The join with a table function, and what it adds to FROM.

    Raises:
        PositionedError: no such function, or arguments that it does not take.
    """
    call = node.this
    if kind not in ("inner", "left"):
        context.refuse(call, f"{kind.upper()} JOIN LATERAL", "use JOIN or LEFT JOIN")
    name = call.name
    if name.upper() == "SNAPSHOT":
        return _snapshot(context, left, relations, node, kind)
    function = context.names.functions.get(name)
    if function is None and name in context.source.broken:
        raise NotBoundError
    if function is None:
        hint = nearest(name, (*context.names.functions, "SNAPSHOT")) or (
            "CREATE TEMPORAL TABLE FUNCTION declares one"
        )
        context.refuse(call, f"the table function {name.upper()}", hint)
    return _as_of(context, left, relations, node, kind, function)


def _as_of(
    context: QueryContext,
    left: Logical,
    relations: Relations,
    node: exp.Expr,
    kind: JoinType,
    function: TemporalFunction,
) -> tuple[Join, Relations]:
    call = node.this
    arguments = call.expressions
    if len(arguments) != 1 or isinstance(arguments[0], (NamedArgument, TableArgument)):
        takes = f"{call.name} takes one time attribute of the left side"
        context.at.fail("WRONG_ARGUMENT", takes, call)
    as_of = ExpressionBinder(join_scope(context, relations)).bind(call.expressions[0])
    position = context.position(call)
    versions = Deduplicate(function.input, function.key, function.time, "last", position)
    right = aliased(context.source, versions, call.args.get("alias"))
    added = (Relation(call.alias or call.name, right.fields, len(left.fields)),)
    needs_on = bool(node.args.get("side"))
    condition = on_condition(context, node, (*relations, *added), needs_on)
    return Join(left, right, kind, condition, as_of, position), added


def _snapshot(
    context: QueryContext, left: Logical, relations: Relations, node: exp.Expr, kind: JoinType
) -> tuple[Join, Relations]:
    call = node.this
    arguments = _SnapshotArguments(context, _by_name(context, call))
    snapshot, ttl_ms = arguments.snapshot(), arguments.duration("state_ttl")
    table = arguments.input(call)
    found = table_or_view(context.source, context.names, table)
    right = aliased(context.source, found, call.args.get("alias"))
    added = (Relation(call.alias or table.text, right.fields, len(left.fields)),)
    condition = on_condition(context, node, (*relations, *added), True)
    position = context.position(call)
    joined = Join(left, right, kind, condition, None, position, snapshot, (None, ttl_ms))
    return joined, added


def _by_name(context: QueryContext, call: exp.Expr) -> dict[str, exp.Expr]:
    """The arguments by their names, also those that stand at their place without one."""
    found: dict[str, exp.Expr] = {}
    for place, argument in enumerate(call.expressions):
        value = argument
        name = _SNAPSHOT[place] if place < len(_SNAPSHOT) else f"{place + 1}."
        if isinstance(argument, NamedArgument):
            name, value = argument.name.lower(), argument.expression
        hint = nearest(name, _SNAPSHOT) or f"use one of {', '.join(_SNAPSHOT)}"
        if name not in _SNAPSHOT:
            context.at.fail("WRONG_ARGUMENT", f"SNAPSHOT has no argument {name}", argument, hint)
        if name in found:
            twice = f"argument {name} of SNAPSHOT is given twice"
            context.at.fail("WRONG_ARGUMENT", twice, argument, hint)
        found[name] = value
    return found


@dataclass(frozen=True, slots=True)
class _SnapshotArguments:
    """The arguments of SNAPSHOT; every value is a constant."""

    context: QueryContext
    given: dict[str, exp.Expr]

    def input(self, call: exp.Expr) -> Name:
        table = self.given.get("input")
        if not isinstance(table, TableArgument):
            self._wrong("SNAPSHOT needs the argument input => TABLE name", table or call)
        return Name(table.name, start_of(table.this))

    def snapshot(self) -> Snapshot:
        """When the build side counts as loaded.

        `compile_time`, the default, has no time: the rows that the topics hold at the first start
        of the job have to be loaded.
        """
        node = self.given.get("load_completed_condition")
        at = self.given.get("load_completed_time")
        condition = "compile_time" if node is None else self._text(node)
        if condition not in _CONDITIONS and node is not None:
            known = " or ".join(_CONDITIONS)
            self._wrong(f"load_completed_condition is {known}, found '{condition}'", node)
        if condition == "user_time" and at is None and node is not None:
            self._wrong("'user_time' needs load_completed_time", node)
        if condition == "compile_time" and at is not None:
            self._wrong("load_completed_time needs load_completed_condition => 'user_time'", at)
        at_ms = None if at is None else self._instant(at)
        return Snapshot(at_ms, self.duration("load_completed_idle_timeout"))

    def duration(self, name: str) -> int | None:
        """An INTERVAL in milliseconds."""
        node = self.given.get(name)
        if node is None:
            return None
        value = self._constant(node)
        if not (isinstance(value, Literal) and value.type.name == "INTERVAL_DAY"):
            self._wrong(f"{name} must be a constant INTERVAL DAY TO SECOND", node)
        if not isinstance(value.value, int) or value.value < 0:
            self._wrong(f"{name} must not be negative", node)
        return value.value

    def _instant(self, node: exp.Expr) -> int:
        value = self._constant(node)
        found = instant_ms(value, self.context.names.settings.time_zone)
        if found is None:
            self._wrong(
                "load_completed_time must be a constant TIMESTAMP_LTZ",
                node,
                "CAST(TIMESTAMP '2026-01-01 00:00:00' AS TIMESTAMP_LTZ(3))",
            )
        return found

    def _text(self, node: exp.Expr) -> str:
        value = self._constant(node)
        if not (isinstance(value, Literal) and isinstance(value.value, str)):
            self._wrong("load_completed_condition must be a constant STRING", node)
        return value.value

    def _constant(self, node: exp.Expr) -> Expr:
        return ExpressionBinder(Scope(self.context.source, ())).bind(node)

    def _wrong(self, message: str, node: exp.Expr, hint: str | None = None) -> NoReturn:
        self.context.at.fail("WRONG_ARGUMENT", message, node, hint)
