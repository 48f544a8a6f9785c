"""Combines status, plan and history into the bodies of /queries and /state."""

import shlex

from service.driver import DriverView
from service.history import History
from service.models import OperatorState, QuerySummary
from service.silence import silence
from service.trends import latencies
from service.watermarks import watermarks
from spark_jobs.job_record import GraphNode, JobRecord, QueryRecord
from spark_jobs.status import OperatorStatus


def query_summaries(
    view: DriverView, job: JobRecord | None, history: History
) -> tuple[QuerySummary, ...]:
    """One summary per INSERT."""
    records = _records(job)
    marks = {mark.query: mark for mark in watermarks(view.status, job)}
    return tuple(
        QuerySummary.model_validate(
            dict(query)
            | {
                "epoch_ms": query.trigger_ms,
                "input_rows_per_second": history.input_rate(query.name),
                "output_rows_per_second": history.output_rate(query.name),
                **_latencies(query.name, history),
                "lag_records": query.lag_records,
                "warnings": records[query.name].warnings if query.name in records else (),
                "silence": silence(view, query, marks[query.name], history),
            }
        )
        for query in (view.status.queries if view.status else ())
    )


def _latencies(query: str, history: History) -> dict[str, float | None]:
    p50, p99 = latencies(query, history)
    return {"latency_p50_seconds": p50, "latency_p99_seconds": p99}


def operator_states(
    view: DriverView, job: JobRecord | None, history: History
) -> tuple[OperatorState, ...]:
    """One entry per stateful operator."""
    nodes = {n.operator: n for q in _records(job).values() for n in q.nodes if n.operator}
    folder = None if job is None else job.config.get("rejoin.checkpoint")
    options = "" if folder is None else f" --checkpoint {shlex.quote(folder)}"
    return tuple(
        _state(query.name, operator, nodes.get(operator.id), history, options)
        for query in (view.status.queries if view.status else ())
        for operator in query.operators
    )


def _state(
    query: str, operator: OperatorStatus, node: GraphNode | None, history: History, options: str
) -> OperatorState:
    return OperatorState.model_validate(
        dict(operator)
        | {
            "query": query,
            "operator": operator.id,
            "title": node.title if node is not None else operator.kind,
            "rows_per_minute": history.state_rows_per_minute(query, operator.id),
            "bytes_per_minute": history.state_bytes_per_minute(query, operator.id),
            "retention": node.retention if node is not None else "",
            "ttl_ms": node.ttl_ms if node is not None else (),
            "series": history.state_series(query, operator.id),
            "top_keys": f"rejoin state top JOB.sql --operator {shlex.quote(operator.id)}{options}",
        }
    )


def _records(job: JobRecord | None) -> dict[str, QueryRecord]:
    return {q.name: q for q in (job.queries if job is not None else ())}
