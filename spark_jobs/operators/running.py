"""What the operators of one query share while they are built."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from spark_jobs.options.secrets import holds_secret
from spark_jobs.plan.nodes.physical import Physical, Stateful
from spark_jobs.plan.nodes.plan_json import Json, to_json
from spark_jobs.streaming.kafka import resolved
from spark_jobs.streaming.manifest import Manifest
from spark_jobs.streaming.session import kernel


@dataclass(frozen=True, slots=True)
class Running:
    """One start of one query.

    `ending`: the inputs are drained and this start delivers the end mark. `generation`: the
    driver's number among those of the checkpoint.
    """

    spark: SparkSession
    query: str
    manifest: Manifest
    max_offsets: int
    ending: bool
    generation: int = 1
    heartbeat_ms: int = 0
    goes_on_after_data_loss: bool = False

    @property
    def kernel(self) -> Any:
        return kernel(self.spark).Kernel

    def frame(self, jdf: Any) -> DataFrame:
        """A frame of the kernel's as PySpark shows it."""
        from pyspark.sql.classic.dataframe import DataFrame as ClassicDataFrame

        return ClassicDataFrame(jdf, self.spark)


def operator_id(query: str, node: Stateful) -> str:
    """What the kernel's counters call the operator; fixed for a checkpoint."""
    return f"{query}/{node.id}"


def spec(node: Physical) -> dict[str, Json]:
    """The node's JSON without its inputs; the kernel itself looks up the secrets it refers to."""
    own = {k: v for k, v in to_json(node).items() if k not in ("input", "inputs")}
    return {k: _resolve(k, v) for k, v in own.items()}


def resolve_public(options: Mapping[str, str]) -> dict[str, str]:
    """References resolved, but not those to secrets: this ends in plans of Spark's."""
    return {k: v if holds_secret(k) else resolved(v) for k, v in options.items()}


def _resolve(name: str, value: Json) -> Json:
    if name == "options" and isinstance(value, Mapping):
        return {**resolve_public({k: v for k, v in value.items() if isinstance(v, str)})}
    if name != "properties" and isinstance(value, Mapping):
        return {k: _resolve(k, v) for k, v in value.items()}
    return value
