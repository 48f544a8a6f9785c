"""What the operators of one query share: the start they belong to, scans, JSON of plan nodes."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_jobs.access.topics import resolved
from spark_jobs.options.secrets import holds_secret
from spark_jobs.plan.nodes.physical import (
    KafkaScan,
    Physical,
    Rekey,
    Stateful,
    TemporalJoin,
    inputs_of,
)
from spark_jobs.plan.nodes.plan_json import Json, to_json
from spark_jobs.streaming.manifest import Manifest

BUILD_SIDE = 1


@dataclass(frozen=True, slots=True)
class Running:
    """One start of one query.

    `ending`: the inputs are drained, and this start delivers the end mark. `generation`: the number
    of the driver among those that have owned the checkpoint.
    """

    spark: SparkSession
    query: str
    manifest: Manifest
    max_offsets: int
    ending: bool
    generation: int = 1
    heartbeat_ms: int = 0
    goes_on_after_data_loss: bool = False


@dataclass(frozen=True, slots=True)
class Scan:
    """One place in the plan that reads a table.

    `id`: unique in the query, while a table may be read in several places. `gated`: probe rows wait
    until its initial content is loaded.
    """

    id: str
    node: KafkaScan
    gated: bool


def scans(root: Physical) -> tuple[Scan, ...]:
    """The scans below a node from left to right, the order in which they are built."""
    seen: Counter[str] = Counter()
    found: list[Scan] = []
    for node, gated in _scans(root, gated=False):
        name = f"{node.side}-{node.table}"
        seen[name] += 1
        found.append(Scan(name if seen[name] == 1 else f"{name}-{seen[name]}", node, gated))
    return tuple(found)


def _scans(node: Physical, *, gated: bool) -> Iterator[tuple[KafkaScan, bool]]:
    if isinstance(node, KafkaScan):
        yield node, gated
    for below in inputs_of(node):
        yield from _scans(below, gated=gated or feeds_gate(node, below))


def feeds_gate(node: Physical, below: Physical) -> bool:
    """Whether the node's probe rows wait until its input `below` is loaded."""
    waits = isinstance(node, TemporalJoin) and node.gate.kind == "loaded"
    return waits and isinstance(below, KafkaScan | Rekey) and below.side == BUILD_SIDE


def operator_id(query: str, node: Stateful) -> str:
    """The operator's name in the kernel's counters; it never changes for a checkpoint."""
    return f"{query}/{node.id}"


def spec(node: Physical) -> dict[str, Json]:
    """The node's JSON without its inputs; the kernel resolves references to secrets itself."""
    own = {k: v for k, v in to_json(node).items() if k not in ("input", "inputs")}
    return {k: _resolve(k, v) for k, v in own.items()}


def resolve_public(options: Mapping[str, str]) -> dict[str, str]:
    """Options with references resolved, except secrets: the result is visible in Spark's plans."""
    return {k: v if holds_secret(k) else resolved(v) for k, v in options.items()}


def _resolve(name: str, value: Json) -> Json:
    if name == "options" and isinstance(value, Mapping):
        return {**resolve_public({k: v for k, v in value.items() if isinstance(v, str)})}
    if name != "properties" and isinstance(value, Mapping):
        return {k: _resolve(k, v) for k, v in value.items()}
    return value
