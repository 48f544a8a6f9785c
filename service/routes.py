"""The sidecar's addresses. All of them only read, and answer whatever the driver does."""

from fastapi import APIRouter, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, generate_latest

from service.driver import Driver, View
from service.metrics import DriverCollector
from service.models import Health, Reason, StateBody
from spark_jobs.status import BootstrapStatus

_JSON = "application/json"


def build_router(driver: Driver) -> APIRouter:
    """The four addresses over one driver."""
    router = APIRouter()
    registry = CollectorRegistry()
    registry.register(DriverCollector(driver))

    @router.get("/health/live")
    def live() -> Health:
        """This process answers. Restarting it helps nothing else, so nothing else counts."""
        return Health(ok=True)

    @router.get("/health/ready", response_model=Health)
    def ready() -> Response:
        """200 when the job is doing its work now, 503 with the reasons when it is not."""
        reasons = unready_reasons(driver.look())
        health = Health(ok=not reasons, reasons=reasons)
        return Response(health.model_dump_json(), 503 if reasons else 200, media_type=_JSON)

    @router.get("/metrics")
    def metrics() -> Response:
        """For Prometheus."""
        return Response(generate_latest(registry), media_type=CONTENT_TYPE_LATEST)

    @router.get("/state", response_model=StateBody)
    def state() -> Response:
        """The driver's last good status, whole."""
        view = driver.look()
        problem = Reason(code=view.problem, message=view.detail) if view.problem else None
        body = StateBody(status=view.status, age_seconds=view.age_s, problem=problem)
        return Response(body.model_dump_json(), media_type=_JSON)

    return router


def unready_reasons(view: View) -> tuple[Reason, ...]:
    """Everything that keeps the job from being ready, the status file's own trouble first."""
    reasons = []
    if view.problem is not None:
        reasons.append(Reason(code=view.problem, message=view.detail))
    if view.status is None:
        return tuple(reasons)
    if view.status.state != "running":
        error = view.status.error
        cause = f": {error.code} {error.message}" if error is not None else ""
        reasons.append(Reason(code="not_running", message=f"{view.status.state}{cause}"[:500]))
    waiting = [query.name for query in view.status.queries if query.epochs_total == 0]
    if waiting:
        names = ", ".join(waiting)[:500]
        reasons.append(Reason(code="first_epoch_pending", message=f"no epoch yet of {names}"))
    reasons += [
        _bootstrap_pending(query.name, operator.bootstrap)
        for query in view.status.queries
        for operator in query.operators
        if operator.bootstrap is not None and not operator.bootstrap.complete
    ]
    return tuple(reasons)


def _bootstrap_pending(query: str, bootstrap: BootstrapStatus) -> Reason:
    loaded = f"{bootstrap.partitions_loaded} of {bootstrap.partitions_total} partitions loaded"
    message = f"{query}: {loaded}, {bootstrap.waiting_rows} rows wait for the build side"
    return Reason(code="bootstrap_pending", message=message)
