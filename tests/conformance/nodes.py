"""The planner's JSON of the operator that an operator case describes, built from the case alone."""

import re
import sqlite3
from typing import Any

from tests.conformance.case import Case
from tests.kernel.oracle.check import struct

Columns = list[list[str]]
Node = dict[str, Any]

FORWARD = 1 << 14  # the topic index under which the operator tells its own watermark
_TYPES = {"INT": "integer", "BIGINT": "long", "STRING": "string", "DOUBLE": "double"}
_LAYOUTS = {
    "JoinKeyContainsUniqueKey": "join-key-contains-unique-key",
    "HasUniqueKey": "has-unique-key",
    "NoUniqueKey": "no-unique-key",
}
_STRATEGIES = {"do-nothing": "nothing", "do-error": "error", "do-deduplicate": "deduplicate"}
_EQUALITY = re.compile(r"\s*([\w#]+)\s*=\s*([\w#]+)\s*$")


def node_of(case: Case) -> Node:
    """With `rows`: what the in-memory machine must know of each input."""
    config = case["config"]
    match case["operator"]:
        case "regular" if config.get("implementation") == "multi-join":
            node = _multi_join(config)
        case "regular" | "semi" | "anti":
            node = _join("regular-join", config) | {"joinType": config["join_type"]}
        case "interval":
            node = _interval_join(config)
        case "temporal":
            node = _temporal_join(config)
        case "dedup" if all(event[1] == "+I" for event in case["events"] if len(event) > 2):
            node = _deduplicate(config)
        case "dedup" | "normalize":  # the last row of a changelog's key is what normalising keeps
            node = _normalize(config)
        case "sink-materializer":
            node = _sink_materializer(config)
        case other:
            raise ValueError(f"there is no operator {other!r}")
    node = {"output": output(), "id": "0"} | node | _timing(case, node)
    return node | {"inputFaults": "trust"} if has_faults(case) else node


def output(pair_by: list[str] | None = None) -> Node:
    return {"where": None, "pairBy": pair_by, "timeZone": "UTC"}


def has_faults(case: Case) -> bool:
    """Whether the input of a join is no changelog: a row comes twice under its key, or one goes
    that is not there. We repair that, Flink trusts it (docs/semantics.md, "What differs").
    """
    if case["operator"] not in ("regular", "semi", "anti"):
        return False
    config = case["config"]
    sides = config.get("inputs") or config
    present: dict[Any, list[Any]] = {}
    for name, kind, *row in (e for e in case["events"] if len(e) > 2):
        side, values = sides[name], row[0]
        identity = [*(side.get("join_key") or ()), *(side["unique_key"] or values)]
        rows = present.setdefault((name, *(values[column] for column in identity)), [])
        if kind in ("+I", "+U"):
            if side["unique_key"] and rows:
                return True
            rows.append(values)
        elif values not in rows:
            return True
        else:
            rows.remove(values)
    return False


def emitted_columns(case: Case) -> list[str]:
    """Names of the columns that the operator emits, before any SELECT list."""
    config = case["config"]
    sides = config.get("inputs") or {n: config[n] for n in ("left", "right") if n in config}
    parts = [side["columns"] for side in sides.values()] or [config["columns"]]
    return [name for columns in parts for name, _ in columns]


def inputs_of(case: Case) -> list[str]:
    """Names of the inputs in events, in order."""
    config = case["config"]
    if config.get("implementation") == "multi-join":
        return list(config["inputs"])
    return ["left", "right"] if "left" in config else ["input"]


def _timing(case: Case, node: Node) -> Node:
    config = case["config"]
    count = len(node["rows"])
    told = [[{"topic": i, "idleTimeoutMs": 0}] for i in range(count)]
    is_probe = node["kind"] == "temporal-join" and node["time"] == "processing"
    heard = [*told[:1], []] if is_probe else told
    follows = any(e[0].startswith("watermark") for e in case["events"])
    emitted = [row for segment in case["expected"] for row in segment["emit"]]
    ttl = [(config[side].get("ttl_ms") or 0) if side in config else 0 for side in ("left", "right")]
    shared = config.get("ttl_ms") or config.get("min_retention_ms") or 0
    timing = {
        "inputs": heard if follows else [],
        "policy": "min",
        "forward": FORWARD if any(row[0] == "watermark" for row in emitted) else None,
        "tickMs": 0,
        "ttlMs": [own or shared for own in ttl],
    }
    return {"timing": timing}


def _join(kind: str, config: dict[str, Any]) -> Node:
    left, right = config["left"], config["right"]
    key = [column for name in left["join_key"] for column in left["columns"] if column[0] == name]
    sides = (left, config.get("left_time")), (right, config.get("right_time"))
    return {
        "kind": kind,
        "joinType": config["join_type"],
        "left": _side(left),
        "right": _side(right),
        "key": _struct(key),
        "filterNulls": config.get("filter_null_keys") or [True] * len(key),
        "residual": quoted(config.get("residual"), left["columns"] + right["columns"]),
        "rows": [_row(side["columns"], side["join_key"], time) for side, time in sides],
    }


def _interval_join(config: dict[str, Any]) -> Node:
    return _join("interval-join", config) | {
        "time": config["time"],
        "lowerMs": config["lower_bound_ms"],
        "upperMs": config["upper_bound_ms"],
        "minCleanupMs": config.get("min_cleanup_interval_ms") or 0,
        "allowedLatenessMs": config.get("allowed_lateness_ms") or 0,
    }


def _temporal_join(config: dict[str, Any]) -> Node:
    gate = {"kind": "none", "atMs": 0, "timeoutMs": 0, "onTimeout": "fail"}
    return _join("temporal-join", config) | {"time": config["time"], "gate": gate}


