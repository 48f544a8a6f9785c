"""The read-only endpoints of the sidecar; they work even if the driver does not."""

from typing import Annotated, Literal

from fastapi import APIRouter, HTTPException, Query, Request, Response
from fastapi.responses import PlainTextResponse

from service import examples
from service.driver import Driver, DriverView
from service.health import unready_reasons
from service.history import History
from service.metrics import Exposition
from service.models import (
    NO_QUERY,
    ConfigBody,
    Health,
    OperatorState,
    QueryPlan,
    QuerySummary,
    QueryTrends,
    QueryWatermarks,
    StatusBody,
)
from service.state import operator_states, query_summaries
from service.trends import trends
from service.watermarks import watermarks

_JSON = "application/json"
_METRICS = "text/plain; version=0.0.4; charset=utf-8"
_VARY = {"Vary": "Accept-Encoding"}
_GZIP = {"Content-Encoding": "gzip", **_VARY}


def build_router(driver: Driver, history: History) -> APIRouter:
    """The endpoints for one driver; none of them blocks, so they need no threads."""
    router = APIRouter(tags=["job"])
    router.include_router(_health(driver))

    @router.get("/status", responses=examples.STATUS)
    async def status() -> StatusBody:
        """The driver's last good status."""
        view = driver.look()
        unready = unready_reasons(view)
        return StatusBody(
            status=view.status, age_seconds=view.age_s, problem=view.problem, unready=unready
        )

    @router.get("/queries", responses=examples.QUERIES)
    async def queries() -> tuple[QuerySummary, ...]:
        """Each INSERT with epoch, rates of the last minute, lag and rejected records."""
        return query_summaries(_sampled(driver, history), driver.job(), history)

    @router.get("/trends", responses=examples.TRENDS)
    async def charts() -> tuple[QueryTrends, ...]:
        """Throughput, latency, lag and watermark delay of the last ten minutes."""
        status = _sampled(driver, history).status
        return trends([query.name for query in status.queries] if status else [], history)

    @router.get("/state", responses=examples.STATE)
    async def state() -> tuple[OperatorState, ...]:
        """The state of each operator: rows, retention and growth."""
        return operator_states(_sampled(driver, history), driver.job(), history)

    @router.get("/watermarks", responses=examples.WATERMARKS)
    async def marks() -> tuple[QueryWatermarks, ...]:
        """The watermark of each partition, and which partitions hold a query back."""
        return watermarks(driver.look().status, driver.job())

    router.include_router(_job(driver))
    return router


def _job(driver: Driver) -> APIRouter:
    """The endpoints for metrics, configuration and plan."""
    router = APIRouter()
    exposition = Exposition(driver)

    @router.get("/metrics", response_class=PlainTextResponse, responses=examples.METRICS)
    async def metrics(request: Request) -> Response:
        """All metrics in Prometheus' text format."""
        if "gzip" in request.headers.get("accept-encoding", ""):
            return Response(exposition.compressed(), headers=_GZIP, media_type=_METRICS)
        return Response(exposition.text(), headers=_VARY, media_type=_METRICS)

    @router.get("/config", responses=examples.CONFIG)
    async def config() -> ConfigBody:
        """The effective settings and table options; secrets are masked."""
        job = driver.job()
        return ConfigBody(settings=job.config if job else {}, tables=job.tables if job else {})

    @router.get("/plan", response_model=list[QueryPlan], responses=examples.PLAN | NO_QUERY)
    async def plan(
        query: Annotated[str | None, Query(description="name of a query; all if omitted")] = None,
        format: Annotated[Literal["json", "text"], Query()] = "json",
    ) -> object:
        """The plan of each INSERT, as JSON or as the text of `rejoin explain`."""
        job = driver.job()
        found = [q for q in (job.queries if job else ()) if query in (None, q.name)]
        if query is not None and not found:
            raise HTTPException(404, "no such query")
        if format == "text":
            return PlainTextResponse("\n\n".join(q.text for q in found) + "\n")
        return [QueryPlan(**q.model_dump()) for q in found]

    return router


def _sampled(driver: Driver, history: History) -> DriverView:
    view = driver.look()
    history.add(view.status)
    return view


def _health(driver: Driver) -> APIRouter:
    router = APIRouter(prefix="/health", tags=["health"])

    @router.get("/live", responses=examples.LIVE)
    async def live() -> Health:
        """200 while this process answers, whatever the state of the job."""
        return Health(ok=True)

    @router.get("/ready", response_model=Health, responses=examples.READY)
    async def ready() -> Response:
        """200 if the job is working now, else 503 with the reasons."""
        reasons = unready_reasons(driver.look())
        health = Health(ok=not reasons, reasons=reasons)
        return Response(health.model_dump_json(), 503 if reasons else 200, media_type=_JSON)

    return router
