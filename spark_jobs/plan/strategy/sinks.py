"""The end of a query: SELECT list and sink, and what keeps the changes of a sink key in order."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import assert_never

from spark_jobs.formats.columns import check_written
from spark_jobs.plan.facts.changelog import INSERT, mode_text, sink_mode
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.keys import Key, is_unique, key_order, smallest
from spark_jobs.plan.facts.sources import Source, peel, source_of
from spark_jobs.plan.nodes.parts import MetadataColumn, Named
from spark_jobs.plan.nodes.physical import (
    KafkaSink,
    KeyChanges,
    LookupJoin,
    Normalize,
    Operator,
    Project,
    Results,
    Stateful,
    TemporalJoin,
)
from spark_jobs.plan.spark_sql.expressions import render
from spark_jobs.plan.strategy.building import Building, Required, Shape
from spark_jobs.plan.strategy.healing import needs_rows
from spark_jobs.plan.strategy.multi_join import Chain
from spark_jobs.plan.strategy.python_columns import (
    PythonColumns,
    divided,
    read_by,
    refuse_calls,
    select_lists,
)
from spark_jobs.plan.strategy.row_operators import materialized
from spark_jobs.plan.strategy.scans import (
    column_names,
    is_normalized,
    key_columns,
    normalized,
    scan,
    value_columns,
    value_format,
)
from spark_jobs.plan.strategy.tree import Operated, branches, fed, operate, stateful_below
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Join,
    Logical,
    Rank,
    Sink,
    Union,
    Unnest,
    all_columns,
    column,
)
from spark_jobs.sql.logical import Project as Select
from spark_jobs.sql.types.data_types import DataType, RowField
from spark_jobs.sql.types.expr import Column, Expr, columns, conjuncts


@dataclass(frozen=True, slots=True)
class Target:
    """Where the rows of a SELECT list go: the sink's columns, or those of the query itself.

    `mode` is what the sink takes; a query without a sink shows all changes.
    """

    sink: Sink | None
    columns: tuple[tuple[str, DataType], ...]
    mode: str
    updating: bool

    @property
    def key(self) -> tuple[int, ...]:
        """Positions of an upsert sink's primary key in the SELECT list."""
        if self.sink is None or self.mode != "upsert":
            return ()
        names = [name for name, _ in self.columns]
        return tuple(names.index(name) for name in self.sink.table.primary_key)

    @property
    def record_key(self) -> tuple[int, ...]:
        """Positions in the SELECT list of the columns by which records go to partitions."""
        names = [name for name, _ in self.columns]
        keys = () if self.sink is None else self.sink.table.key_fields
        return tuple(names.index(name) for name in keys)

    @property
    def schema(self) -> DataType:
        fields = tuple(RowField(name, type_) for name, type_ in self.columns)
        return DataType("ROW", nullable=False, fields=fields)

    def pair_by(self, exprs: Sequence[Expr]) -> tuple[Expr, ...] | None:
        """The sink's key over what the SELECT list's expressions are over."""
        if self.mode != "upsert" or not self.updating:
            return None
        return tuple(exprs[i] for i in self.key)


@dataclass(frozen=True, slots=True)
class _Branch:
    """A SELECT list over its operator.

    `in_order`: all changes of one record key leave one task in order. `netted`: a batch has at
    most one retraction and one addition of a row.
    """

    project: Project
    in_order: bool
    netted: bool


def target_of(optimized: Logical, building: Building) -> Target:
    updating = facts(optimized).kinds != INSERT
    if not isinstance(optimized, Sink):
        fields = tuple((f.name, f.type) for f in optimized.fields)
        return Target(None, fields, "retract", updating)
    table = optimized.table
    writable = tuple((c.name, c.type) for c in table.columns if c.writable)
    return Target(optimized, writable, sink_mode(table), updating)


