"""The admin endpoints: they need a bearer token, are rate-limited, and leave an audit log."""

import asyncio
import hmac
import json
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Collection, Coroutine
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, HTTPException, Query, Request, Response, Security
from fastapi import Path as UrlPath
from fastapi.routing import APIRoute
from fastapi.security import HTTPBearer
from pydantic import BaseModel, Field

from service.masking import masked
from service.models import failure
from spark_jobs.commands import (
    Answer,
    LogLevel,
    ReplayOrder,
    StateOrder,
    Verb,
    read_answer,
    send,
)
from spark_jobs.status import now

AUDIT_FILE = "audit.jsonl"
PER_MINUTE = 5
MOST_WAIT_S = 20
_LOOK_EVERY_S = 0.2
_MOST_CLIENTS = 1000
_MOST_BYTES = 65536
_TOO_LARGE = f"the body is larger than {_MOST_BYTES} bytes, or of unknown size"
_LOG = logging.getLogger("rejoin.admin")


class Accepted(BaseModel):
    """The command was written; `/admin/commands/{id}` will have the driver's answer."""

    id: str = Field(examples=["9f86d081884c7d65"])


class LevelBody(BaseModel, extra="forbid"):
    """A log level of Spark, for the driver's log."""

    level: LogLevel = Field(examples=["INFO"])


def _is_small(length: str) -> bool:
    return length.isdecimal() and len(length) < 10 and int(length) <= _MOST_BYTES


_ASKED: dict[int | str, dict[str, Any]] = {
    401: failure("no valid token", "no valid token"),
    404: failure("admin verbs are off, or there is no such answer", "no answer yet"),
}
_SENT: dict[int | str, dict[str, Any]] = {
    **_ASKED,
    413: failure("too large", _TOO_LARGE),
    429: failure("too many requests of this client", f"at most {PER_MINUTE} per minute"),
    503: failure(
        "the status folder cannot be written",
        "cannot write to the status folder: Read-only file system",
    ),
}


def build_admin(folder: Path, token_file: Path | None, hidden: Collection[str] = ()) -> APIRouter:
    """The admin endpoints of one status folder; without a token file they all answer 404.

    `hidden` are the columns that rows of state do not show.
    """
    guard = Guard(folder, token_file)
    router = APIRouter(
        prefix="/admin",
        tags=["admin"],
        dependencies=[Security(HTTPBearer(auto_error=False))],  # only for the OpenAPI document
        route_class=_guarded(guard),
    )
    _add_verbs(router, folder, guard)

    @router.get("/commands/{command_id}", responses=_ASKED)
    async def command(
        command_id: Annotated[str, UrlPath(pattern=r"^[0-9a-f]{16}$")],
        wait: Annotated[int, Query(ge=0, le=MOST_WAIT_S, description="seconds to wait for it")] = 0,
    ) -> Answer:
        """The driver's answer to a command; 404 until there is one."""
        deadline_s = time.monotonic() + wait
        while (found := read_answer(folder, command_id)) is None:
            if time.monotonic() >= deadline_s:
                raise HTTPException(404, "no answer yet")
            await asyncio.sleep(_LOOK_EVERY_S)
        return found.model_copy(update={"state": tuple(masked(found.state, hidden))})

    return router


