"""The job record `job.json`: what a driver runs. Written once at the start, read by the sidecar.

It has the plan and the graph of each query and the effective configuration, with secrets masked.
`status.json` has what changes while the job runs.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from spark_jobs.status import Count, replace_file

JOB_FILE = "job.json"


class _Record(BaseModel):
    """Ignores unknown fields, so that an older sidecar can read the record of a newer driver."""

    model_config = ConfigDict(frozen=True, extra="ignore")


class GraphNode(_Record):
    """A table, an operator or a sink of one query.

    `id` is unique in the query; `operator` is the operator's id in the status record. `tells_time`
    means that an operator uses the table's watermark. `idle_timeout_ms` 0 means no timeout.
    `retention` says how long state is kept. `key_columns` are the columns of a result row that hold
    the operator's key, in its order; nothing if a result row does not show the whole key.
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
    key_columns: tuple[str, ...] = ()


class GraphEdge(_Record):
    """Rows flow from node `source` to node `target`; `side` is their side of a join."""

    source: str
    target: str
    side: str = ""


class AdviceRecord(_Record):
    """Advice on a plan; `add` are lines of SQL to add."""

    text: str
    add: tuple[str, ...] = ()
    is_warning: bool = False


class QueryRecord(_Record):
    """One INSERT: its graph, the text of `rejoin explain`, and its plan as JSON without secrets.

    `advice` has the warnings too, with the lines to add.
    """

    name: str
    nodes: tuple[GraphNode, ...]
    edges: tuple[GraphEdge, ...]
    warnings: tuple[str, ...] = ()
    advice: tuple[AdviceRecord, ...] = ()
    text: str = ""
    plan: dict[str, Any] = Field(default_factory=dict)


class JobRecord(_Record):
    """What a driver runs. `servers` are its brokers; `secured` says that they need credentials."""

    version: Literal[1] = 1
    job: str
    config: dict[str, str] = Field(default_factory=dict)
    tables: dict[str, dict[str, str]] = Field(default_factory=dict)
    queries: tuple[QueryRecord, ...] = ()
    servers: tuple[str, ...] = ()
    secured: bool = False


def write_job(folder: Path, record: JobRecord) -> None:
    """Write the record atomically."""
    replace_file(folder / JOB_FILE, record.model_dump_json(indent=1))


def with_topics(record: JobRecord, query: str, topics: Mapping[str, tuple[str, ...]]) -> JobRecord:
    """The record in which the tables of a query read these topics."""

    def read(node: GraphNode) -> GraphNode:
        found = topics.get(node.table or "") if node.kind == "source" else None
        return node if found is None else node.model_copy(update={"topics": found})

    queries = tuple(
        each.model_copy(update={"nodes": tuple(map(read, each.nodes))})
        if each.name == query
        else each
        for each in record.queries
    )
    return record.model_copy(update={"queries": queries})
