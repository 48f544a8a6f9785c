"""Physical nodes for people: what each does, keeps, and for how long."""

from collections.abc import Sequence
from typing import assert_never

from spark_jobs.plan.nodes.parts import AggregateCall
from spark_jobs.plan.nodes.physical import (
    Aggregate,
    Deduplicate,
    IntervalJoin,
    KafkaScan,
    KafkaSink,
    KeyChanges,
    LookupJoin,
    MultiJoin,
    Normalize,
    Physical,
    Project,
    Rank,
    RegularJoin,
    Rekey,
    Results,
    SinkMaterializer,
    Stateful,
    TemporalJoin,
    Unnest,
)
from spark_jobs.plan.nodes.walk import inputs_of
from spark_jobs.plan.strategy.healing import large_columns
from spark_jobs.plan.text.details import arrival_text, facts_text, output_text, row_text, time_text
from spark_jobs.plan.text.ends import python_text, scan_text, select_text, sink_text
from spark_jobs.plan.text.flink import Tree
from spark_jobs.plan.text.joins import (
    interval_join_text,
    multi_join_text,
    regular_join_text,
    versioned_text,
)
from spark_jobs.plan.text.times import forward_text, retention_text, watermark_text

STRATEGIES = {
    "deduplicate": "the newest row of each sink key",
    "nothing": "the first row of each sink key, once the watermark has passed",
    "error": "one row per sink key once the watermark has passed; a second one fails the query",
}


def node_tree(node: Physical) -> Tree:
    """The node and what feeds it; a query without a sink is its SELECT list."""
    if isinstance(node, Results) and len(node.inputs) == 1:
        return node_tree(node.inputs[0])
    text, details = _described(node)
    return Tree(text, tuple(node_tree(i) for i in inputs_of(node)), tuple(details))


def _described(node: Physical) -> tuple[str, list[str]]:
    match node:
        case KafkaSink():
            return f"KafkaSink(table=[{node.table}], topic=[{node.topic}])", sink_text(node)
        case Results():
            return "Results(union all)", []
        case Project():
            details = [*facts_text(node), *python_text(node)]
            return f"Project(select=[{select_text(node.select)}])", details
        case Rekey():
            order = ["order: as it came"] if node.ordered else []
            time = time_text(node.rowtime, None)
            row = f"row: {row_text(node.schema)}"
            details = [*facts_text(node), *arrival_text(node), *time, *order, row]
            return f"Rekey(key=[{', '.join(node.key)}])", details
        case KafkaScan():
            topics = ", ".join(t.name for t in node.topics)
            return f"KafkaScan(table=[{node.table}], topics=[{topics}])", scan_text(node)
        case Stateful():
            title, details = _stateful(node)
            return title, [*facts_text(node), *details, *_healed(node), *forward_text(node.timing)]
        case _:
            assert_never(node)


def _stateful(node: Stateful) -> tuple[str, list[str]]:
    match node.machine:
        case RegularJoin() as join:
            return f"RegularJoin(joinType=[{join.join_type}])", regular_join_text(node, join)
        case MultiJoin() as join:
            kinds = ", ".join(join.join_types)
            return f"MultiJoin(joinTypes=[{kinds}])", multi_join_text(node, join)
        case IntervalJoin() as join:
            bounds = f"bounds=[{join.lower_ms}, {join.upper_ms}] ms"
            title = f"joinType=[{join.join_type}], time=[{join.time}], {bounds}"
            return f"IntervalJoin({title})", interval_join_text(node, join)
        case TemporalJoin() | LookupJoin() as join:
            return versioned_text(node, join)
        case Normalize() | KeyChanges() as machine:
            key = ", ".join(machine.schema.fields[i].name for i in machine.key)
            return f"{type(machine).__name__}(key=[{key}])", _by_primary_key(node, machine)
        case Deduplicate() | Rank() | Aggregate() | SinkMaterializer() | Unnest() as machine:
            title, details = _of_one_input(machine)
            return title, _single(node, details)
        case _:
            assert_never(node.machine)


def _of_one_input(
    machine: Deduplicate | Rank | Aggregate | SinkMaterializer | Unnest,
) -> tuple[str, list[str]]:
    match machine:
        case Deduplicate():
            title = f"Deduplicate(keep=[{machine.keep}], time=[{machine.time}])"
            return title, _deduplicate(machine)
        case Rank():
            return f"Rank({_rank_title(machine)})", _rank(machine)
        case Aggregate():
            return f"Aggregate(select=[{_calls(machine)}])", _aggregate(machine)
        case SinkMaterializer():
            return f"SinkMaterializer(strategy=[{machine.strategy}])", _materializer(machine)
        case Unnest():
            name = machine.schema.fields[machine.collection].name
            title = f"joinType=[{machine.join_type}], collection=[{name}]"
            return f"Unnest({title})", _unnest(machine)


