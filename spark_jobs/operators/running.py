"""What the operators of one query share while they are built."""

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.plan.physical import (
    KafkaScan,
    KafkaSink,
    Physical,
    Project,
    Rekey,
    Results,
    Stateful,
    TemporalJoin,
    inputs_of,
)
from spark_jobs.plan.plan_json import Json, to_json
from spark_jobs.streaming.kafka import resolved
from spark_jobs.streaming.manifest import Manifest
from spark_jobs.streaming.session import kernel

BUILD_SIDE = 1


@dataclass(frozen=True, slots=True)
class Running:
    """One start of one query.

    `ending`: the inputs are drained and this start delivers the end mark. `repeated_epoch`: the
    one that an earlier driver began and did not finish.
    """

    spark: SparkSession
    query: str
    job: str
    manifest: Manifest
    max_offsets: int
    repeated_epoch: int | None
    ending: bool

    @property
    def kernel(self) -> Any:
        return kernel(self.spark).Kernel

    def frame(self, jdf: Any) -> DataFrame:
        """A frame of the kernel's as PySpark shows it."""
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        return ClassicDataFrame(jdf, self.spark)


@dataclass(frozen=True, slots=True)
class Scan:
    """One place in the plan that reads a table.

    `id`: its name within the query, as a table may be read in several places. `gated`: probe rows
    wait until what it finds at the first start is loaded.
    """

    id: str
    node: KafkaScan
    gated: bool


def scans(root: Physical) -> tuple[Scan, ...]:
    """The scans below a node, left to right: the order in which they are built."""
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
    """Whether the node's probe rows wait until this input of it is loaded."""
    waits = isinstance(node, TemporalJoin) and node.gate.kind == "loaded"
    return waits and isinstance(below, KafkaScan | Rekey) and below.side == BUILD_SIDE


def stateful_nodes(node: Physical) -> Iterator[Stateful]:
    """The operators with state in the order in which Spark reports on them: the last one first."""
    if not isinstance(node, KafkaScan | Rekey | Project | KafkaSink | Results):
        yield node
    for below in inputs_of(node):
        yield from stateful_nodes(below)


def operator_id(query: str, node: Stateful) -> str:
    """What the kernel's counters call the operator; fixed for a checkpoint."""
    return f"{query}/{node.id}"


def spec(node: Physical) -> dict[str, Json]:
    """The node's JSON without its inputs, with the secrets that its options refer to."""
    own = {k: v for k, v in to_json(node).items() if k not in ("input", "inputs")}
    return {k: _resolve(k, v) for k, v in own.items()}


def _resolve(name: str, value: Json) -> Json:
    if name in ("properties", "options") and isinstance(value, Mapping):
        return {k: resolved(v) if isinstance(v, str) else v for k, v in value.items()}
    if isinstance(value, Mapping):
        return {k: _resolve(k, v) for k, v in value.items()}
    return value
