"""Where a query begins and ends, for people: its tables, and what it writes."""

from collections.abc import Sequence

from spark_jobs.plan.nodes.parts import Named, ReadFrom
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink, Project
from spark_jobs.plan.strategy.healing import large_columns
from spark_jobs.plan.text.details import arrival_text, facts_text, row_text, time_text


def python_text(node: Project) -> list[str]:
    """What Python computes for it, and the condition that needs it."""
    made = [f"{c.name} = {c.target}({', '.join(c.arguments)})" for c in node.computed]
    return [
        *(f"python: {each}" for each in made),
        *([f"where: {node.where}"] if node.where else []),
    ]


def sink_text(node: KafkaSink) -> list[str]:
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


def scan_text(node: KafkaScan) -> list[str]:
    key = f", key {node.key_format.name}" if node.key_format else ""
    columns = [
        f"{c.name}{'' if c.origin == 'value' else f' FROM {c.origin} {c.field}'}"
        for c in node.columns
    ]
    details = [
        *facts_text(node),
        f"records: {node.changelog}, value {node.value_format.name}{key}",
        f"reads: {', '.join(columns)}",
    ]
    if node.filter is not None:
        failed = ", a row that fails is a deletion" if node.changelog == "upsert" else ""
        details.append(f"filter: {node.filter}{failed}")
    details += _events(node)
    details += arrival_text(node)
    details += time_text(node.rowtime, node.watermark)
    details.append(f"row: {row_text(node.schema)}")
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


def _policy(node: KafkaScan | KafkaSink) -> str:
    return f"to topic {node.dead_letter_topic}" if node.on_error == "dead-letter" else node.on_error


def _place(place: ReadFrom) -> str:
    if place.timestamp_ms is not None:
        return f"timestamp {place.timestamp_ms}"
    if place.offsets is not None:
        return "offsets " + ", ".join(f"{p}:{o}" for p, o in sorted(place.offsets.items()))
    return place.mode


def select_text(select: Sequence[Named]) -> str:
    return ", ".join(n.expr if n.expr == f"`{n.name}`" else f"{n.expr} AS {n.name}" for n in select)
