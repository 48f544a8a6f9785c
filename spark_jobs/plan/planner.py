"""Logical to physical: join kind, sink mode, what is read above the sources.

The logical plan that is planned here went through the rules and has their one shape; what cannot
run is refused before.
"""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from spark_jobs.errors import PositionedError, SqlErrors
from spark_jobs.plan.changelog import INSERT, kinds, mode_text, sink_mode
from spark_jobs.plan.joins import JoinSides, join_inputs, join_sides, regular_side
from spark_jobs.plan.keys import Key, and_all, key_order, unique_keys
from spark_jobs.plan.logical import Filter, Join, Logical, Sink
from spark_jobs.plan.logical import Project as Select
from spark_jobs.plan.physical import (
    KafkaSink,
    Named,
    Operator,
    Project,
    QueryPlan,
    RegularJoin,
    TemporalJoin,
    TemporalSide,
)
from spark_jobs.plan.refusals import refusals
from spark_jobs.plan.rules import optimize
from spark_jobs.plan.scans import Shape, column_names, normalized, scan, setting, text_of, time_zone
from spark_jobs.plan.sources import Source, source_of
from spark_jobs.sql.binder import Job
from spark_jobs.sql.expr import Column, Expr, columns
from spark_jobs.sql.options import parse_duration_ms
from spark_jobs.sql.spark_text import render
from spark_jobs.sql.types import DataType, RowField

BARE_QUERY = "query"


@dataclass(frozen=True, slots=True)
class Query:
    """An optimised query taken apart: SELECT list, condition above the source, source, sink."""

    select: Select
    where: Expr | None
    source: Logical
    sink: Sink | None
    settings: Mapping[str, str]

    @property
    def mode(self) -> str:
        """What the sink takes; a query without a sink shows all changes."""
        return "retract" if self.sink is None else sink_mode(self.sink.table)

    @property
    def is_updating(self) -> bool:
        return kinds(self.select) != INSERT

    @property
    def update_before(self) -> bool:
        return self.mode != "upsert"

    @property
    def sink_key(self) -> tuple[int, ...]:
        """Positions of an upsert sink's primary key in the SELECT list."""
        if self.sink is None or self.mode != "upsert":
            return ()
        names = [c.name for c in self.sink.table.columns if c.writable]
        return tuple(names.index(name) for name in self.sink.table.primary_key)


def plan(job: Job) -> tuple[QueryPlan, ...]:
    """One plan per INSERT. Raises SqlErrors with everything that cannot run."""
    problems: list[PositionedError] = []
    plans: list[QueryPlan] = []
    for name, insert in zip(query_names(job), job.inserts, strict=True):
        optimized = optimize(insert)
        found = list(refusals(insert, optimized))
        problems += found
        if not problems:
            plans.append(_plan(optimized, name, job.settings))
    if problems:
        for problem in problems:
            problem.locate(job.text, job.source_name)
        raise SqlErrors(problems)
    return tuple(plans)


def plan_query(query: Logical, settings: Mapping[str, str] | None = None) -> QueryPlan:
    """The plan of one query, with or without a sink."""
    optimized = optimize(query)
    problems = list(refusals(query, optimized))
    if problems:
        raise SqlErrors(problems)
    name = optimized.table.name if isinstance(optimized, Sink) else BARE_QUERY
    return _plan(optimized, name, settings or {})


def query_names(job: Job) -> tuple[str, ...]:
    """A query is called after its sink; the second one into it gets a number."""
    seen: dict[str, int] = {}
    names: list[str] = []
    for insert in job.inserts:
        count = seen[insert.table.name] = seen.get(insert.table.name, 0) + 1
        names.append(insert.table.name if count == 1 else f"{insert.table.name}_{count}")
    return tuple(names)


def take_apart(optimized: Logical, settings: Mapping[str, str]) -> Query:
    """Read the one shape that the rules leave behind."""
    sink = optimized if isinstance(optimized, Sink) else None
    select = sink.input if sink else optimized
    match select:
        case Select(input=Filter(input=Join() as join, condition=where)):
            return Query(select, where, join, sink, settings)
        case Select(input=inner):
            return Query(select, None, inner, sink, settings)
        case _:
            raise ValueError("the optimised plan has no SELECT list on top")


