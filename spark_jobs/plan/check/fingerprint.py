"""What a checkpoint remembers of a plan: readable facts of each operator, scan and the sink.

Facts are named values in JSON, so that a later release can compare them without the planner that
wrote them. A field of a node that has its default is left out: a field that a release adds changes
no older fingerprint.
"""

import re
from collections.abc import Iterator, Sequence
from dataclasses import MISSING, fields
from typing import Any, TypeAlias, assert_never

from pydantic import BaseModel, ConfigDict

from spark_jobs.plan.nodes.parts import Timing
from spark_jobs.plan.nodes.physical import (
    Aggregate,
    Deduplicate,
    IntervalJoin,
    JoinInput,
    KafkaScan,
    KafkaSink,
    KeyChanges,
    LookupJoin,
    Machine,
    MultiJoin,
    Normalize,
    Rank,
    RegularJoin,
    SinkMaterializer,
    Stateful,
    TemporalJoin,
    Unnest,
)
from spark_jobs.plan.nodes.plan_json import Json, to_json
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.sql.types.data_types import DataType

Facts: TypeAlias = dict[str, Any]
"""JSON values; pydantic knows no recursive alias."""

# described elsewhere in the fingerprint, or read off the other facts
_NOT_OWN = {
    "kind", "gate", "key", "schema", "inputSchema", "left", "right", "sides",
    "positions",  # cells with and without source positions are read alike
    "waitMs",
    "lookup",  # where rows come from, not what is kept of them
    "probeChanges",  # has cells of its own; without them no row is known
}  # fmt: skip


class OperatorPrint(BaseModel):
    """A stateful operator: `state` is what its cells depend on, `around` what may change."""

    model_config = ConfigDict(frozen=True)

    id: str
    kind: str
    state: Facts
    around: Facts


class ScanPrint(BaseModel):
    """A table that is read, in Spark's order of sources: `topics` with their indexes."""

    model_config = ConfigDict(frozen=True)

    id: str
    topics: dict[str, int]
    bounded: bool
    around: Facts


class Fingerprint(BaseModel):
    """A query. `operators` stand as Spark numbers them: the last one first."""

    model_config = ConfigDict(frozen=True)

    operators: tuple[OperatorPrint, ...]
    scans: tuple[ScanPrint, ...]
    sink: Facts


def fingerprint(sink: KafkaSink) -> Fingerprint:
    """What a checkpoint remembers of a planned INSERT."""
    return Fingerprint(
        operators=tuple(_operator(node) for node in stateful_nodes(sink)),
        scans=tuple(_scan(node) for node in scans(sink)),
        sink=_sink(sink),
    )


def _operator(node: Stateful) -> OperatorPrint:
    sides = node.side_names
    state: Facts = {**dict(_own(node.machine)), **_rows(node.machine)}
    for name, side in zip(sides, node.sides, strict=False):
        state[f"{name} row"] = _columns(side.schema)
        state |= {f"{name} layout": side.layout, f"{name} upsert": side.upsert}
        columns = side.schema.fields
        state[f"{name} unique key"] = [columns[i].name for i in side.unique_key]
    for number, read in enumerate(node.inputs):
        # an operator of one input may stand on either side of the next one
        place = sides[read.side] if len(sides) > 1 else sides[0]
        state |= {f"input {number}: {k}": v for k, v in _read(read, place).items()}
    state |= _time_in_state(node.timing, sides)
    return OperatorPrint(id=node.id, kind=node.kind, state=state, around=_around(node, sides))


def _own(machine: Machine) -> Iterator[tuple[str, Json]]:
    """The fields that only this kind of operator has."""
    defaults = {f.name.replace("_", " "): f.default for f in fields(machine)}
    for name, value in to_json(machine).items():
        words = _words(name)
        default = defaults.get(words, MISSING)
        if name not in _NOT_OWN and value != (None if default is MISSING else default):
            yield words, value