def root(optimized: Logical, name: str, building: Building) -> KafkaSink | Results:
    """The whole query."""
    target = target_of(optimized, building)
    if target.sink is None:
        return Results(tuple(b.project for b in _branches(optimized, target, building)))
    select = target.sink.input
    if building.is_real_time:  # Spark runs no Python there
        refuse_calls(select_lists(select), "in real-time mode", "SET 'rejoin.mode' = 'micro-batch'")
    if _is_materialized(select, target, building):
        return _over_materializer(select, target, target.sink, name, building)
    found = list(_branches(select, target, building))
    exchange = target.updating and _meets_again(found, target)
    if exchange and target.mode == "upsert" and building.is_real_time:
        # an exchange puts the changes of a whole epoch in order, and here they leave before its end
        return _over_materializer(select, target, target.sink, name, building)
    projects = tuple(b.project for b in found)
    return _sink(target, target.sink, projects, name, exchange, building)


def _over_materializer(
    select: Logical, target: Target, sink: Sink, name: str, building: Building
) -> KafkaSink:
    where = f"in front of the materialiser of {sink.table.name}"
    hint = "declare the key of the query's rows as the PRIMARY KEY of the sink"
    refuse_calls(select_lists(select), where, hint)
    project = _materialized(select, target, sink, building)
    return _sink(target, sink, (project,), name, False, building)


def _meets_again(found: Sequence[_Branch], target: Target) -> bool:
    """Whether the changes of one record key come from several tasks and can be put in order.

    Retractions then go first. That is the order only where a key's changes of a batch are netted:
    as for upsert sinks always, and for others if no branch emits in order of arrival.
    """
    in_order = len(found) == 1 and found[0].in_order
    can = target.mode == "upsert" or all(branch.netted for branch in found)
    return bool(target.record_key) and can and not in_order


def _is_materialized(select: Logical, target: Target, building: Building) -> bool:
    """Whether a sink key may stand for several rows at a time, so that all must be kept.

    Flink requires an upsert key within the sink's key; here a unique key is enough, because all
    changes of a sink key meet once more where they come from several tasks.
    """
    when = building.settings.upsert_materialize
    if target.mode != "upsert" or when == "none":
        return False
    if when == "force" or is_unique(facts(select).unique_keys, frozenset(target.key)):
        return when == "force"
    waits = target.sink is not None and target.sink.on_conflict in ("nothing", "error")
    return target.updating or waits


def _materialized(select: Logical, target: Target, sink: Sink, building: Building) -> Project:
    exprs = all_columns(select)
    fields = [(name, e) for (name, _), e in zip(target.columns, exprs, strict=True)]
    rows = fed(materialized(select, sink, fields, target.key, building), building)
    project = _project(select, target, rows.node, rows.names, exprs, building)
    return replace(project, unique_keys=rows.node.unique_keys)


def _branches(select: Logical, target: Target, building: Building) -> Iterable[_Branch]:
    """The SELECT list over each input of a UNION ALL, or over the one that there is."""
    source = source_of(select)
    if source is not None:
        _refuse_computed_key(source.exprs, target)
        exprs, (plain, asked) = source.exprs, divided(source.filter)
        source = replace(source, filter=plain, exprs=(*exprs, *conjuncts(asked)))
        names, node = column_names(source.table), _stateless(source, target, building)
        if isinstance(node, Stateful):
            node = _netted(node, names, source.exprs, frozenset(source.table.key_places))
        project = _project(select, target, node, names, exprs, building, asked)
        yield _Branch(project, in_order=True, netted=isinstance(node, Stateful))
        return
    above = peel(select)
    match above.base:
        case Union():
            for branch in branches(above):
                yield from _branches(Select(branch, above.exprs, select.fields), target, building)
        case _:
            base, over = stateful_below(above, building)
            _refuse_computed_key(over.exprs, target)
            plain, asked = divided(over.where)
            read = (*over.exprs, *conjuncts(asked))
            required = Required(
                read=read,
                where=plain,
                pair_by=target.pair_by(over.exprs),
                update_before=target.mode != "upsert",
            )
            rows = operate(base, required, building)
            node = _netted(rows.node, rows.names, read, _fixed(base))
            project = _project(select, target, node, rows.names, over.exprs, building, asked)
            in_order = _keeps_order(base, [over.exprs[i] for i in target.record_key])
            yield _Branch(project, in_order, netted=not rows.ordered)


