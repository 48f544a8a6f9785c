"""The driver's other record: what it runs. Written once at the start, read by the sidecar.

`status.json` says what happens, `job.json` what was asked for: plans, the graph of each query, the
effective configuration with everything secret masked.
"""

from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spark_jobs.status import Count, replace_file

JOB_FILE = "job.json"


class _Record(BaseModel):
    """Unknown fields are kept out of the way, as in the status record."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class GraphNode(_Record):
    """A table, an operator or a sink of one query.

    `id` is unique in the query. `operator` is the id under which the status counts it.
    `tells_time`: some operator follows the table's watermark; `idle_timeout_ms` is 0 for never.
    `state` says per side what is kept, `retention` for how long.
    """

    id: str
    kind: Literal["source", "operator", "sink"]
    title: str
    details: tuple[str, ...] = ()
    operator: str | None = None
    table: str | None = None
    topics: tuple[str, ...] = ()
    tells_time: bool = False
    idle_timeout_ms: Count = 0
    ttl_ms: tuple[Count, ...] = ()
    retention: str = ""


class GraphEdge(_Record):
    """Rows flow from node `source` to node `target`; `side` is theirs at a join."""

    source: str
    target: str
    side: str = ""


class AdviceRecord(_Record):
    """What to do about a plan; `add` are lines of SQL."""

    text: str
    add: tuple[str, ...] = ()
    is_warning: bool = False


class QueryRecord(_Record):
    """One INSERT: its graph, the text of `rejoin explain`, its plan as JSON, masked.

    `advice` has the warnings too, with the lines that help.
    """

    name: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    warnings: tuple[str, ...] = ()
    advice: tuple[AdviceRecord, ...] = ()
    text: str = ""
    plan: dict[str, Any] = Field(default_factory=dict)


class JobRecord(_Record):
    """What a driver runs. `servers` are the brokers of its tables; they may need credentials."""

    version: Literal[1] = 1
    job: str
    config: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, dict[str, str]] = Field(default_factory=dict)
    queries: tuple[QueryRecord, ...] = ()
    servers: tuple[str, ...] = ()
    secured: bool = False


def write_job(folder: Path, record: JobRecord) -> None:
    """Replace the record in one step."""
    replace_file(folder / JOB_FILE, record.model_dump_json(indent=1))
