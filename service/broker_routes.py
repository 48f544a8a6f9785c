"""Addresses that ask Kafka. They may wait for it, so each request has a thread of its own."""

from typing import Annotated

from fastapi import APIRouter, HTTPException, Query

from service import examples
from service.broker import Broker
from service.driver import Driver
from service.models import NO_QUERY, LagBody, SampleBody
from service.settings import Settings


def build_broker_router(driver: Driver, settings: Settings) -> APIRouter:
    """Lag as the broker has it, and the latest output rows where the settings allow them."""
    router = APIRouter(tags=["kafka"])
    broker = Broker(settings.kafka_config)

    @router.get("/lag", responses=examples.LAG)
    def lag() -> LagBody:
        """Records that are in the source topics and not yet in a committed epoch."""
        return broker.lag(driver.look().status, driver.job())

    @router.get("/rows", responses=examples.ROWS | NO_QUERY)
    def rows(
        query: Annotated[str, Query(description="whose sink is read")],
    ) -> SampleBody:
        """The latest records of a query's sink topic, masked columns hidden."""
        if not settings.sample_rows:
            return SampleBody(enabled=False, problem=None, rows=())
        view = driver.look()
        sinks = {q.name: q.sink for q in (view.status.queries if view.status else ())}
        if query not in sinks:
            raise HTTPException(404, "no such query")
        found, problem = broker.latest_rows(
            sinks[query], settings.sample_rows, settings.hidden, driver.job()
        )
        return SampleBody(enabled=True, problem=problem, rows=found)

    return router