def _plan(optimized: Logical, name: str, settings: Mapping[str, str]) -> QueryPlan:
    query = take_apart(optimized, settings)
    if isinstance(query.source, Join):
        project, warnings, exchange = _over_join(query, query.source)
    else:
        project, warnings, exchange = _over_source(query), (), False
    root = project if query.sink is None else _sink(query, query.sink, project, name, exchange)
    return QueryPlan(name, root, warnings)


def _over_join(query: Query, join: Join) -> tuple[Project, tuple[str, ...], bool]:
    read = [*query.select.exprs, *(e for e in (query.where,) if e is not None)]
    sides = join_sides(join, read)
    operator = _regular(query, join, sides) if join.as_of is None else _temporal(query, join, sides)
    exchange = query.mode == "upsert" and query.is_updating and not _keeps_order(query, join, sides)
    return _project(query, operator, sides.names), _join_warnings(join, sides), exchange


def _regular(query: Query, join: Join, sides: JoinSides) -> RegularJoin:
    return RegularJoin(
        join_type="left" if join.kind == "left" else "inner",
        left=regular_side(sides.left, sides.kept_names(0)),
        right=regular_side(sides.right, sides.kept_names(1)),
        key=sides.key_type,
        filter_nulls=tuple(not k.null_safe for k in sides.condition.keys),
        residual=text_of(and_all(sides.condition.residual), sides.names),
        where=text_of(query.where, sides.names),
        update_before=query.update_before,
        pair_by=_pair_by(query, sides.names),
        time_zone=time_zone(query.settings),
        inputs=join_inputs(join, sides, query.settings),
        changelog_mode=mode_text(kinds(join), query.update_before),
        unique_keys=sides.named(unique_keys(join)),
    )


def _temporal(query: Query, join: Join, sides: JoinSides) -> TemporalJoin:
    inputs = join_inputs(join, sides, query.settings)
    idle = parse_duration_ms(setting(query.settings, "table.exec.source.idle-timeout"))
    first = len(sides.left.source.table.topics)
    return TemporalJoin(
        join_type="left" if join.kind == "left" else "inner",
        left=TemporalSide(inputs[0].schema, sides.left.upsert),
        right=TemporalSide(inputs[1].schema, sides.right.upsert),
        key=sides.key_type,
        filter_nulls=tuple(not k.null_safe for k in sides.condition.keys),
        residual=text_of(and_all(sides.condition.residual), sides.names),
        where=text_of(query.where, sides.names),
        update_before=query.update_before,
        pair_by=_pair_by(query, sides.names),
        left_topics=tuple(range(first)),
        right_topics=tuple(range(first, first + len(sides.right.source.table.topics))),
        idle_timeout_ms=idle or 0,
        watermark_policy=setting(query.settings, "rejoin.watermark.policy"),
        time_zone=time_zone(query.settings),
        inputs=inputs,
        changelog_mode=mode_text(kinds(join), query.update_before),
        unique_keys=sides.named(unique_keys(join)),
    )


def _pair_by(query: Query, names: tuple[str, ...]) -> tuple[str, ...] | None:
    if query.mode != "upsert" or not query.is_updating:
        return None
    return tuple(render(query.select.exprs[i], names) for i in query.sink_key)


def _keeps_order(query: Query, join: Join, sides: JoinSides) -> bool:
    """Whether all changes of one sink key come from one join key, hence from one task in order."""
    width = len(join.left.fields)
    exprs = [query.select.exprs[i] for i in query.sink_key]
    plain = {e.index for e in exprs if isinstance(e, Column)}
    left = frozenset(i for i in plain if i < width)
    right = (
        frozenset(i - width for i in plain if i >= width) if join.kind == "inner" else frozenset()
    )
    if _fixes_row(join.left, left) or _fixes_row(join.right, right):
        return True
    return all(
        columns((k.left,)) <= left or columns((k.right,)) <= right for k in sides.condition.keys
    )


