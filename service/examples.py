"""Examples in the OpenAPI document, made from one small job by the sidecar's own functions."""

from datetime import UTC, datetime, timedelta
from itertools import chain, repeat
from typing import Any

from pydantic import TypeAdapter

from service.driver import DriverView
from service.health import unready_reasons
from service.history import History
from service.models import (
    ConfigBody,
    Health,
    LagBody,
    PartitionLag,
    QueryPlan,
    Reason,
    SampleBody,
    SampleRow,
    StateLink,
    StatusBody,
)
from service.state import operator_states, query_summaries
from service.trends import trends
from service.watermarks import watermarks
from spark_jobs.job_record import AdviceRecord, GraphEdge, GraphNode, JobRecord, QueryRecord
from spark_jobs.status import (
    BootstrapStatus,
    BuildStatus,
    ErrorStatus,
    JobStatus,
    LatencyStatus,
    OperatorStatus,
    PartitionStatus,
    QueryStatus,
    SideStatus,
    SourceStatus,
)

_NOON = datetime(2024, 1, 31, 12, tzinfo=UTC)
_NOON_MS = int(_NOON.timestamp() * 1000)
_OPERATOR = "enriched/temporal-join-1"


def _source(table: str, lag: int) -> SourceStatus:
    end = PartitionStatus(
        partition=0, offset=4812, latest_offset=4812 + lag, watermark_ms=_NOON_MS - 5000
    )
    return SourceStatus(table=table, topic=f"shop.{table}", partitions=(end,), lag_records=lag)


_STATUS = JobStatus(
    job="shop",
    pid=7,
    started_at=_NOON - timedelta(hours=1),
    updated_at=_NOON,
    state="running",
    build=BuildStatus(version="1.2.3"),
    queries=(
        QueryStatus(
            name="enriched",
            sink="shop.enriched",
            epoch=811,
            epochs_total=812,
            trigger_ms=310,
            input_rows_total=9624,
            output_rows_total=4790,
            latency=LatencyStatus(counts={"400": 4780, "600": 10}, sum_ms=1_434_000),
            changes={"+I": 4790},
            transactions_committed_total=1624,
            rejects={"json-malformed": 2},
            late_rows_total=3,
            sources=(_source("orders", 12), _source("prices", 0)),
            operators=(
                OperatorStatus(
                    id=_OPERATOR,
                    kind="temporal-join",
                    sides=(SideStatus(side="left", rows=40), SideStatus(side="right", rows=310)),
                    state_bytes=28_110,
                    bootstrap=BootstrapStatus(
                        partitions_loaded=1, partitions_total=1, waiting_rows=0, complete=True
                    ),
                ),
            ),
            durations_ms={"addBatch": 240},
            watermark_ms=_NOON_MS - 5000,
            restarts_total=1,
            last_failure=ErrorStatus(
                code="KAFKA_UNREACHABLE",
                message="127.0.0.1:9092 did not answer",
                hint="is the broker running, and is that its address?",
            ),
        ),
    ),
)
_JOB = JobRecord(
    job="shop",
    config={"pipeline.name": "shop", "rejoin.parallelism": "2"},
    tables={
        "orders": {"topic": "shop.orders", "properties.sasl.jaas.config": "***"},
    },
    queries=(
        QueryRecord(
            name="enriched",
            nodes=(
                *(
                    GraphNode(id=table, kind="source", title=table, table=table, tells_time=True)
                    for table in ("orders", "prices")
                ),
                GraphNode(
                    id="join", kind="operator", title="temporal join, left", operator=_OPERATOR
                ),
                GraphNode(id="sink", kind="sink", title="shop.enriched"),
            ),
            edges=(
                GraphEdge(source="orders", target="join", side="left"),
                GraphEdge(source="prices", target="join", side="right"),
                GraphEdge(source="join", target="sink"),
            ),
            advice=(
                AdviceRecord(
                    text="one record of orders that cannot be read stops the job",
                    add=("'rejoin.dead-letter.topic' = 'orders.dead'  -- in WITH",),
                ),
            ),
            text="KafkaSink(table=[enriched], topic=[shop.enriched])",
        ),
    ),
)
_STALE = Reason(code="status_stale", message="75 s old")
_VIEW = DriverView(_STATUS, 0.4, None)
_SILENT = DriverView(_STATUS, 75.2, _STALE)
_MISSING = DriverView(None, None, Reason(code="status_missing", message="none"))
_DOWN = Reason(code="broker_unreachable", message="127.0.0.1:9092: timed out")


def _history() -> History:
    """A minute, of which the last 40 seconds have brought no result."""
    moments = chain((0.0, 20.0), repeat(60.0))
    history = History(lambda: next(moments))
    before = {"output_rows_total": 4690, "latency": LatencyStatus(counts={"400": 4690})}
    queries = tuple(query.model_copy(update=before) for query in _STATUS.queries)
    history.add(_STATUS.model_copy(update={"queries": queries}))
    history.add(_STATUS)
    history.add(_STATUS)
    return history


def _content(body: object, **others: dict[str, Any]) -> dict[str, Any]:
    shown = TypeAdapter(type(body)).dump_python(body, mode="json")
    return {"content": {"application/json": {"example": shown}, **others}}


def _answer(body: object, **others: dict[str, Any]) -> dict[int | str, dict[str, Any]]:
    return {200: _content(body, **others)}


LIVE = _answer(Health(ok=True))
READY = _answer(Health(ok=True)) | {
    503: {
        "model": Health,
        "description": "the job is not working now",
        **_content(Health(ok=False, reasons=unready_reasons(_MISSING))),
    }
}
_SCRAPE = '# TYPE rejoin_epochs_total counter\nrejoin_epochs_total{query="enriched"} 812.0\n'
METRICS: dict[int | str, dict[str, Any]] = {200: {"content": {"text/plain": {"example": _SCRAPE}}}}
STATUS = _answer(
    StatusBody(status=_STATUS, age_seconds=75.2, problem=_STALE, unready=unready_reasons(_SILENT))
)
QUERIES = _answer(query_summaries(_VIEW, _JOB, _history()))
STATE = _answer(operator_states(_VIEW, _JOB, _history()))
TRENDS = _answer(trends(("enriched",), _history()))
WATERMARKS = _answer(watermarks(_STATUS, _JOB))
CONFIG = _answer(ConfigBody(settings=_JOB.config, tables=_JOB.tables))
PLAN = _answer(
    tuple(QueryPlan(**query.model_dump()) for query in _JOB.queries),
    **{"text/plain": {"schema": {"type": "string"}, "example": f"{_JOB.queries[0].text}\n"}},
)
LAG = _answer(
    LagBody(
        measured="driver",
        problem=_DOWN,
        partitions=(
            PartitionLag(
                table="orders",
                topic="shop.orders",
                partition=0,
                offset=4812,
                end_offset=4824,
                lag_records=12,
            ),
        ),
        lag_records=12,
    )
)
ROWS = _answer(
    SampleBody(
        enabled=True,
        problem=_DOWN,
        rows=(
            SampleRow(
                change="corrected",
                before='{"id": 17, "email": "***", "price": null}',
                topic="shop.enriched",
                partition=0,
                offset=4790,
                timestamp_ms=_NOON_MS,
                key='{"id": 17}',
                value='{"id": 17, "email": "***", "price": "9.90"}',
                state=(
                    StateLink(
                        operator=_OPERATOR,
                        title="temporal join, left",
                        columns=("id",),
                        key="[17]",
                    ),
                ),
            ),
        ),
    )
)