def _refuse_computed_key(exprs: Sequence[Expr], target: Target) -> None:
    """Changes are brought together by the sink's key before Python has computed anything."""
    hint = "key the sink by columns, and give the function's result as another column"
    refuse_calls([exprs[i] for i in target.record_key], "for a column of the sink's key", hint)


def _stateless(source: Source, target: Target, building: Building) -> Operator:
    """A table whose rows need no operator, but for a normaliser where the sink needs old rows."""
    is_whole = not is_normalized(source.table, building) or _same_key(source, target)
    if is_whole and not needs_rows(source, building):
        return scan(source, _raw(source), 0, building)
    return normalized(source, source.exprs, building, pair_by=target.pair_by(source.exprs))


def _same_key(source: Source, target: Target) -> bool:
    """Upserts into an upsert sink of the same key need no state: each record is the whole row."""
    exprs = [source.exprs[i] for i in target.key]
    names = {e.name for e in exprs if isinstance(e, Column)}
    return (
        source.table.changelog == "upsert"
        and target.mode == "upsert"
        and len(names) == len(exprs)
        and names == set(source.table.primary_key)
    )


def _raw(source: Source) -> Shape:
    """Raw columns; without a primary key the rows keep the order of their partition."""
    table = source.table
    read = [column(table.columns, i) for i in sorted(columns(source.exprs).union(table.key_places))]
    key = tuple(column(table.columns, i) for i in table.key_places)
    return Shape(row=tuple((c.name, c) for c in read), key=key)


def _project(
    select: Logical,
    target: Target,
    node: Operator,
    names: Sequence[str],
    exprs: Sequence[Expr],
    building: Building,
    where: Expr | None = None,
) -> Project:
    """`where` is what of WHERE Python has to compute."""
    ordered = sorted(facts(select).unique_keys, key=key_order)
    pairs = zip(target.columns, exprs, strict=True)
    python = PythonColumns([*names])
    return Project(
        select=tuple(Named(name, python.text(e)) for (name, _), e in pairs),
        where=None if where is None else python.text(where),
        computed=tuple(python.columns),
        schema=target.schema,
        time_zone=building.time_zone,
        input=node,
        changelog_mode=node.changelog_mode,
        unique_keys=tuple(tuple(target.columns[i][0] for i in sorted(k)) for k in ordered),
    )


def _netted(node: Stateful, names: Sequence[str], exprs: Sequence[Expr], fixed: Key) -> Stateful:
    """The operator, told what the SELECT list shows, if an update may be of other columns alone.

    `fixed`: fields that are equal in all rows of one key. Operators that emit in arrival order
    cancel nothing out.
    """
    exprs = tuple(read_by(exprs))
    kept = {i for i, name in enumerate(names) if name}
    if isinstance(node.machine, Normalize | KeyChanges):  # the names are those of the whole table
        stored = {field.name for field in node.machine.schema.fields}
        kept = {i for i in kept if names[i] in stored}
    shown = fixed.union(e.index for e in exprs if isinstance(e, Column))
    if (
        kept <= shown
        or isinstance(node.machine, TemporalJoin | LookupJoin)
        or node.changelog_mode == mode_text(INSERT, update_before=True)
    ):
        return node
    texts = tuple(render(e, names) for e in exprs)
    return replace(node, output=replace(node.output, shown=texts))


