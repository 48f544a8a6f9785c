"""What a query's operators answer about their state, as objects for programs."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from spark_jobs.errors import ConfigError
from spark_jobs.plan.nodes.plan_json import Json
from spark_jobs.state.keys import KeyColumn, key_columns, parse_key
from spark_jobs.state.operators import KeptOperator, Wanted
from spark_jobs.state.reading import QueryState
from spark_jobs.state.values import Told, named, time_text

_TIMES = ("time", "written", "committed")


def sizes(query: QueryState, wanted: Wanted) -> Iterator[Told]:
    """An object per operator: its rows by side, its keys, cells and bytes."""

    def ask(operator: KeptOperator, reader: Any) -> Told:
        parts = [json.loads(reader.size(n)) for n in range(reader.partitions())]
        rows = [sum(part["rows"][i] for part in parts) for i in range(len(operator.counted))]
        totals = {what: sum(part[what] for part in parts) for what in ("keys", "cells", "bytes")}
        return {"rows": dict(zip(operator.counted, rows, strict=True)), **totals}

    epoch, found = query.read(wanted, ask)
    written = query.manifest.written_by
    for operator, told in found:
        yield {
            **_head(operator, epoch),
            **told,
            "key_groups": query.manifest.groups,
            "state_format": 1 if written is None else written.state_format,
        }


def largest(query: QueryState, wanted: Wanted, limit: int) -> Iterator[Told]:
    """Per operator and side, an object for each of the keys with the most rows."""

    def ask(operator: KeptOperator, reader: Any) -> list[list[Told]]:
        struct = json.loads(reader.keySchema())
        parts = [json.loads(reader.top(n, limit)) for n in range(reader.partitions())]
        return [
            [
                {**large, "key": named(large["key"], struct)}
                for part in parts
                for large in part[side]
            ]
            for side in range(len(operator.sides))
        ]

    epoch, found = query.read(wanted, ask)
    for operator, by_side in found:
        for side, large in zip(operator.sides, by_side, strict=True):
            if wanted.side in (None, side):
                most = sorted(large, key=lambda key: -key["rows"])[:limit]
                yield from ({**_head(operator, epoch), "side": side, **_timed(k)} for k in most)


def _timed(large: Told) -> Told:
    return {k: time_text(v) if k in ("oldest", "newest") else v for k, v in large.items()}


def rows_of(
    query: QueryState, wanted: Wanted, text: str, limit: int
) -> tuple[list[Told], list[str]]:
    """What is kept of a key by each operator whose key it can be; why it cannot be the others'."""
    others: list[str] = []

    def ask(operator: KeptOperator, reader: Any) -> Told | None:
        struct = json.loads(reader.keySchema())
        columns = key_columns(struct)
        try:
            values = parse_key(text, columns)
        except ValueError as why:
            others.append(f"{operator.query}/{operator.node.id} {_columns_text(columns)}: {why}")
            return None
        found = json.loads(reader.get(json.dumps(values), limit))
        sides = [
            {"side": side, "rows": of["rows"], "kept": [_kept(row, columns_) for row in of["kept"]]}
            for side, of, columns_ in zip(
                operator.sides, found.pop("sides"), operator.structs, strict=True
            )
            if wanted.side in (None, side)
        ]
        return {"key": named(values, struct), **found, "sides": sides}

    epoch, found = query.read(wanted, ask)
    told = [{**_head(operator, epoch), **of} for operator, of in found if of is not None]
    return told, list(dict.fromkeys(others))


def no_such_key(text: str, others: Sequence[str]) -> ConfigError:
    keyed = "".join(f"\n  - {line}" for line in others) or " no operator keeps state"
    return ConfigError(
        "STATE_KEY_INVALID",
        f"'{text}' is the key of no operator:{keyed}",
        hint="a single column's value as it is; several as '[1, \"a\"]' or '{\"column\": value}'",
    )


def _kept(row: Told, struct: Mapping[str, Json]) -> Told:
    """`row` None: only a trace is kept, of which the other facts tell."""
    facts = {k: time_text(v) if k in _TIMES else v for k, v in row.items() if k != "row"}
    if facts.get("time") == facts.get("written"):
        facts.pop("time", None)  # it has no other
    return {"row": None if row["row"] is None else named(row["row"], struct), **facts}


def _head(operator: KeptOperator, epoch: int) -> Told:
    return {
        "query": operator.query,
        "operator": operator.node.id,
        "kind": operator.title,
        "epoch": epoch,
    }


def _columns_text(columns: Sequence[KeyColumn]) -> str:
    return f"({', '.join(map(str, columns))})"
