"""Endpoints that query Kafka. They may block, so they run in FastAPI's thread pool."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query

from service import examples
from service.driver import Driver
from service.models import NO_QUERY, LagBody, SampleBody
from service.settings import Settings
from service.topics.broker import BrokerClient


def build_broker_router(driver: Driver, settings: Settings) -> APIRouter:
    """The endpoints for the current lag and, if enabled, for the latest output rows."""
    router = APIRouter(tags=["kafka"])
    broker = BrokerClient(settings.kafka_config)

    @router.get("/lag", responses=examples.LAG)
    def lag() -> LagBody:
        """Records of the source topics that no committed epoch has read."""
        return broker.lag(driver.look().status, driver.job())

    @router.get("/rows", responses=examples.ROWS | NO_QUERY)
    def rows(
        query: Annotated[str, Query(description="name of the query")],
    ) -> SampleBody:
        """The latest records of a query's sink topic, with masked columns hidden."""
        if not settings.sample_rows:
            return SampleBody(enabled=False, problem=None, rows=())
        view = driver.look()
        queries = {q.name: q for q in (view.status.queries if view.status else ())}
        if query not in queries:
            raise HTTPException(404, "no such query")
        found, problem = broker.latest_rows(
            queries[query], settings.sample_rows, settings.hidden, driver.job()
        )
        return SampleBody(enabled=True, problem=problem, rows=found)

    return router
