"""The HTTP API of the embedded registry: the part of Confluent's that clients use for Avro.

Implemented: subjects, versions, ids, lookup, compatibility, config, soft and permanent delete,
references. Missing: JSON Schema and Protobuf, modes other than READWRITE, contexts other than the
default, metadata, rules, normalisation, exporters, user rights.
"""

from typing import Annotated, Any

from fastapi import Depends, FastAPI, Request
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse, Response
from pydantic import BaseModel, Field
from starlette.exceptions import HTTPException

from spark_jobs.embedded.schema_store import DEFAULT_LEVEL, Reference, Refusal, SchemaStore, Version

MEDIA_TYPE = "application/vnd.schemaregistry.v1+json"


class ReferenceBody(BaseModel):
    """One of the `references` of a request."""

    name: str
    subject: str
    version: int


class SchemaBody(BaseModel):
    """The request body with a schema."""

    text: str = Field(alias="schema")
    kind: str = Field(default="AVRO", alias="schemaType")
    references: list[ReferenceBody] = []

    def checked_references(self) -> tuple[Reference, ...]:
        """The references; refuses schemas other than Avro."""
        if self.kind.upper() != "AVRO":
            raise Refusal(422, 42201, f"Schema type {self.kind} is not supported, only AVRO")
        return tuple(Reference(r.name, r.subject, r.version) for r in self.references)


class CompatibilityBody(BaseModel):
    """The request body with a compatibility level."""

    compatibility: str


class RegistryResponse(JSONResponse):
    """JSON with the registry's media type, which some clients require."""

    media_type = MEDIA_TYPE


def _store(request: Request) -> SchemaStore:
    store = request.app.state.store
    if not isinstance(store, SchemaStore):
        raise TypeError("the application has no store")
    return store


Store = Annotated[SchemaStore, Depends(_store)]


def create_app(store: SchemaStore) -> FastAPI:
    """The application that serves a store."""
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
    # subjects may contain slashes, so the longer paths come first

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
        return _version_body(store.version(subject, number, deleted))

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
        return _version_body(store.lookup(subject, body.text, body.checked_references()))

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
    def set_level(body: CompatibilityBody, store: Store) -> dict[str, str]:
        store.set_level(body.compatibility)
        return {"compatibility": body.compatibility.upper()}

    @app.get("/config/{subject:path}")
    def subject_level(
        subject: str, store: Store, default: Annotated[bool, Field(alias="defaultToGlobal")] = False
    ) -> dict[str, str]:
        found = store.level(subject) or (store.level() if default else None)
        if found is None:
            raise _no_level(subject)
        return {"compatibilityLevel": found}

    @app.put("/config/{subject:path}")
    def set_subject_level(subject: str, body: CompatibilityBody, store: Store) -> dict[str, str]:
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


def _version_body(v: Version) -> dict[str, Any]:
    described = {"subject": v.subject, "version": v.version, "id": v.id, "schema": v.text}
    return described | _references(v)


def _references(v: Version) -> dict[str, Any]:
    if not v.references:
        return {}
    listed = [{"name": r.name, "subject": r.subject, "version": r.version} for r in v.references]
    return {"references": listed}


def _verdict(problems: list[str], verbose: bool) -> dict[str, Any]:
    verdict: dict[str, Any] = {"is_compatible": not problems}
    return verdict | {"messages": problems} if verbose else verdict


def error_response(status: int, code: int, message: str) -> RegistryResponse:
    return RegistryResponse({"error_code": code, "message": message}, status_code=status)


def _refused(_: Request, refusal: Exception) -> Response:
    if not isinstance(refusal, Refusal):
        raise refusal
    return error_response(refusal.status, refusal.code, str(refusal))


def _http_error(_: Request, error: Exception) -> Response:
    if not isinstance(error, HTTPException):
        raise error
    return error_response(
        error.status_code, error.status_code, f"HTTP {error.status_code} {error.detail}"
    )


def _bad_request(_: Request, error: Exception) -> Response:
    if not isinstance(error, RequestValidationError):
        raise error
    problems = "; ".join(
        f"{'.'.join(str(part) for part in e['loc'])}: {e['msg']}" for e in error.errors()
    )
    return error_response(422, 422, problems)