def _fixed(node: Operated) -> Key:
    """The fields of a key: equal in all rows under it, but for those that may be padded."""
    match node:
        case Join():
            known = facts(node)
            keys = (known.interval or known).condition.keys
            width = len(node.left.fields)
            left = () if node.kind in ("right", "full") else tuple(k.left for k in keys)
            right = tuple(k.right for k in keys) if node.kind in ("inner", "right") else ()
            return _plain(left) | _plain(right, width)
        case Chain(keys=keys, offsets=offsets, kinds=kinds):
            sides = zip(keys, offsets, ("inner", *kinds), strict=True)
            plain = (_plain(key, offset) for key, offset, kind in sides if kind == "inner")
            return frozenset[int]().union(*plain)
        case Deduplicate(partition=partition) | Rank(partition=partition):
            return frozenset(partition)
        case Aggregate(keys=keys):
            return frozenset(range(len(keys)))
        case Unnest():
            return smallest(facts(node.input).upsert_keys) or frozenset()
        case _:
            assert_never(node)


def _plain(exprs: Iterable[Expr], offset: int = 0) -> Key:
    return frozenset(e.index + offset for e in exprs if isinstance(e, Column))


def _keeps_order(node: Operated, sink_key: Sequence[Expr]) -> bool:
    """Whether all changes of one sink key come from one join key, hence from one task in order."""
    plain = frozenset(e.index for e in sink_key if isinstance(e, Column))
    match node:
        case Join():
            return _join_keeps_order(node, plain)
        case Chain(keys=keys):
            return columns(keys[0]) <= plain
        case Deduplicate(partition=partition) | Rank(partition=partition):
            return frozenset(partition) <= plain
        case Aggregate(keys=keys):
            return frozenset(range(len(keys))) <= plain
        case Unnest():
            key = smallest(facts(node.input).upsert_keys)
            return key is not None and key <= plain
        case _:
            assert_never(node)


def _join_keeps_order(join: Join, plain: Key) -> bool:
    """A side that may be padded fixes nothing: its NULLs come from everywhere."""
    width = len(join.left.fields)
    left, right = plain & frozenset(range(width)), frozenset(i - width for i in plain if i >= width)
    left = frozenset() if join.kind in ("right", "full") else left
    right = right if join.kind in ("inner", "right") else frozenset()
    if _fixes_row(join.left, left) or _fixes_row(join.right, right):
        return True
    known = facts(join)
    keys = (known.interval or known).condition.keys
    return all(columns((k.left,)) <= left or columns((k.right,)) <= right for k in keys)


def _fixes_row(node: Logical, key: Key) -> bool:
    """Whether the key names a row that never changes."""
    return facts(node).kinds == INSERT and any(unique <= key for unique in facts(node).unique_keys)


def _sink(
    target: Target,
    sink: Sink,
    projects: tuple[Project, ...],
    name: str,
    exchange: bool,
    building: Building,
) -> KafkaSink:
    table = sink.table
    check_written(table.key_format, key_columns(table))
    check_written(value_format(table), value_columns(table))
    guarantee = table.options.kafka.guarantee
    declared = table.options.given.get("sink.delivery-guarantee")
    if building.is_real_time and declared is None:
        guarantee = "at-least-once"
    return KafkaSink(
        name=name,
        table=table.name,
        topic=table.topics[0],
        mode=sink_mode(table),
        key_format=table.key_format,
        value_format=value_format(table),
        key_fields=table.key_fields,
        key_prefix=table.key_prefix,
        value_includes_key=table.value_includes_key,
        schema=target.schema,
        guarantee=guarantee,
        transactional_id_prefix=table.options.kafka.transactional_id_prefix,
        properties=table.properties,
        exchange=exchange,
        inputs=projects,
        on_error=table.on_error,
        dead_letter_topic=table.dead_letter_topic,
        metadata=tuple(
            MetadataColumn(column.metadata_key, column.name)
            for column in table.columns
            if column.writable and column.metadata_key is not None
        ),
    )
