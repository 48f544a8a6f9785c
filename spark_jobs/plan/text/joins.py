"""Joins for people: what each looks for, keeps, and for how long."""

from spark_jobs.plan.check.state_size import remembered_bytes
from spark_jobs.plan.nodes.parts import Cache, Output
from spark_jobs.plan.nodes.physical import (
    IntervalJoin,
    LookupJoin,
    MultiJoin,
    RegularJoin,
    Stateful,
    TemporalJoin,
)
from spark_jobs.plan.text.details import conditions_text, layout_text, output_text, row_text
from spark_jobs.plan.text.times import closing_text, early_text, retention_text, watermark_text


def versioned_text(node: Stateful, join: TemporalJoin | LookupJoin) -> tuple[str, list[str]]:
    if isinstance(join, LookupJoin):
        return f"LookupJoin({_lookup_title(join)})", _lookup_join(node, join)
    if join.time == "event":
        return f"TemporalJoin(joinType=[{join.join_type}])", _temporal_join(node, join)
    title = f"joinType=[{join.join_type}], time=[processing]"
    return f"TemporalJoin({title})", _latest_join(node, join)


def regular_join_text(node: Stateful, join: RegularJoin) -> list[str]:
    shown = " (only looked up)" if join.join_type in ("semi", "anti") else ""
    return [
        *conditions_text(node, join.pair),
        f"left state: {layout_text(join.pair.left)}",
        f"right state{shown}: {layout_text(join.pair.right)}",
        *retention_text(node),
    ]


def multi_join_text(node: Stateful, join: MultiJoin) -> list[str]:
    firsts = [next(i for i in node.inputs if i.side == n) for n in range(len(join.sides))]
    keys = zip(*(f.key for f in firsts), strict=True)
    signs = ["=" if is_strict else "IS NOT DISTINCT FROM" for is_strict in join.filter_nulls]
    pairs = [f" {sign} ".join(parts) for sign, parts in zip(signs, keys, strict=True)]
    residuals = [
        f"residual of side {i + 2}: {r}" for i, r in enumerate(join.residuals) if r is not None
    ]
    states = [f"side {i + 1} state: {layout_text(side)}" for i, side in enumerate(join.sides)]
    return [
        f"join key: {' AND '.join(pairs)}",
        f"exchange: by join key, {firsts[0].groups} key groups",
        *residuals,
        *output_text(node.output),
        *states,
        *retention_text(node),
    ]


def interval_join_text(node: Stateful, join: IntervalJoin) -> list[str]:
    stored = [
        f"left state: rows by time, {row_text(join.pair.left.schema)}",
        f"right state: rows by time, {row_text(join.pair.right.schema)}",
    ]
    late = ["late rows: joined while the window is open, then dropped or padded"]
    if join.changes:
        late = [closing_text(join), f"late changes: {_late_place(node.output)}"]
    is_empty = join.lower_ms > join.upper_ms
    early = [] if join.early_fire_ms is None else [early_text(join)]
    return [
        *conditions_text(node, join.pair),
        *([] if is_empty else stored),
        *retention_text(node),
        *watermark_text(node),
        *early,
        *(late if join.time == "event" and not is_empty else []),
    ]


def _temporal_join(node: Stateful, join: TemporalJoin) -> list[str]:
    return [
        *conditions_text(node, join.pair),
        f"left state: rows until the watermark reaches them, {row_text(join.pair.left.schema)}",
        *_memory(node, join),
        f"right state: versions by time, {row_text(join.pair.right.schema)}",
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
        *conditions_text(node, join.pair),
        gate,
        f"left state: rows that wait for the gate, {row_text(join.pair.left.schema)}",
        *_memory(node, join),
        f"right state: {layout_text(join.pair.right)}",
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
        *output_text(node.output),
        *([] if lookup.filter is None else [f"keeps of the rows found: {lookup.filter}"]),
        f"lookup: {lookup.properties['table-name']}, one query for the keys of a task, {again}",
        f"cache: {_cache(lookup.cache)}",
        *([] if join.probe_changes else [f"state: none, {row_text(left.schema)} passes"]),
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