def _add_verbs(router: APIRouter, folder: Path, guard: "Guard") -> None:
    def write(
        request: Request,
        verb: Verb,
        level: LogLevel | None = None,
        replay: ReplayOrder | None = None,
        state: StateOrder | None = None,
    ) -> Accepted:
        try:
            command = send(folder, verb, guard.client(request), level, replay, state)
        except OSError as error:
            guard.audit(request, "failed")
            detail = f"cannot write to the status folder: {error.strerror}"
            raise HTTPException(503, detail) from error
        guard.audit(request, f"accepted {command.id}")
        return Accepted(id=command.id)

    @router.post("/stop", status_code=202, responses=_SENT)
    def stop(request: Request) -> Accepted:
        """Stop the job at once: the running epoch is aborted and repeated at the next start."""
        return write(request, "stop")

    @router.post("/drain", status_code=202, responses=_SENT)
    def drain(request: Request) -> Accepted:
        """Graceful stop, as by SIGTERM: the running epoch finishes first."""
        return write(request, "drain")

    @router.post("/log-level", status_code=202, responses=_SENT)
    def log_level(request: Request, body: LevelBody) -> Accepted:
        """Change the log level of the driver."""
        return write(request, "log-level", level=body.level)

    @router.post("/dlq-replay", status_code=202, responses=_SENT)
    def dlq_replay(request: Request, body: ReplayOrder) -> Accepted:
        """Replay dead letters once, as `rejoin dlq replay` does. Only one replay runs at a time;
        /status shows its progress.
        """
        return write(request, "dlq-replay", replay=body)

    @router.post("/state-get", status_code=202, responses=_SENT)
    def state_get(request: Request, body: StateOrder) -> Accepted:
        """Read the rows that the last committed epoch has under join keys, as `rejoin state get`
        does. One such command runs at a time, and is killed after two minutes.
        """
        return write(request, "state-get", state=body)


def _guarded(guard: "Guard") -> type[APIRoute]:
    """A route class that reads a request only after the guard has admitted it."""

    class GuardedRoute(APIRoute):
        def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
            handle = super().get_route_handler()

            async def admit(request: Request) -> Response:
                guard(request)
                return await handle(request)

            return admit

    return GuardedRoute


class Guard:
    """Admits requests with the token; without a token file all requests get 404."""

    def __init__(self, folder: Path, token_file: Path | None) -> None:
        self._folder = folder
        self._token_file = token_file
        self._lock = threading.Lock()
        self._recent: dict[str, deque[float]] = {}  # the times of each client's last requests
        self._reported: set[str] = set()  # clients whose limiting the audit has

    def __call__(self, request: Request) -> None:
        token = self._token()
        if token is None:
            raise HTTPException(404, "admin verbs are off: start the sidecar with a token file")
        scheme, _, given = request.headers.get("authorization", "").partition(" ")
        # compare_digest takes the same time however much of a guess is right
        known = hmac.compare_digest(given.encode(), token.encode()) and scheme.lower() == "bearer"
        if not known or request.method != "GET":
            self._limit(request)
        if not known:
            self.audit(request, "refused")
            raise HTTPException(401, "no valid token", {"WWW-Authenticate": "Bearer"})
        length = request.headers.get("content-length", "0")
        if "transfer-encoding" in request.headers or not _is_small(length):
            raise HTTPException(413, _TOO_LARGE)

    @staticmethod
    def client(request: Request) -> str:
        return request.client.host if request.client is not None else "unknown"

    def audit(self, request: Request, outcome: str) -> None:
        """Write a line to the log and to the audit file in the status folder."""
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
        """The token; read at every request, so that it can be replaced without a restart."""
        if self._token_file is None:
            return None
        try:
            return self._token_file.read_text(encoding="utf-8").strip() or None
        except (OSError, UnicodeDecodeError):
            return None

    def _limit(self, request: Request) -> None:
        """Admit `PER_MINUTE` requests of a client in a minute; audit only the first one refused."""
        client, now_s = self.client(request), time.monotonic()
        with self._lock:
            if len(self._recent) > _MOST_CLIENTS:
                self._recent.clear()
                self._reported.clear()
            recent = self._recent.setdefault(client, deque(maxlen=PER_MINUTE))
            wait_s = 60 - (now_s - recent[0]) if len(recent) == PER_MINUTE else 0.0
            if wait_s <= 0:
                recent.append(now_s)
                self._reported.discard(client)
                return
            is_reported = client in self._reported
            self._reported.add(client)
        if not is_reported:
            self.audit(request, "limited")
        after_s = str(int(wait_s) + 1)
        raise HTTPException(429, f"at most {PER_MINUTE} per minute", {"Retry-After": after_s})
