"""The bodies of the sidecar's answers."""

from pydantic import BaseModel, ConfigDict

from spark_jobs.status import JobStatus


class _Body(BaseModel):
    model_config = ConfigDict(frozen=True)


class Reason(_Body):
    """Why something is not as it should be: a stable code, and words."""

    code: str
    message: str


class Health(_Body):
    """`reasons` is empty exactly when `ok`."""

    ok: bool
    reasons: tuple[Reason, ...] = ()


class StateBody(_Body):
    """The driver's last good status, how old it is, and what is wrong with it."""

    status: JobStatus | None
    age_seconds: float | None
    problem: Reason | None
