"""Physical nodes for people: what each does, keeps, and for how long."""

from collections.abc import Sequence
from typing import assert_never

from spark_jobs.plan.check.state_size import remembered_bytes
from spark_jobs.plan.nodes.parts import AggregateCall, Cache, Named, Output, Pair, ReadFrom, Side
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
from spark_jobs.plan.text.flink import Tree
from spark_jobs.plan.text.times import (
    closing_text,
    forward_text,
    retention_text,
    watermark_text,
)
from spark_jobs.sql.types.data_types import DataType

LAYOUTS = {
    "join-key-contains-unique-key": "one row per join key",
    "has-unique-key": "rows by unique key",
    "no-unique-key": "rows with their counts",
}

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
            return f"KafkaSink(table=[{node.table}], topic=[{node.topic}])", _sink(node)
        case Results():
            return "Results(union all)", []
        case Project():
            details = [*_facts(node), *_python(node)]
            return f"Project(select=[{_select(node.select)}])", details
        case Rekey():
            order = ["order: as it came"] if node.ordered else []
            time = _time(node.rowtime, None)
            row = f"row: {_row(node.schema)}"
            details = [*_facts(node), *_arrival(node), *time, *order, row]
            return f"Rekey(key=[{', '.join(node.key)}])", details
        case KafkaScan():
            topics = ", ".join(t.name for t in node.topics)
            return f"KafkaScan(table=[{node.table}], topics=[{topics}])", _scan(node)
        case Stateful():
            title, details = _stateful(node)
            return title, [*_facts(node), *details, *_healed(node), *forward_text(node.timing)]
        case _:
            assert_never(node)


def _stateful(node: Stateful) -> tuple[str, list[str]]:
    match node.machine:
        case RegularJoin() as join:
            return f"RegularJoin(joinType=[{join.join_type}])", _regular_join(node, join)
        case MultiJoin() as join:
            kinds = ", ".join(join.join_types)
            return f"MultiJoin(joinTypes=[{kinds}])", _multi_join(node, join)
        case IntervalJoin() as join:
            bounds = f"bounds=[{join.lower_ms}, {join.upper_ms}] ms"
            title = f"joinType=[{join.join_type}], time=[{join.time}], {bounds}"
            return f"IntervalJoin({title})", _interval_join(node, join)
        case TemporalJoin() | LookupJoin() as join:
            return _versioned(node, join)
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


def _versioned(node: Stateful, join: TemporalJoin | LookupJoin) -> tuple[str, list[str]]:
    if isinstance(join, LookupJoin):
        return f"LookupJoin({_lookup_title(join)})", _lookup_join(node, join)
    if join.time == "event":
        return f"TemporalJoin(joinType=[{join.join_type}])", _temporal_join(node, join)
    title = f"joinType=[{join.join_type}], time=[processing]"
    return f"TemporalJoin({title})", _latest_join(node, join)


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
    stored = f"state: {state}, {_row(machine.schema)}"
    return [*about, *_output(node.output), stored, *retention_text(node)]


def _healed(node: Stateful) -> list[str]:
    """Which columns have values from the operator's state where events leave them out."""
    return [
        f"heals: {', '.join(f'{scan.table}.{name}' for name in large_columns(scan))}"
        for scan in node.inputs
        if isinstance(scan, KafkaScan) and scan.debezium is not None and scan.debezium.heals
    ]


def _python(node: Project) -> list[str]:
    """What Python computes for it, and the condition that needs it."""
    made = [f"{c.name} = {c.target}({', '.join(c.arguments)})" for c in node.computed]
    return [
        *(f"python: {each}" for each in made),
        *([f"where: {node.where}"] if node.where else []),
    ]


def _facts(node: Stateful | Project | Rekey | KafkaScan) -> list[str]:
    keys = ", ".join(f"({', '.join(key)})" for key in node.unique_keys) or "none"
    return [f"changelog mode: [{node.changelog_mode}]", f"unique keys: {keys}"]