def _multi_join(config: dict[str, Any]) -> Node:
    """The key that all inputs share is the join key; other conditions are checked per result."""
    sides = list(config["inputs"].values())
    texts = [condition["on"] for condition in config["conditions"]]
    keys = _shared_key(sides, [text for on in texts for text in on])
    chosen = [name for key in keys for name in key]
    residuals = []
    for number, on in enumerate(texts, 1):
        rest = []
        for text in on:
            ends = _ends(text, sides)
            if ends is None or any(name not in chosen for _, name in ends):
                rest.append(text)
                continue
            for side, name in ends:
                if 0 < side < number and config["join_types"][side - 1] == "left":
                    rest.append(f"{name} IS NOT NULL")  # a padded row has no key
        known = [column for side in sides[: number + 1] for column in side["columns"]]
        residuals.append(quoted(" AND ".join(f"({t})" for t in rest) or None, known))
    first = [c for name in keys[0] for c in sides[0]["columns"] if c[0] == name]
    return {
        "kind": "multi-join",
        "joinTypes": config["join_types"],
        "sides": [_side(side) for side in sides],
        "schema": _struct([column for side in sides for column in side["columns"]]),
        "key": _struct(first),
        "filterNulls": config.get("filter_null_keys") or [True] * len(first),
        "residuals": residuals,
        "rows": [_row(s["columns"], key) for s, key in zip(sides, keys, strict=True)],
    }


def _shared_key(sides: list[dict[str, Any]], texts: list[str]) -> list[list[str]]:
    """Per side the columns that equalities tie to a column of every other side."""
    classes: list[dict[int, str]] = []
    for ends in (found for text in texts if (found := _ends(text, sides)) is not None):
        tied = [c for c in classes if any(c.get(side) == name for side, name in ends)]
        merged = {side: name for c in [dict(ends), *tied] for side, name in c.items()}
        classes = [c for c in classes if c not in tied] + [merged]
    whole = [c for c in classes if len(c) == len(sides)]
    return [[c[side] for c in whole] for side in range(len(sides))]


def _ends(text: str, sides: list[dict[str, Any]]) -> list[tuple[int, str]] | None:
    """The sides and columns of an equality between two sides."""
    found = _EQUALITY.match(text)
    if found is None:
        return None
    ends = [
        (number, name)
        for name in found.groups()
        for number, side in enumerate(sides)
        if name in [column for column, _ in side["columns"]]
    ]
    return ends if len(ends) == 2 and ends[0][0] != ends[1][0] else None


def _deduplicate(config: dict[str, Any]) -> Node:
    columns = config["columns"]
    keeps_before = config.get("generate_update_before", True)
    return {
        "kind": "deduplicate",
        "keep": config["keep"],
        "time": config["order"],
        "onWatermark": config.get("emit_on") == "watermark",
        "generateInsert": config.get("generate_insert", True),
        "schema": _struct(columns),
        "output": output(None if keeps_before else [f"`{name}`" for name in config["key"]]),
        "rows": [_row(columns, config["key"], config.get("order_column"))],
    }


def _normalize(config: dict[str, Any]) -> Node:
    columns, key = config["columns"], config["key"]
    keeps_before = config.get("generate_update_before", True)
    return {
        "kind": "normalize",
        "schema": _struct(columns),
        "key": _ordinals(columns, key),
        "output": output(None if keeps_before else [f"`{name}`" for name in key]),
        "rows": [_row(columns, key)],
    }


def _sink_materializer(config: dict[str, Any]) -> Node:
    columns = config["columns"]
    on_conflict = _STRATEGIES[config.get("on_conflict") or "do-deduplicate"]
    return {
        "kind": "sink-materializer",
        "strategy": "deduplicate" if config["strategy"] == "list" else on_conflict,
        "upsertKey": _ordinals(columns, config.get("upsert_key") or []),
        "schema": _struct(columns),
        "rows": [_row(columns, config["primary_key"])],
    }


def _row(columns: Columns, key: list[str], time: str | None = None) -> Node:
    return {
        "schema": _struct(columns),
        "key": _ordinals(columns, key),
        "time": None if time is None else _ordinals(columns, [time])[0],
    }


def _side(side: dict[str, Any]) -> Node:
    return {
        "schema": _struct(side["columns"]),
        "layout": _LAYOUTS.get(side.get("state_layout", ""), "no-unique-key"),
        "uniqueKey": _ordinals(side["columns"], side.get("unique_key") or []),
        "upsert": False,
    }


def _struct(columns: Columns) -> Node:
    return struct((name, _TYPES[kind.split()[0]]) for name, kind in columns)


def _ordinals(columns: Columns, names: list[str]) -> list[int]:
    return [[c[0] for c in columns].index(name) for name in names]


def quoted(text: str | None, columns: Columns) -> str | None:
    """Spark SQL: column names in backticks."""
    if text is None:
        return None
    names = {name for name, _ in columns}
    return re.sub(r"[\w#]+", lambda m: f"`{m[0]}`" if m[0] in names else m[0], text)


def passes(condition: str | None, row: dict[str, Any]) -> bool:
    """Whether a row passes a filter, by SQLite's reading of it."""
    if condition is None:
        return True
    columns = ", ".join(f'? AS "{name}"' for name in row)
    query = f"SELECT ({condition}) IS TRUE FROM (SELECT {columns})"  # noqa: S608 - a case's own
    with sqlite3.connect(":memory:") as database:
        return bool(database.execute(query, tuple(row.values())).fetchone()[0])
