"""Verbs that change something: behind a bearer token, limited, audited; absent without a token."""

import hmac
import json
import logging
import threading
import time
from collections import defaultdict, deque
from collections.abc import Callable, Coroutine
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Request, Response, Security
from fastapi import Path as UrlPath
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel, ConfigDict, Field

from service.models import Problem
from spark_jobs.commands import Answer, LogLevel, ReplayOrder, Verb, read_answer, send
from spark_jobs.status import now

AUDIT_FILE = "audit.jsonl"
PER_MINUTE = 5
_MOST_CLIENTS = 1000
_MOST_BYTES = 65536
_LOG = logging.getLogger("rejoin.admin")


class Accepted(BaseModel):
    """The driver will find the command within a second; `id` is where its answer will be."""

    id: str = Field(examples=["9f86d081884c7d65"])


class LevelBody(BaseModel):
    """Spark's log level, in the driver's log."""

    model_config = ConfigDict(extra="forbid")

    level: LogLevel = Field(examples=["INFO"])


def _is_small(length: str) -> bool:
    return length.isdecimal() and len(length) < 10 and int(length) <= _MOST_BYTES


def _failure(description: str, detail: str) -> dict[str, Any]:
    content = {"application/json": {"example": {"detail": detail}}}
    return {"description": description, "model": Problem, "content": content}


_ASKED: dict[int | str, dict[str, Any]] = {
    401: _failure("no valid token", "no valid token"),
    404: _failure("admin verbs are off, or nothing of that id", "no answer yet"),
}
_SENT: dict[int | str, dict[str, Any]] = {
    **_ASKED,
    413: _failure("too large", f"a body of more than {_MOST_BYTES} bytes, or of unknown size"),
    429: _failure("too many requests of this client", f"at most {PER_MINUTE} a minute"),
    503: _failure(
        "the status folder cannot be written",
        "the status folder takes no command: Read-only file system",
    ),
}


def build_admin(folder: Path, token_file: Path | None) -> APIRouter:
    """The verbs over one status folder; without a token file each of them answers 404."""
    guard = Guard(folder, token_file)
    router = APIRouter(
        prefix="/admin",
        tags=["admin"],
        dependencies=[Security(HTTPBearer(auto_error=False))],  # for the schema alone
        route_class=_guarded(guard),
    )
    _add_verbs(router, Desk(folder, guard))

    @router.get("/commands/{command_id}", responses=_ASKED)
    def command(
        command_id: Annotated[str, UrlPath(pattern=r"^[0-9a-f]{16}$")],
    ) -> Answer:
        """What became of a command; 404 until the driver has answered."""
        found = read_answer(folder, command_id)
        if found is None:
            raise HTTPException(404, "no answer yet")
        return found

    return router


def _add_verbs(router: APIRouter, desk: "Desk") -> None:
    @router.post("/stop", status_code=202, responses=_SENT)
    def stop(request: Request) -> Accepted:
        """Stop the job now: the running epoch is cut off and repeated at the next start."""
        return desk.leave(request, "stop")

    @router.post("/drain", status_code=202, responses=_SENT)
    def drain(request: Request) -> Accepted:
        """Stop the job after the running epoch, as SIGTERM does."""
        return desk.leave(request, "drain")

    @router.post("/log-level", status_code=202, responses=_SENT)
    def log_level(request: Request, body: LevelBody) -> Accepted:
        """Change how much the driver logs."""
        return desk.leave(request, "log-level", level=body.level)

    @router.post("/dlq-replay", status_code=202, responses=_SENT)
    def dlq_replay(request: Request, body: ReplayOrder) -> Accepted:
        """Put dead letters back on their topics, once, as `rejoin dlq replay` does; one replay at a
        time, its figures in /status.
        """
        return desk.leave(request, "dlq-replay", replay=body)


class Desk:
    """Where commands are left for the driver, each with a line in the audit."""

    def __init__(self, folder: Path, guard: "Guard") -> None:
        self._folder = folder
        self._guard = guard

    def leave(
        self,
        request: Request,
        verb: Verb,
        level: LogLevel | None = None,
        replay: ReplayOrder | None = None,
    ) -> Accepted:
        try:
            command = send(self._folder, verb, self._guard.client(request), level, replay)
        except OSError as error:
            self._guard.audit(request, "failed")
            detail = f"the status folder takes no command: {error.strerror}"
            raise HTTPException(503, detail) from error
        self._guard.audit(request, f"accepted {command.id}")
        return Accepted(id=command.id)


def _guarded(guard: "Guard") -> type[APIRoute]:
    """A route that reads nothing of a request before the guard has let it pass."""

    class GuardedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def admit(request: Request) -> Response:
                guard(request)
                return await handle(request)

            return admit

    return GuardedRoute


class Guard:
    """Lets a request pass that has the token; tells nobody else that there is one."""

    def __init__(self, folder: Path, token_file: Path | None) -> None:
        self._folder = folder
        self._token_file = token_file
        self._lock = threading.Lock()
        self._tried: dict[str, _Tries] = defaultdict(_Tries)

    def __call__(self, request: Request) -> None:
        token = self._token()
        if token is None:
            raise HTTPException(404, "admin verbs are off: start the sidecar with a token file")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # both as bytes of one length class: the comparison takes the same time for each guess
        known = hmac.compare_digest(given.encode(), token.encode()) and scheme.lower() == "bearer"
        if not known or request.method != "GET":
            self._limit(request)
        if not known:
            self.audit(request, "refused")
            raise HTTPException(401, "no valid token", {"WWW-Authenticate": "Bearer"})
        length = request.headers.get("content-length", "0")
        if "transfer-encoding" in request.headers or not _is_small(length):
            raise HTTPException(413, f"a body of more than {_MOST_BYTES} bytes, or of unknown size")

    @staticmethod
    def client(request: Request) -> str:
        return request.client.host if request.client is not None else "unknown"

    def audit(self, request: Request, outcome: str) -> None:
        """One line in the log and in the audit file of the status folder."""
        entry = {
            "at": now().isoformat(),
            "client": self.client(request),
            "request": f"{request.method} {request.url.path}",
            "outcome": outcome,
        }
        line = json.dumps(entry)
        _LOG.warning("%s", line)
        try:
            with (self._folder / AUDIT_FILE).open("a", encoding="utf-8") as file:
                file.write(line + "\n")
        except OSError as error:
            _LOG.error("the audit file cannot be written: %s", error)

    def _token(self) -> str | None:
        """Read anew each time, so that it can be replaced while the sidecar runs."""
        if self._token_file is None:
            return None
        try:
            return self._token_file.read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def _limit(self, request: Request) -> None:
        with self._lock:
            if len(self._tried) > _MOST_CLIENTS:
                self._tried.clear()
            wait_s, is_news = self._tried[self.client(request)].wait_s(time.monotonic())
        if is_news:
            self.audit(request, "limited")
        if wait_s:
            raise HTTPException(
                429, f"at most {PER_MINUTE} a minute", {"Retry-After": str(int(wait_s) + 1)}
            )


@dataclass(slots=True)
class _Tries:
    """Of one client in the last minute; `told`: it was limited since it was let pass last."""

    at: deque[float] = field(default_factory=deque)
    told: bool = False

    def wait_s(self, present: float) -> tuple[float, bool]:
        """How long to wait; whether the audit has to say so, which whoever floods must not fill."""
        while self.at and present - self.at[0] > 60:
            self.at.popleft()
        if len(self.at) < PER_MINUTE:
            self.at.append(present)
            self.told = False
            return 0.0, False
        is_news, self.told = not self.told, True
        return 60 - (present - self.at[0]), is_news