def _sink(node: KafkaSink) -> list[str]:
    names = ", ".join(node.key_fields)
    keys = f"key {node.key_format.name} ({names})" if node.key_format else "no key"
    modes = {
        "append": "append",
        "upsert": "upsert, a deletion is a tombstone",
        "retract": "retract, all row kinds",
    }
    details = [
        f"mode: {modes[node.mode]}",
        f"records: {keys}, value {node.value_format.name}",
        f"delivery: {node.guarantee}",
    ]
    if node.metadata:
        written = (f"{column.key} FROM {column.column}" for column in node.metadata)
        details.append(f"metadata: {', '.join(written)}")
    if node.on_error != "fail":
        details.append(f"results too large for the topic: {_policy(node)}")
    if node.exchange:
        why = "a row may come from several join keys"
        first = "deletions" if node.mode == "upsert" else "retractions"
        details.append(f"exchange: by sink key, {first} first ({why})")
    return details


def _regular_join(node: Stateful, join: RegularJoin) -> list[str]:
    shown = " (only looked up)" if join.join_type in ("semi", "anti") else ""
    return [
        *_conditions(node, join.pair),
        f"left state: {_layout(join.pair.left)}",
        f"right state{shown}: {_layout(join.pair.right)}",
        *retention_text(node),
    ]


def _multi_join(node: Stateful, join: MultiJoin) -> list[str]:
    firsts = [next(i for i in node.inputs if i.side == n) for n in range(len(join.sides))]
    keys = zip(*(f.key for f in firsts), strict=True)
    signs = ["=" if is_strict else "IS NOT DISTINCT FROM" for is_strict in join.filter_nulls]
    pairs = [f" {sign} ".join(parts) for sign, parts in zip(signs, keys, strict=True)]
    residuals = [
        f"residual of side {i + 2}: {r}" for i, r in enumerate(join.residuals) if r is not None
    ]
    states = [f"side {i + 1} state: {_layout(side)}" for i, side in enumerate(join.sides)]
    return [
        f"join key: {' AND '.join(pairs)}",
        f"exchange: by join key, {firsts[0].groups} key groups",
        *residuals,
        *_output(node.output),
        *states,
        *retention_text(node),
    ]


def _interval_join(node: Stateful, join: IntervalJoin) -> list[str]:
    stored = [
        f"left state: rows by time, {_row(join.pair.left.schema)}",
        f"right state: rows by time, {_row(join.pair.right.schema)}",
    ]
    late = ["late rows: joined while the window is open, then dropped or padded"]
    if join.changes:
        late = [closing_text(join), f"late changes: {_late_place(node.output)}"]
    is_empty = join.lower_ms > join.upper_ms
    return [
        *_conditions(node, join.pair),
        *([] if is_empty else stored),
        *retention_text(node),
        *watermark_text(node),
        *(late if join.time == "event" and not is_empty else []),
    ]


def _temporal_join(node: Stateful, join: TemporalJoin) -> list[str]:
    return [
        *_conditions(node, join.pair),
        f"left state: rows until the watermark reaches them, {_row(join.pair.left.schema)}",
        *_memory(node, join),
        f"right state: versions by time, {_row(join.pair.right.schema)}",
        *retention_text(node),
        *watermark_text(node),
        f"late rows: left {_late(node.output, join)}, right accepted",
    ]


def _memory(node: Stateful, join: TemporalJoin | LookupJoin) -> list[str]:
    """What a left row that may change leaves in the state, for how long, and what it costs."""
    if not join.probe_changes:
        return []
    ttl_ms = max(node.timing.ttl_ms)
    end = f" or for {ttl_ms} ms" if ttl_ms else ""
    left = join.pair.left
    key = ", ".join(left.schema.fields[i].name for i in left.unique_key)
    known_by = {
        "join-key-contains-unique-key": "by join key",
        "has-unique-key": f"by unique key ({key})",
        "no-unique-key": "by all their columns",
    }[left.layout]
    price = f"about {remembered_bytes(join)} bytes per row and its texts"
    return [
        f"left memory: what rows were joined with, until they are deleted{end}: {known_by}, {price}"
    ]