def _fixes_row(node: Logical, key: Key) -> bool:
    """Whether the key names a row that never changes."""
    return kinds(node) == INSERT and any(unique <= key for unique in unique_keys(node))


def _over_source(query: Query) -> Project:
    source = source_of(query.select)
    if source is None:
        raise ValueError("the source of a query without a join is not a table")
    table = source.table
    if table.changelog == "upsert" and not _same_key(query, source):
        keeps = query.update_before or not _is_key(query, source)
        node: Operator = normalized(source, source.exprs, query.settings, update_before=keeps)
    else:
        node = scan(source, _stateless_shape(source), query.settings)
    return _project(query, node, tuple(column_names(table)), source.exprs)


def _same_key(query: Query, source: Source) -> bool:
    """Upserts into an upsert sink of the same key need no state: each record says it all."""
    return query.mode == "upsert" and _is_key(query, source)


def _is_key(query: Query, source: Source) -> bool:
    exprs = [source.exprs[i] for i in query.sink_key]
    names = {e.name for e in exprs if isinstance(e, Column)}
    return len(names) == len(exprs) and names == set(source.table.primary_key)


def _stateless_shape(source: Source) -> Shape:
    """Raw columns; without a primary key the rows keep the order of their partition."""
    table = source.table
    read = columns(source.exprs) | {table.index(name) for name in table.primary_key}
    row = {i: Column(i, table.columns[i].name, table.columns[i].type) for i in sorted(read)}
    key = tuple(row[table.index(name)] for name in table.primary_key)
    return Shape(row=tuple((c.name, c) for c in row.values()), key=key)


def _project(
    query: Query, node: Operator, names: tuple[str, ...], exprs: Iterable[Expr] | None = None
) -> Project:
    outputs = _outputs(query)
    texts = [render(e, names) for e in (query.select.exprs if exprs is None else exprs)]
    fields = tuple(RowField(name, type_) for name, type_ in outputs)
    ordered = sorted(unique_keys(query.select), key=key_order)
    return Project(
        select=tuple(Named(n, t) for (n, _), t in zip(outputs, texts, strict=True)),
        schema=DataType("ROW", nullable=False, fields=fields),
        input=node,
        changelog_mode=node.changelog_mode,
        unique_keys=tuple(tuple(outputs[i][0] for i in sorted(k)) for k in ordered),
    )


def _outputs(query: Query) -> list[tuple[str, DataType]]:
    if query.sink is None:
        return [(f.name, f.type) for f in query.select.fields]
    return [(c.name, c.type) for c in query.sink.table.columns if c.writable]


def _sink(query: Query, sink: Sink, project: Project, name: str, exchange: bool) -> KafkaSink:
    table = sink.table
    value_format = table.value_format
    if value_format is None:
        raise ValueError(f"table {table.name} has no value format")
    mode = sink_mode(table)
    return KafkaSink(
        name=name,
        table=table.name,
        topic=table.topics[0],
        mode=mode,
        key_format=table.key_format,
        value_format=value_format,
        key_fields=table.key_fields,
        key_prefix=table.key_prefix,
        value_includes_key=table.value_includes_key,
        schema=project.schema,
        guarantee=table.option("sink.delivery-guarantee") or "exactly-once",
        transactional_id_prefix=table.option("sink.transactional-id-prefix"),
        properties=table.properties,
        exchange=exchange,
        input=project,
    )


def _join_warnings(join: Join, sides: JoinSides) -> tuple[str, ...]:
    found: list[str] = []
    left, right = sides.left.source.table.name, sides.right.source.table.name
    if join.as_of is None:
        found.append(f"state grows without bound: rows of {left} and {right} are kept for ever")
    if not sides.condition.keys:
        found.append(
            "no equality between the inputs: all rows go to one key group, one task does the work"
        )
    if join.as_of is not None and _right_is_normalised(sides):
        found.append(
            f"deletions of {right} carry its primary key only and the join key has more columns:"
            " a deletion takes effect at the time of the row it deletes"
        )
    return tuple(found)


def _right_is_normalised(sides: JoinSides) -> bool:
    return sides.right.source.table.changelog == "upsert" and not sides.right.upsert
