"""The embedded schema registry: serves a folder of Avro schemas from a thread of this process."""

import hmac
import logging
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Self

import typer
import uvicorn
from fastapi import FastAPI, Request
from fastapi.responses import Response

from spark_jobs.embedded.process import LOOPBACK, FolderLock, stop_signals
from spark_jobs.embedded.registry_routes import create_app, error_response
from spark_jobs.embedded.schema_store import SchemaStore
from spark_jobs.errors import ConfigError
from spark_jobs.terminal import write_json

_START_TIMEOUT_S = 20.0


@dataclass(frozen=True, slots=True)
class RegistrySecurity:
    """Access control, for tests.

    `identity` (PEM: key and certificates) turns on HTTPS. With `trusted`, clients need a
    certificate signed by it. If there are `authorizations`, a request needs one of them as its
    Authorization header.
    """

    identity: Path | None = None
    trusted: Path | None = None
    authorizations: frozenset[str] = frozenset()


class RegistryServer:
    """Serves the schemas in `folder` on the loopback interface."""

    def __init__(
        self,
        folder: Path | str,
        port: int | None = None,
        security: RegistrySecurity | None = None,
    ) -> None:
        self.folder = Path(folder).resolve()
        self._security = security or RegistrySecurity()
        self._asked_port = port
        self._socket: socket.socket | None = None
        self._server: uvicorn.Server | None = None
        self._thread: threading.Thread | None = None
        self._lock = FolderLock(self.folder)

    @property
    def port(self) -> int:
        if self._socket is None:
            raise ConfigError("REGISTRY_NOT_STARTED", "the embedded registry has not been started")
        return int(self._socket.getsockname()[1])

    @property
    def url(self) -> str:
        scheme = "https" if self._security.identity else "http"
        return f"{scheme}://{LOOPBACK}:{self.port}"

    def __enter__(self) -> Self:
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self) -> None:
        """Return once the registry answers."""
        if self._thread is not None:
            return
        self.folder.mkdir(parents=True, exist_ok=True)
        if not self._lock.acquire():
            raise ConfigError("REGISTRY_FOLDER_IN_USE", f"another registry serves {self.folder}")
        try:
            app = create_app(SchemaStore(self.folder))
            _admit(app, self._security.authorizations)
            self._serve(app)
        except BaseException:
            self.stop()
            raise

    def _serve(self, app: FastAPI) -> None:
        try:
            self._socket = socket.create_server((LOOPBACK, self._asked_port or 0))
        except OSError as cause:
            raise ConfigError(
                "REGISTRY_PORT_IN_USE",
                f"port {self._asked_port} on {LOOPBACK} is in use",
                hint="stop the process that listens there, or choose another port",
            ) from cause
        config = uvicorn.Config(
            app,
            log_config=None,
            access_log=False,
            timeout_graceful_shutdown=2,
            lifespan="off",
            ssl_certfile=self._security.identity,
            ssl_ca_certs=None if self._security.trusted is None else str(self._security.trusted),
            ssl_cert_reqs=ssl.CERT_NONE if self._security.trusted is None else ssl.CERT_REQUIRED,
        )
        self._server = uvicorn.Server(config)
        listening = [self._socket]
        self._thread = threading.Thread(
            target=self._server.run, args=(listening,), name="rejoin-registry", daemon=True
        )
        self._thread.start()
        # the socket accepts connections already; requests are answered once the event loop runs
        socket.create_connection((LOOPBACK, self.port), _START_TIMEOUT_S).close()

    def stop(self) -> None:
        """Finish running requests, then stop. Does nothing if it is not running."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        if self._socket is not None:
            self._socket.close()
        self._server = self._thread = self._socket = None
        self._lock.release()


def _admit(app: FastAPI, authorizations: frozenset[str]) -> None:
    """Refuse requests whose Authorization header is none of these."""
    if not authorizations:
        return

    @app.middleware("http")
    async def admit(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        given = request.headers.get("authorization", "").encode()
        if any(hmac.compare_digest(given, known.encode()) for known in authorizations):
            return await answer(request)
        return error_response(401, 40101, "User cannot be authenticated")


def run_registry(port: int | None, folder: Path, as_json: bool = False) -> None:
    """The command `rejoin registry`: a registry in the foreground until SIGTERM or Ctrl-C."""
    logging.getLogger("uvicorn").setLevel(logging.WARNING)
    with stop_signals() as stop, RegistryServer(folder, port) as registry:
        if as_json:
            schemas = str(registry.folder)
            write_json({"event": "ready", "url": registry.url, "schema_dir": schemas})
        else:
            typer.echo(f"the schema registry is ready at {registry.url} (in {registry.folder})")
        stop.wait()
        if not as_json:
            typer.echo("stopping the registry")