def _late(output: Output, join: TemporalJoin) -> str:
    if join.late_probe == "join":
        return "joined at the next watermark"
    return _late_place(output)


def _late_place(output: Output) -> str:
    topic = output.late_topic
    return "dropped and counted" if topic is None else f"to topic {topic}"


def _latest_join(node: Stateful, join: TemporalJoin) -> list[str]:
    gate = {
        "none": "gate: none, rows are joined as they come",
        "loaded": "gate: left rows wait until the right side has passed the end that it had at"
        " the first start",
        "watermark": f"gate: left rows wait until the right side's watermark is {join.gate.at_ms}",
    }[join.gate.kind]
    if join.gate.timeout_ms:
        after = {"fail": "the query fails", "go": "they go on"}[join.gate.on_timeout]
        gate += f"; after {join.gate.timeout_ms} ms {after}"
    return [
        *_conditions(node, join.pair),
        gate,
        f"left state: rows that wait for the gate, {_row(join.pair.left.schema)}",
        *_memory(node, join),
        f"right state: {_layout(join.pair.right)}",
        *retention_text(node),
        *watermark_text(node),
    ]


def _lookup_title(join: LookupJoin) -> str:
    lookup = join.lookup
    names = ", ".join(lookup.columns[i].name for i in lookup.key)
    table = f"table=[{lookup.table}], joinType=[{join.join_type}]"
    return f"{table}, lookup=[{names}], select=[{', '.join(n.name for n in lookup.row)}]"


def _lookup_join(node: Stateful, join: LookupJoin) -> list[str]:
    lookup, left, read = join.lookup, join.pair.left, node.inputs[0]
    again = f"tried {lookup.max_retries} more times if it fails, then the epoch fails"
    return [
        f"exchange: by {', '.join(read.key)}, {read.groups} key groups",
        *([] if join.pair.residual is None else [f"residual: {join.pair.residual}"]),
        *_output(node.output),
        *([] if lookup.filter is None else [f"keeps of the rows found: {lookup.filter}"]),
        f"lookup: {lookup.properties['table-name']}, one query for the keys of a task, {again}",
        f"cache: {_cache(lookup.cache)}",
        *([] if join.probe_changes else [f"state: none, {_row(left.schema)} passes"]),
        *_memory(node, join),
        *retention_text(node),
        *watermark_text(node),
    ]


def _cache(cache: Cache | None) -> str:
    if cache is None:
        return "none, each epoch sees the table as it is"
    rows = "all keys" if cache.max_rows is None else f"up to {cache.max_rows} keys"
    written, used = cache.expire_after_write_ms, cache.expire_after_access_ms
    ends = [] if written is None else [f"for {written} ms"]
    ends += [] if used is None else [f"until unused for {used} ms"]
    missing = "" if cache.missing_keys else "; not of keys without a row"
    return f"{rows} per executor, {' or '.join(ends) or 'for ever'}{missing}"


def _deduplicate(machine: Deduplicate) -> list[str]:
    waits = "leaves once the watermark has passed it" if machine.on_watermark else "leaves at once"
    by_arrival = machine.keep == "first" and machine.time == "processing"
    state = "the keys that have come" if by_arrival else f"one row per key, {_row(machine.schema)}"
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
    return [*numbers, f"state: {kept} of each key in order, {_row(machine.schema)}"]


def _unnest(machine: Unnest) -> list[str]:
    residual = [] if machine.residual is None else [f"residual: {machine.residual}"]
    return [*residual, f"elements: {_row(machine.elements)}", "state: none"]


def _aggregate(machine: Aggregate) -> list[str]:
    state = f"state: accumulators per key, {_row(machine.schema)}"
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
        f"state: the rows of each sink key in order, by {by}, {_row(schema)}",
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
        *_output(node.output),
        *own,
        *retention_text(node),
        *watermark_text(node),
    ]


