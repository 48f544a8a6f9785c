"""What the operators of one query share: facts of its present start, and JSON of plan nodes."""

from collections.abc import Mapping
from dataclasses import dataclass

from pyspark.sql import SparkSession

from spark_jobs.access.topics import resolved
from spark_jobs.options.secrets import holds_secret
from spark_jobs.plan.nodes.physical import Physical
from spark_jobs.plan.nodes.plan_json import Json, to_json
from spark_jobs.settings import RealTime
from spark_jobs.streaming.manifest import Manifest


@dataclass(frozen=True, slots=True)
class Running:
    """One start of a query; a restart is another one.

    `ending`: the inputs are drained, and this start delivers the end mark. `generation`: the number
    of the driver among those that have owned the checkpoint. `ledgers`: how many epoch ledgers it
    has taken over. `folder`: the query's part of the checkpoint. `live`: the pace
    of real-time mode; None in micro-batches.
    """

    spark: SparkSession
    query: str
    manifest: Manifest
    max_offsets: int
    ending: bool
    generation: int = 1
    ledgers: int = 0
    heartbeat_ms: int = 0
    goes_on_after_data_loss: bool = False
    folder: str = ""
    live: RealTime | None = None

    @property
    def real_time(self) -> bool:
        return self.live is not None

    @property
    def has_steps(self) -> bool:
        """Whether barriers divide an epoch into steps, each of which is committed."""
        return self.live is not None and self.live.commit_ms > 0


def spec(node: Physical) -> dict[str, Json]:
    """The node's JSON without its inputs; the kernel resolves references to secrets itself."""
    own = to_json(node).items()
    return {k: _resolve(k, v) for k, v in own if k not in ("input", "inputs")}


def resolve_public(options: Mapping[str, str]) -> dict[str, str]:
    """Options with references resolved, except secrets: the result is visible in Spark's plans."""
    return {k: v if holds_secret(k) else resolved(v) for k, v in options.items()}


def _resolve(name: str, value: Json) -> Json:
    if name == "options" and isinstance(value, Mapping):
        return {**resolve_public({k: v for k, v in value.items() if isinstance(v, str)})}
    if name != "properties" and isinstance(value, Mapping):
        return {k: _resolve(k, v) for k, v in value.items()}
    return value
