"""A schema registry for laptops, the demo and tests: Confluent's REST API, the Avro part of it.

Served: subjects, versions, ids, lookup, compatibility, config, soft and permanent delete,
references. Not served: JSON Schema and Protobuf, modes other than READWRITE, contexts other than
the default one, metadata, rules, normalisation, exporters, rights of users.
"""

import hmac
import logging
import socket
import ssl
import threading
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any, Self

import typer
import uvicorn
from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from spark_jobs.embedded.process import LOOPBACK, FolderLock, stop_signals
from spark_jobs.embedded.schema_store import (
    DEFAULT_LEVEL,
    Reference,
    Refusal,
    SchemaStore,
    Version,
)
from spark_jobs.errors import ConfigError
from spark_jobs.terminal import write_json

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"
_START_TIMEOUT_S = 20.0


class ReferenceBody(BaseModel):
    """`references` of a request."""

    name: str
    subject: str
    version: int


class SchemaBody(BaseModel):
    """A schema somebody sends."""

    text: str = Field(alias="schema")
    kind: str = Field(default="AVRO", alias="schemaType")
    references: list[ReferenceBody] = []

    def checked_references(self) -> tuple[Reference, ...]:
        """Refuse what is not Avro; the references otherwise."""
        if self.kind.upper() != "AVRO":
            raise Refusal(422, 42201, f"Schema type {self.kind} is not supported, only AVRO")
        return tuple(Reference(r.name, r.subject, r.version) for r in self.references)


class LevelBody(BaseModel):
    """A compatibility level somebody sets."""

    compatibility: str


class RegistryResponse(JSONResponse):
    """JSON under the registry's own media type, which some clients insist on."""

    media_type = MEDIA_TYPE


def _store(request: Request) -> SchemaStore:
    store = request.app.state.store
    if not isinstance(store, SchemaStore):
        raise TypeError("the application was made without a store")
    return store


Store = Annotated[SchemaStore, Depends(_store)]


def create_app(store: SchemaStore) -> FastAPI:
    """The registry over a store."""
    app = FastAPI(
        title="rejoin registry",
        default_response_class=RegistryResponse,
        strict_content_type=False,
        openapi_url=None,
    )
    app.state.store = store
    app.add_exception_handler(Refusal, _refused)
    app.add_exception_handler(HTTPException, _http_error)
    app.add_exception_handler(RequestValidationError, _bad_request)
    for add in (_schema_routes, _version_routes, _subject_routes, _level_routes):
        add(app)
    return app


def _schema_routes(app: FastAPI) -> None:
    @app.get("/")
    def root() -> dict[str, str]:
        return {}

    @app.get("/schemas/types")
    def types() -> list[str]:
        return ["AVRO"]

    @app.get("/contexts")
    def contexts() -> list[str]:
        return ["."]

    @app.get("/mode")
    def mode() -> dict[str, str]:
        return {"mode": "READWRITE"}

    @app.get("/schemas/ids/{schema_id}")
    def schema(schema_id: int, store: Store) -> dict[str, Any]:
        found = store.by_id(schema_id)[0]
        return {"schema": found.text} | _references(found)

    @app.get("/schemas/ids/{schema_id}/schema")
    def schema_text(schema_id: int, store: Store) -> Response:
        return Response(store.by_id(schema_id)[0].text, media_type=MEDIA_TYPE)

    @app.get("/schemas/ids/{schema_id}/subjects")
    def schema_subjects(schema_id: int, store: Store, deleted: bool = False) -> list[str]:
        return [v.subject for v in store.by_id(schema_id) if deleted or not v.deleted]

    @app.get("/schemas/ids/{schema_id}/versions")
    def schema_versions(
        schema_id: int, store: Store, deleted: bool = False
    ) -> list[dict[str, Any]]:
        uses = store.by_id(schema_id)
        return [
            {"subject": v.subject, "version": v.version} for v in uses if deleted or not v.deleted
        ]


def _version_routes(app: FastAPI) -> None:
    # subjects may hold slashes, so the longer paths come first

    @app.get("/subjects/{subject:path}/versions")
    def versions(subject: str, store: Store, deleted: bool = False) -> list[int]:
        return [v.version for v in store.versions(subject, deleted)]

    @app.post("/subjects/{subject:path}/versions")
    def register(subject: str, body: SchemaBody, store: Store) -> dict[str, int]:
        return {"id": store.register(subject, body.text, body.checked_references()).id}

    @app.get("/subjects/{subject:path}/versions/{number}/schema")
    def text(subject: str, number: str, store: Store, deleted: bool = False) -> Response:
        return Response(store.version(subject, number, deleted).text, media_type=MEDIA_TYPE)

    @app.get("/subjects/{subject:path}/versions/{number}")
    def version(subject: str, number: str, store: Store, deleted: bool = False) -> dict[str, Any]:
        return _described(store.version(subject, number, deleted))

    @app.delete("/subjects/{subject:path}/versions/{number}")
    def delete_version(subject: str, number: str, store: Store, permanent: bool = False) -> int:
        return store.delete([store.version(subject, number, deleted=True)], permanent)[0]

    @app.post("/compatibility/subjects/{subject:path}/versions/{number}")
    def compatible_with_one(
        subject: str, number: str, body: SchemaBody, store: Store, verbose: bool = False
    ) -> dict[str, Any]:
        problems = store.problems(subject, body.text, body.checked_references(), number)
        return _verdict(problems, verbose)

    @app.post("/compatibility/subjects/{subject:path}/versions")
    def compatible_with_all(
        subject: str, body: SchemaBody, store: Store, verbose: bool = False
    ) -> dict[str, Any]:
        return _verdict(store.problems(subject, body.text, body.checked_references()), verbose)


