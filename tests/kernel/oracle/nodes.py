"""What the nodes of both temporal joins have in common, as the planner writes it."""

from typing import Any

from tests.kernel.oracle.check import struct
from tests.kernel.oracle.probes import Identity

RESIDUAL = "`l_v` < `r_v`"
WHERE = "`r_v` IS NULL OR `r_v` > 1"


def side_node(
    columns: tuple[tuple[str, str], ...],
    layout: str = "no-unique-key",
    unique_key: tuple[int, ...] = (),
    upsert: bool = False,
) -> dict[str, Any]:
    key = list(unique_key)
    return {"schema": struct(columns), "layout": layout, "uniqueKey": key, "upsert": upsert}


def probe_node(
    columns: tuple[tuple[str, str], ...], known_by: Identity | None, ident: int
) -> dict[str, Any]:
    by_key = known_by == "key"
    return side_node(columns, *(("has-unique-key", (ident,)) if by_key else ()))


def output_node(where: bool, paired: bool) -> dict[str, Any]:
    return {
        "where": WHERE if where else None,
        "pairBy": ["`l_id`"] if paired else None,
        "timeZone": "UTC",
    }


def timing_node(idle_timeout_ms: int, policy: str, forwards: bool, ttl_ms: int) -> dict[str, Any]:
    return {
        "inputs": [[{"topic": i, "idleTimeoutMs": idle_timeout_ms}] for i in (0, 1)],
        "policy": policy,
        "forward": 1 << 14 if forwards else None,
        "tickMs": 0,
        "ttlMs": [ttl_ms, ttl_ms],
    }
