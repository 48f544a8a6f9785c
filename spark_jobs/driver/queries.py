"""The queries of a job, as their plans show them; connects to nothing."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_jobs.driver.report import OperatorShape, QueryShape
from spark_jobs.driver.verdict import Present
from spark_jobs.errors import ConfigError, UnsupportedError
from spark_jobs.job_record import JobRecord
from spark_jobs.plan.check.fingerprint import fingerprint
from spark_jobs.plan.check.state_digest import state_digest
from spark_jobs.plan.nodes.physical import (
    KafkaSink,
    LookupJoin,
    QueryPlan,
    Stateful,
    TemporalJoin,
    TwoSided,
)
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.plan.planner import plan
from spark_jobs.plan.text.graph import job_record
from spark_jobs.settings import JobSettings
from spark_jobs.sql.bind.binder import Job


@dataclass(frozen=True, slots=True)
class PlannedJob:
    """What the driver runs: `sinks` by query name, `record` for the sidecar."""

    text: str
    settings: JobSettings
    sinks: Mapping[str, KafkaSink]
    record: JobRecord


def plan_job(job: Job, text: str, settings: JobSettings) -> PlannedJob:
    plans = plan(job)
    record = job_record(job, plans, settings.name, dict(settings.table()))
    return PlannedJob(text, settings, sinks_of(plans), record)


def sinks_of(plans: Sequence[QueryPlan]) -> dict[str, KafkaSink]:
    """The planned INSERTs by query name, which is also the name of the checkpoint's folder."""
    sinks = {p.name: p.root for p in plans if isinstance(p.root, KafkaSink)}
    if not sinks:
        raise ConfigError("NOTHING_TO_RUN", "the file has no INSERT INTO")
    if wrong := [name for name in sinks if "/" in name or name in (".", "..")]:
        raise ConfigError(
            "QUERY_NAME",
            f"sink '{wrong[0]}' cannot give its name to the folder of its checkpoint",
            hint="rename the table, without '/'; its 'topic' may keep the name",
        )
    return sinks


def is_bounded(sink: KafkaSink) -> bool:
    """Whether all inputs of the query end; raises if only some of them do."""
    modes = {scan.table: scan.bounded.mode for scan in scans(sink)}
    endless = [table for table, mode in modes.items() if mode == "unbounded"]
    if endless and len(endless) < len(modes):
        raise UnsupportedError(
            "MIXED_BOUNDED_INPUTS",
            f"query into {sink.table}: some inputs are bounded, {', '.join(endless)} is not",
            hint="give every input a 'scan.bounded.mode', or none",
        )
    return not endless


def needs_clock(sink: KafkaSink) -> bool:
    """Whether an operator of the query waits for time to pass or for its inputs to end."""
    return any(node.timing.tick_ms is not None for node in stateful_nodes(sink))


def present(sink: KafkaSink, settings: JobSettings) -> Present:
    """What the manifest of the query's checkpoint is compared with."""
    return Present(
        plan=fingerprint(sink),
        digest=state_digest(sink),
        groups=settings.key_groups,
        parallelism=settings.parallelism,
    )


def shape(sink: KafkaSink, name: str) -> QueryShape:
    """What the status record shows of the plan."""
    return QueryShape(
        name=name,
        sink=sink.topic,
        tables={scan.id: scan.table for scan in scans(sink)},
        topics={t.name: t.index for scan in scans(sink) for t in scan.topics},
        operators=[_operator_shape(name, node) for node in stateful_nodes(sink)],
    )


def _operator_shape(query: str, node: Stateful) -> OperatorShape:
    return OperatorShape(
        id=f"{query}/{node.id}",
        kind=node.kind,
        sides=("left", "right") if isinstance(node.machine, TwoSided) else ("input",),
        tells_time=any(node.timing.inputs),
        waits=isinstance(node.machine, TemporalJoin) and node.machine.gate.kind != "none",
        gated=node.gated_topics,
        asks=isinstance(node.machine, LookupJoin),
    )