def _subject_routes(app: FastAPI) -> None:
    @app.get("/subjects")
    def subjects(
        store: Store,
        deleted: bool = False,
        prefix: Annotated[str, Field(alias="subjectPrefix")] = "",
    ) -> list[str]:
        return [s for s in store.subjects(deleted) if s.startswith(prefix)]

    @app.post("/subjects/{subject:path}")
    def lookup(subject: str, body: SchemaBody, store: Store) -> dict[str, Any]:
        return _described(store.lookup(subject, body.text, body.checked_references()))

    @app.delete("/subjects/{subject:path}")
    def delete(subject: str, store: Store, permanent: bool = False) -> list[int]:
        versions = store.versions(subject, deleted=True)
        hidden = all(v.deleted for v in versions)
        if permanent and not hidden:
            raise Refusal(
                404,
                40405,
                f"Subject '{subject}' was not deleted first before being permanently deleted",
            )
        if hidden and not permanent:
            raise Refusal(
                404,
                40404,
                f"Subject '{subject}' was soft deleted. Set permanent=true to delete permanently",
            )
        return store.delete([v for v in versions if permanent or not v.deleted], permanent)


def _level_routes(app: FastAPI) -> None:
    @app.get("/config")
    def level(store: Store) -> dict[str, str]:
        return {"compatibilityLevel": store.level() or DEFAULT_LEVEL}

    @app.put("/config")
    def set_level(body: LevelBody, store: Store) -> dict[str, str]:
        store.set_level(body.compatibility)
        return {"compatibility": body.compatibility.upper()}

    @app.get("/config/{subject:path}")
    def subject_level(
        subject: str,
        store: Store,
        default: Annotated[bool, Field(alias="defaultToGlobal")] = False,
    ) -> dict[str, str]:
        found = store.level(subject) or (store.level() if default else None)
        if found is None:
            raise _no_level(subject)
        return {"compatibilityLevel": found}

    @app.put("/config/{subject:path}")
    def set_subject_level(subject: str, body: LevelBody, store: Store) -> dict[str, str]:
        store.set_level(body.compatibility, subject)
        return {"compatibility": body.compatibility.upper()}

    @app.delete("/config/{subject:path}")
    def unset_level(subject: str, store: Store) -> dict[str, str]:
        removed = store.unset_level(subject)
        if removed is None:
            raise _no_level(subject)
        return {"compatibility": removed}


def _no_level(subject: str) -> Refusal:
    return Refusal(
        404, 40408, f"Subject '{subject}' does not have subject-level compatibility configured"
    )


def _described(v: Version) -> dict[str, Any]:
    described = {"subject": v.subject, "version": v.version, "id": v.id, "schema": v.text}
    return described | _references(v)


def _references(v: Version) -> dict[str, Any]:
    if not v.references:
        return {}
    told = [{"name": r.name, "subject": r.subject, "version": r.version} for r in v.references]
    return {"references": told}


def _verdict(problems: list[str], verbose: bool) -> dict[str, Any]:
    verdict: dict[str, Any] = {"is_compatible": not problems}
    return verdict | {"messages": problems} if verbose else verdict


def _error(status: int, code: int, message: str) -> RegistryResponse:
    return RegistryResponse({"error_code": code, "message": message}, status_code=status)


def _refused(_: Request, refusal: Exception) -> Response:
    if not isinstance(refusal, Refusal):
        raise refusal
    return _error(refusal.status, refusal.code, str(refusal))


def _http_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return _error(error.status_code, error.status_code, f"HTTP {error.status_code} {error.detail}")


def _bad_request(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    problems = "; ".join(
        f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()
    )
    return _error(422, 422, problems)


@dataclass(frozen=True, slots=True)
class RegistrySecurity:
    """Who may ask. For tests.

    `identity` (PEM: key and certificates) makes it HTTPS; with `trusted` clients need a certificate
    that it vouches for. `authorizations`: of the header, one of these is needed if there are any.
    """

    identity: Path | None = None
    trusted: Path | None = None
    authorizations: frozenset[str] = frozenset()


class RegistryServer:
    """The registry over `folder`, in a thread of this process, on the loopback interface."""

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

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.stop()

    def start(self) -> None:
        """Return when the registry answers."""
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
                hint="stop what listens there, or choose another port",
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
        # the socket listens already: the first request is answered as soon as the loop runs
        socket.create_connection((LOOPBACK, self.port), _START_TIMEOUT_S).close()

    def stop(self) -> None:
        """Finish running requests and end; harmless when it is not running."""
        if self._server is not None and self._thread is not None:
            self._server.should_exit = True
            self._thread.join()
        if self._socket is not None:
            self._socket.close()
        self._server = self._thread = self._socket = None
        self._lock.release()


def _admit(app: FastAPI, authorizations: frozenset[str]) -> None:
    """Refuse requests without one of these headers."""
    if not authorizations:
        return

    @app.middleware("http")
    async def admit(request: Request, answer: Callable[[Request], Awaitable[Response]]) -> Response:
        given = request.headers.get("authorization", "").encode()
        if any(hmac.compare_digest(given, known.encode()) for known in authorizations):
            return await answer(request)
        return _error(401, 40101, "User cannot be authenticated")


def run_registry(port: int | None, folder: Path, as_json: bool = False) -> None:
    """`rejoin registry`: a registry in the foreground until SIGTERM or Ctrl-C."""
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
