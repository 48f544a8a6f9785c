"""The digest by which release 0.1.0 recognised its state: all that a manifest of version 1 holds.

The fields are listed, not found: a field that nodes gain later must not change the digest.
"""

import hashlib
import json
from collections.abc import Mapping

from spark_jobs.plan.nodes.physical import Physical, Stateful
from spark_jobs.plan.nodes.plan_json import Json, to_json
from spark_jobs.plan.nodes.walk import stateful_nodes

_JOIN = ("left", "right", "key", "filterNulls", "residual")
FIELDS = {
    "normalize": ("schema", "key"),
    "key-changes": ("schema", "key"),
    "regular-join": ("joinType", "inputFaults", *_JOIN),
    "multi-join": (
        "joinTypes", "sides", "schema", "key", "filterNulls", "residuals", "inputFaults",
    ),
    "interval-join": ("joinType", "time", "lowerMs", "upperMs", "minCleanupMs", *_JOIN),
    "temporal-join": ("joinType", "time", "lateProbe", *_JOIN),
    "lookup-join": ("joinType", *_JOIN),
    "deduplicate": ("keep", "time", "onWatermark", "generateInsert", "schema"),
    "rank": ("first", "last", "order", "appendOnly", "number", "schema"),
    "aggregate": ("inputSchema", "key", "calls", "schema"),
    "unnest": (),
    "sink-materializer": ("strategy", "upsertKey", "schema"),
}  # fmt: skip
_PARTS = {
    "left": (side := ("schema", "layout", "uniqueKey", "upsert")),
    "right": side,
    "sides": side,
    "calls": ("function", "argument", "distinct", "filter", "type"),
}


def state_digest(root: Physical) -> str:
    """The digest of everything that the cells in the state depended on."""
    nodes = [_node(node) for node in stateful_nodes(root)]
    return hashlib.sha256(json.dumps(nodes, sort_keys=True).encode()).hexdigest()


def _node(node: Stateful) -> dict[str, object]:
    written = to_json(node)
    return {
        "kind": node.kind,
        **{name: _part(name, written[name]) for name in FIELDS[node.kind]},
        "reads": [[i.side, list(i.key), [named.expr for named in i.row]] for i in node.inputs],
        "streams": [[stream.topic for stream in side] for side in node.timing.inputs],
        "expires": [ttl > 0 for ttl in node.timing.ttl_ms],
    }


def _part(name: str, value: Json) -> Json:
    if name in _PARTS and isinstance(value, list):
        return [_part(name, item) for item in value]
    if name in _PARTS and isinstance(value, Mapping):
        return {field: value[field] for field in _PARTS[name]}
    return value
