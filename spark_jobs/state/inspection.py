"""Sizes, largest keys and rows of a query's state, as JSON objects."""

import json
from collections.abc import Iterator, Mapping, Sequence

from spark_jobs.errors import ConfigError
from spark_jobs.kernel.calls import StateReader
from spark_jobs.plan.nodes.plan_json import Json
from spark_jobs.state.keys import KeyColumn, key_columns, parse_key
from spark_jobs.state.operators import StatefulOperator, StateSelection
from spark_jobs.state.reading import QueryState
from spark_jobs.state.values import JsonObject, named, time_text

_TIMES = ("time", "written", "committed")


def sizes(query: QueryState, selection: StateSelection) -> Iterator[JsonObject]:
    """One object per operator: rows by side, keys, cells and bytes."""

    def read_operator(operator: StatefulOperator, reader: StateReader) -> JsonObject:
        parts = [json.loads(reader.size(n)) for n in range(reader.partitions())]
        rows = [sum(part["rows"][i] for part in parts) for i in range(len(operator.counted))]
        totals = {what: sum(part[what] for part in parts) for what in ("keys", "cells", "bytes")}
        return {"rows": dict(zip(operator.counted, rows, strict=True)), **totals}

    epoch, found = query.read(selection, read_operator)
    written = query.manifest.written_by
    for operator, totals in found:
        yield {
            **_identity(operator, epoch),
            **totals,
            "key_groups": query.manifest.groups,
            "state_format": 1 if written is None else written.state_format,
        }


def largest(query: QueryState, selection: StateSelection, limit: int) -> Iterator[JsonObject]:
    """One object for each of the `limit` keys with the most rows, per operator and side."""

    def read_operator(operator: StatefulOperator, reader: StateReader) -> list[list[JsonObject]]:
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

    epoch, found = query.read(selection, read_operator)
    for operator, by_side in found:
        for side, large in zip(operator.sides, by_side, strict=True):
            if selection.side in (None, side):
                most = sorted(large, key=lambda key: -key["rows"])[:limit]
                fields = {**_identity(operator, epoch), "side": side}
                yield from ({**fields, **_readable(key)} for key in most)


def _readable(large: JsonObject) -> JsonObject:
    return {k: time_text(v) if k in ("oldest", "newest") else v for k, v in large.items()}


def rows_of(
    query: QueryState, selection: StateSelection, text: str, limit: int
) -> tuple[list[JsonObject], list[str]]:
    """The rows under a key, one object per operator whose key columns the text fits.

    Also returns, for each other operator, why the text does not fit.
    """
    others: list[str] = []

    def read_operator(operator: StatefulOperator, reader: StateReader) -> JsonObject | None:
        struct = json.loads(reader.keySchema())
        columns = key_columns(struct)
        try:
            values = parse_key(text, columns)
        except ValueError as why:
            others.append(f"{operator.query}/{operator.node.id} {_columns_text(columns)}: {why}")
            return None
        found = json.loads(reader.get(json.dumps(values), limit))
        sides = [
            {
                "side": side,
                "rows": of["rows"],
                "kept": [_named_row(r, struct_, operator.structs[-1]) for r in of["kept"]],
            }
            for side, of, struct_ in zip(
                operator.sides, found.pop("sides"), operator.structs, strict=True
            )
            if selection.side in (None, side)
        ]
        return {"key": named(values, struct), **found, "sides": sides}

    epoch, found = query.read(selection, read_operator)
    objects = [{**_identity(o, epoch), **rows} for o, rows in found if rows is not None]
    return objects, list(dict.fromkeys(others))


def key_error(text: str, others: Sequence[str]) -> ConfigError:
    keyed = "".join(f"\n  - {line}" for line in others) or " no operator keeps state"
    return ConfigError(
        "STATE_KEY_INVALID",
        f"'{text}' fits the key of no operator:{keyed}",
        hint="write one column's value as it is, several as '[1, \"a\"]' or '{\"column\": value}'",
    )


def _named_row(
    row: JsonObject, struct: Mapping[str, Json], partner: Mapping[str, Json]
) -> JsonObject:
    """A row with its column names; None where the operator keeps only facts about a row.

    `partner` are the columns of the rows that it was joined with, where those are kept with it.
    """
    facts = {k: time_text(v) if k in _TIMES else v for k, v in row.items() if k != "row"}
    if "joined" in facts:
        facts["joined"] = [named(joined, partner) for joined in facts["joined"]]
    if facts.get("time") == facts.get("written"):
        facts.pop("time", None)  # the row has no time but that of its last write
    return {"row": None if row["row"] is None else named(row["row"], struct), **facts}


def _identity(operator: StatefulOperator, epoch: int) -> JsonObject:
    return {
        "query": operator.query,
        "operator": operator.node.id,
        "kind": operator.title,
        "epoch": epoch,
    }


def _columns_text(columns: Sequence[KeyColumn]) -> str:
    return f"({', '.join(map(str, columns))})"
