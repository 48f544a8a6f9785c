"""Why a job is not ready; restarting the sidecar would help with none of it."""

from service.driver import DriverView
from service.models import Reason
from spark_jobs.status import BootstrapStatus


def unready_reasons(view: DriverView) -> tuple[Reason, ...]:
    """All reasons why the job is not ready; problems of the status file come first."""
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
    waiting = [query.name for query in view.status.queries if query.epoch is None]
    if waiting:
        names = ", ".join(waiting)[:500]
        reasons.append(Reason(code="first_epoch_pending", message=f"no epoch yet in {names}"))
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