def _conditions(node: Stateful, pair: Pair) -> list[str]:
    left = next(i for i in node.inputs if i.side == 0)
    right = next(i for i in node.inputs if i.side == 1)
    pairs = zip(left.key, right.key, pair.filter_nulls, strict=True)
    signs = [f"{a} {'=' if strict else 'IS NOT DISTINCT FROM'} {b}" for a, b, strict in pairs]
    groups = f"by join key, {left.groups} key groups" if signs else "all rows to one key group"
    details = [f"join key: {' AND '.join(signs) or 'none'}", f"exchange: {groups}"]
    if pair.residual is not None:
        details.append(f"residual: {pair.residual}")
    return [*details, *_output(node.output)]


def _output(output: Output) -> list[str]:
    where = [] if output.where is None else [f"where: {output.where}"]
    pairs = [] if output.pair_by is None else [f"updates paired by: {', '.join(output.pair_by)}"]
    return where + pairs


def _layout(side: Side) -> str:
    names = ", ".join(side.schema.fields[i].name for i in side.unique_key)
    text = f"{LAYOUTS[side.layout]} ({names})" if names else LAYOUTS[side.layout]
    upserts = ", normalises upserts" if side.upsert else ""
    return f"{side.layout}: {text}, {_row(side.schema)}{upserts}"


def _scan(node: KafkaScan) -> list[str]:
    key = f", key {node.key_format.name}" if node.key_format else ""
    columns = [
        f"{c.name}{'' if c.origin == 'value' else f' FROM {c.origin} {c.field}'}"
        for c in node.columns
    ]
    details = [
        *_facts(node),
        f"records: {node.changelog}, value {node.value_format.name}{key}",
        f"reads: {', '.join(columns)}",
    ]
    if node.filter is not None:
        failed = ", a row that fails is a deletion" if node.changelog == "upsert" else ""
        details.append(f"filter: {node.filter}{failed}")
    details += _events(node)
    details += _arrival(node)
    details += _time(node.rowtime, node.watermark)
    details.append(f"row: {_row(node.schema)}")
    details.append(f"bad records: {_policy(node)}")
    details.append(f"starts: {_place(node.startup)}, ends: {_place(node.bounded)}")
    if node.pattern is not None:
        often = f" and every {node.discovery_ms} ms" if node.discovery_ms else ""
        when = "at the first start" if node.bounded.mode != "unbounded" else f"at each start{often}"
        details.append(f"topics: those that match {node.pattern} {when}")
    return details


def _events(node: KafkaScan) -> list[str]:
    """How Debezium events without values, TRUNCATE and repeated events are treated."""
    read = node.debezium
    if read is None:
        return []
    healed = "from the row in state" if read.heals else "a bad record"
    details = [f"left out values: {healed}"] if large_columns(node) else []
    details += ["TRUNCATE: retracts all rows"] if read.retracts_on_truncate else []
    details += ["repeated events: ignored, by source position"] if read.positions else []
    return details


def _time(rowtime: str | None, watermark: str | None) -> list[str]:
    times = [] if rowtime is None else [f"event time: {rowtime}"]
    times += [] if watermark is None else [f"watermark {watermark}"]
    return [", ".join(times)] if times else []


def _arrival(node: KafkaScan | Rekey) -> list[str]:
    return ["NULL keys: dropped"] if node.drop_null_keys else []


def _policy(node: KafkaScan | KafkaSink) -> str:
    return f"to topic {node.dead_letter_topic}" if node.on_error == "dead-letter" else node.on_error


def _place(place: ReadFrom) -> str:
    if place.timestamp_ms is not None:
        return f"timestamp {place.timestamp_ms}"
    if place.offsets is not None:
        return "offsets " + ", ".join(f"{p}:{o}" for p, o in sorted(place.offsets.items()))
    return place.mode


def _select(select: Sequence[Named]) -> str:
    return ", ".join(n.expr if n.expr == f"`{n.name}`" else f"{n.expr} AS {n.name}" for n in select)


def _row(schema: DataType) -> str:
    return "(" + ", ".join(f"{f.name} {f.type.sql()}" for f in schema.fields) + ")"
