"""Why a job is not ready; restarting the sidecar would help with none of it."""

from service.driver import DriverView
from service.models import Reason


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
    for query in view.status.queries:
        for at in (operator.bootstrap for operator in query.operators):
            if at is not None and not at.complete:
                loaded = f"{at.partitions_loaded} of {at.partitions_total} partitions loaded"
                message = f"{query.name}: {loaded}, {at.waiting_rows} rows wait for the build side"
                reasons.append(Reason(code="bootstrap_pending", message=message))
    return tuple(reasons)