def _by_primary_key(node: Stateful, machine: Normalize | KeyChanges) -> list[str]:
    if isinstance(machine, Normalize):
        place = " with its source position" if machine.positions else ""
        about, state = [], f"one row per primary key{place}"
    else:
        old = "from the rows under their old keys, in one key group"
        about, state = (
            [f"heals: rows whose key has changed, {old}"],
            "rows with values of other keys",
        )
    stored = f"state: {state}, {row_text(machine.schema)}"
    return [*about, *output_text(node.output), stored, *retention_text(node)]


def _healed(node: Stateful) -> list[str]:
    """Which columns have values from the operator's state where events leave them out."""
    return [
        f"heals: {', '.join(f'{scan.table}.{name}' for name in large_columns(scan))}"
        for scan in node.inputs
        if isinstance(scan, KafkaScan) and scan.debezium is not None and scan.debezium.heals
    ]


def _deduplicate(machine: Deduplicate) -> list[str]:
    waits = "leaves once the watermark has passed it" if machine.on_watermark else "leaves at once"
    by_arrival = machine.keep == "first" and machine.time == "processing"
    state = (
        "the keys that have come" if by_arrival else f"one row per key, {row_text(machine.schema)}"
    )
    return [f"result: the {machine.keep} row of each key, {waits}", f"state: {state}"]


def _rank_title(machine: Rank) -> str:
    columns = [f.name for f in machine.schema.fields]
    order = (f"{columns[key.ordinal]} {'DESC' if key.descends else 'ASC'}" for key in machine.order)
    return f"rows=[{machine.first} to {machine.last}], orderBy=[{', '.join(order)}]"


def _rank(machine: Rank) -> list[str]:
    kept = f"the first {machine.last} rows" if machine.append_only else "all rows"
    numbers = (
        []
        if machine.number is None
        else [f"result: with the place of each row as {machine.number}"]
    )
    return [*numbers, f"state: {kept} of each key in order, {row_text(machine.schema)}"]


def _unnest(machine: Unnest) -> list[str]:
    residual = [] if machine.residual is None else [f"residual: {machine.residual}"]
    return [*residual, f"elements: {row_text(machine.elements)}", "state: none"]


def _aggregate(machine: Aggregate) -> list[str]:
    state = f"state: accumulators per key, {row_text(machine.schema)}"
    if not machine.no_input:
        return [state]
    return ["result: one row at the first start, as no row can come", state]


def _calls(node: Aggregate) -> str:
    width = len(node.schema.fields) - len(node.calls)
    names = [f.name for f in node.schema.fields]
    calls = [_call(c, node) for c in node.calls]
    texts = [f"{c} AS {n}" for c, n in zip(calls, names[width:], strict=True)]
    return ", ".join([*names[:width], *texts])


def _call(call: AggregateCall, node: Aggregate) -> str:
    columns = [f.name for f in node.input_schema.fields]
    argument = "*" if call.argument is None else columns[call.argument]
    distinct = "DISTINCT " if call.distinct else ""
    separator = f", {call.separator!r}" if call.function == "LISTAGG" else ""
    nulls = " RESPECT NULLS" if call.takes_nulls else ""
    where = "" if call.filter is None else f" FILTER (WHERE {columns[call.filter]})"
    return f"{call.function}({distinct}{argument}{separator}){nulls}{where}"


def _materializer(machine: SinkMaterializer) -> list[str]:
    schema = machine.schema
    by = ", ".join(schema.fields[i].name for i in machine.upsert_key) or "all columns"
    return [
        f"result: {STRATEGIES[machine.strategy]}",
        f"state: the rows of each sink key in order, by {by}, {row_text(schema)}",
    ]


def _single(node: Stateful, own: Sequence[str]) -> list[str]:
    """An operator of one input, or of none; `own` is what only this kind has."""
    read = next(iter(node.inputs), None)
    key = "" if read is None else ", ".join(read.key)
    groups = "all rows to one key group"
    if key and read is not None:
        groups = f"by key, {read.groups} key groups"
    return [
        f"key: {key or 'none'}",
        f"exchange: {groups if read else 'none, there is one constant row'}",
        *output_text(node.output),
        *own,
        *retention_text(node),
        *watermark_text(node),
    ]
