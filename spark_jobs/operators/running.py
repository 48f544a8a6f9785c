"""What the operators of one query share while they are built."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.plan.physical import (
    Json,
    KafkaScan,
    Normalize,
    Physical,
    RegularJoin,
    TemporalJoin,
    inputs_of,
    to_json,
)
from spark_jobs.streaming.kafka import resolved
from spark_jobs.streaming.manifest import Manifest
from spark_jobs.streaming.session import kernel

StatefulNode: TypeAlias = Normalize | RegularJoin | TemporalJoin


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


def scan_id(scan: KafkaScan) -> str:
    """The scan's name within its query; a self-join reads one table twice."""
    return f"{scan.side}-{scan.table}"


def scans(node: Physical) -> Iterator[KafkaScan]:
    """The scans below a node, left to right."""
    if isinstance(node, KafkaScan):
        yield node
    for below in inputs_of(node):
        yield from scans(below)


def stateful_nodes(node: Physical) -> Iterator[StatefulNode]:
    """The operators with state below a node, in the order in which Spark reports on them."""
    for below in inputs_of(node):
        yield from stateful_nodes(below)
    if isinstance(node, Normalize | RegularJoin | TemporalJoin):
        yield node


def operator_id(query: str, node: StatefulNode) -> str:
    """What the kernel's counters call the operator; fixed for a checkpoint."""
    own = f"{node.kind}-{node.input.side}" if isinstance(node, Normalize) else node.kind
    return f"{query}/{own}"


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
