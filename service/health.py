"""Why a job is not ready; restarting the sidecar would help with none of it."""

from collections.abc import Iterator

from service.driver import DriverView
from service.models import Reason
from spark_jobs.status import QueryStatus


def unready_reasons(view: DriverView) -> tuple[Reason, ...]:
    """All reasons why the job is not ready; problems of the status file come first."""
    reasons = [*driver_reasons(view)]
    queries = view.status.queries if view.status is not None else ()
    if waiting := [query.name for query in queries if query.epoch is None]:
        names = ", ".join(waiting)[:500]
        reasons.append(Reason(code="first_epoch_pending", message=f"no epoch yet in {names}"))
    for query in queries:
        reasons += gate_reasons(query)
    return tuple(reasons)


def driver_reasons(view: DriverView) -> tuple[Reason, ...]:
    """What keeps all queries from working: no driver, a failure, a registry that is down."""
    reasons = [] if view.problem is None else [view.problem]
    if view.status is None:
        return tuple(reasons)
    if view.status.state != "running":
        error = view.status.error
        cause = f": {error.code} {error.message}" if error is not None else ""
        reasons.append(Reason(code="not_running", message=f"{view.status.state}{cause}"[:500]))
    if view.status.registry_waiting_since is not None:
        since = view.status.registry_waiting_since.isoformat(timespec="seconds")
        message = f"a schema registry has not answered since {since}: epochs wait for it"
        reasons.append(Reason(code="registry_waiting", message=message))
    return tuple(reasons)


def gate_reasons(query: QueryStatus) -> Iterator[Reason]:
    """The operators whose rows wait until their build side is loaded."""
    for at in (operator.bootstrap for operator in query.operators):
        if at is not None and not at.complete:
            loaded = f"{at.partitions_loaded} of {at.partitions_total} partitions loaded"
            message = f"{query.name}: {loaded}, {at.waiting_rows} rows wait for the build side"
            yield Reason(code="bootstrap_pending", message=message)
