"""Verbs that change something: behind a bearer token, limited, audited; absent without a token."""

import hmac
import json
import logging
import threading
import time
from collections import defaultdict, deque
from pathlib import Path
from typing import Annotated, Any

from fastapi import APIRouter, Depends, Header, HTTPException, Request
from fastapi import Path as UrlPath
from pydantic import BaseModel, ConfigDict

from spark_jobs.commands import Answer, LogLevel, Verb, ask, read_answer
from spark_jobs.status import now

AUDIT_FILE = "audit.jsonl"
PER_MINUTE = 5
_MOST_CLIENTS = 1000
_LOG = logging.getLogger("rejoin.admin")


class Accepted(BaseModel):
    """The driver will find the command within a second; `id` is where its answer will be."""

    id: str


class LevelBody(BaseModel):
    """Spark's log level, in the driver's log."""

    model_config = ConfigDict(extra="forbid")

    level: LogLevel


def build_admin(folder: Path, token_file: Path | None) -> APIRouter:
    """The verbs over one status folder; without a token file each of them answers 404."""
    guard = Guard(folder, token_file)
    router = APIRouter(prefix="/admin", tags=["admin"], dependencies=[Depends(guard)])
    errors: dict[int | str, dict[str, Any]] = {
        401: {"description": "no valid token"},
        404: {"description": "admin verbs are off, or nothing of that id"},
        429: {"description": "too many requests of this client"},
    }

    def send(request: Request, verb: Verb, level: LogLevel | None = None) -> Accepted:
        command = ask(folder, verb, guard.client(request), level)
        guard.audit(request, f"accepted {command.id}")
        return Accepted(id=command.id)

    @router.post("/stop", status_code=202, responses=errors)
    def stop(request: Request) -> Accepted:
        """Stop the job now: the running epoch is cut off and repeated at the next start."""
        return send(request, "stop")

    @router.post("/drain", status_code=202, responses=errors)
    def drain(request: Request) -> Accepted:
        """Stop the job after the running epoch, as SIGTERM does."""
        return send(request, "drain")

    @router.post("/log-level", status_code=202, responses=errors)
    def log_level(request: Request, body: LevelBody) -> Accepted:
        """Change how much the driver logs."""
        return send(request, "log-level", body.level)

    @router.get("/commands/{command_id}", responses=errors)
    def command(
        command_id: Annotated[str, UrlPath(pattern=r"^[0-9a-f]{16}$")],
    ) -> Answer:
        """What became of a command; 404 until the driver has answered."""
        found = read_answer(folder, command_id)
        if found is None:
            raise HTTPException(404, "no answer yet")
        return found

    return router


class Guard:
    """Lets a request pass that has the token; tells nobody else that there is one."""

    def __init__(self, folder: Path, token_file: Path | None) -> None:
        self._folder = folder
        self._token_file = token_file
        self._lock = threading.Lock()
        self._tried: dict[str, deque[float]] = defaultdict(deque)

    def __call__(
        self, request: Request, authorization: Annotated[str | None, Header()] = None
    ) -> None:
        token = self._token()
        if token is None:
            raise HTTPException(404, "admin verbs are off: start the sidecar with a token file")
        if request.method != "GET":
            self._limit(request)
        scheme, _, given = (authorization or "").partition(" ")
        # both as bytes of one length class: the comparison takes the same time for each guess
        if scheme.lower() != "bearer" or not hmac.compare_digest(given.encode(), token.encode()):
            self.audit(request, "refused")
            raise HTTPException(401, "no valid token", {"WWW-Authenticate": "Bearer"})

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
        present = time.monotonic()
        with self._lock:
            if len(self._tried) > _MOST_CLIENTS:
                self._tried.clear()
            tried = self._tried[self.client(request)]
            while tried and present - tried[0] > 60:
                tried.popleft()
            wait_s = 60 - (present - tried[0]) if len(tried) >= PER_MINUTE else 0.0
            if not wait_s:
                tried.append(present)
        if wait_s:
            self.audit(request, "limited")
            raise HTTPException(
                429, f"at most {PER_MINUTE} a minute", {"Retry-After": str(int(wait_s) + 1)}
            )