def _rows(machine: Machine) -> Facts:
    """The rows and keys that the machine stores; those of sides are named with the sides."""
    match machine:
        case RegularJoin() | IntervalJoin() | TemporalJoin() | LookupJoin():
            return {"key": _columns(machine.pair.key)}
        case MultiJoin(schema=schema, key=key):
            return {"row": _columns(schema), "key": _columns(key)}
        case Normalize(schema=schema, key=ordinals) | KeyChanges(schema=schema, key=ordinals):
            return {"row": _columns(schema), "key": list(ordinals)}
        case Deduplicate(schema=schema) | Rank(schema=schema) | SinkMaterializer(schema=schema):
            return {"row": _columns(schema)}
        case Unnest():
            return {}
        case Aggregate(key=key, input_schema=read, schema=schema):
            rows = {"input row": _columns(read), "result row": _columns(schema)}
            return {"key": _columns(key), **rows}
        case _:
            assert_never(machine)


def _columns(row: DataType) -> list[str]:
    """Columns as `name TYPE`."""
    return [f"{field.name} {field.type.sql()}" for field in row.fields]


def _words(name: str) -> str:
    """`lateProbe` as people read it."""
    return re.sub(r"[A-Z]", lambda letter: f" {letter[0].lower()}", name)


def _read(read: JoinInput, side: str) -> Facts:
    """How rows come in: what is stored depends on these expressions, not on their names."""
    return {
        "side": side,
        "key": list(read.key),
        "row": [named.expr for named in read.row],
        "event time": read.rowtime,
    }


def _time_in_state(timing: Timing, sides: Sequence[str]) -> Facts:
    """Which streams of watermarks are kept, whether rows carry the time of their last change."""
    streams: list[Json] = [[stream.topic for stream in side] for side in timing.inputs]
    names = sides if len(timing.ttl_ms) > 1 else ("all sides",)
    return {
        "watermarks": streams,
        "clock": timing.tick_ms is not None,
        "TTL": [n for n, ms in zip(names, timing.ttl_ms, strict=False) if ms],
    }


def _around(node: Stateful, sides: Sequence[str]) -> Facts:
    written = to_json(node.machine)
    timing = node.timing
    names = sides if len(timing.ttl_ms) > 1 else ("all sides",)
    around: Facts = {f"TTL of {n}": f"{ms} ms" for n, ms in zip(names, timing.ttl_ms, strict=False)}
    idle: list[Json] = [[stream.idle_timeout_ms for stream in side] for side in timing.inputs]
    return {
        **around,
        "WHERE behind it": node.output.where,
        "late topic": node.output.late_topic,
        "time zone": node.output.time_zone,
        "watermark policy": timing.policy,
        "idle timeouts": idle,
        "gate": written.get("gate"),
        "lookup": _lookup(node.machine),
        "wait for key changes": written.get("waitMs"),
    }


def _lookup(machine: Machine) -> Facts | None:
    """The table of a database and what is read of it."""
    if not isinstance(machine, LookupJoin):
        return None
    found = machine.lookup
    columns = [f"{c.name} {c.sql_type}" for c in found.columns]
    return {"table": found.table, "columns": columns, "WHERE": found.filter}


def _scan(node: KafkaScan) -> ScanPrint:
    return ScanPrint(
        id=node.id,
        topics={topic.name: topic.index for topic in node.topics},
        bounded=node.bounded.mode != "unbounded",
        around={
            "table": node.table,
            "changelog": node.changelog,
            "key format": node.key_format and node.key_format.name,
            "value format": node.value_format.name,
            "columns read": [f"{c.name} {c.sql_type}" for c in node.columns],
            "primary key": list(node.primary_key),
            "WHERE in front": node.filter,
            "watermark": node.watermark,
            "starts": node.startup.mode,
            "ends": node.bounded.mode,
            "bad records": node.on_error,
            "dead letters": node.dead_letter_topic,
        },
    )


def _sink(sink: KafkaSink) -> Facts:
    selects: list[Json] = [[f"{n.expr} AS {n.name}" for n in p.select] for p in sink.inputs]
    return {
        "topic": sink.topic,
        "mode": sink.mode,
        "key format": sink.key_format and sink.key_format.name,
        "value format": sink.value_format.name,
        "key": list(sink.key_fields),
        "columns": _columns(sink.schema),
        "metadata": {column.key: column.column for column in sink.metadata},
        "SELECT": selects,
        "delivery": sink.guarantee,
        "transactional ids": sink.transactional_id_prefix,
        # earlier releases exchanged no records of this mode
        "brought together by key": sink.exchange and sink.mode == "retract",
    }
