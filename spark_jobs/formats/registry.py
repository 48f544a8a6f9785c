"""Registers and checks the schemas of sinks. The kernel itself reads schemas by id."""

import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import NamedTuple, NoReturn, TypeVar
from urllib.parse import quote

import httpx

from spark_jobs.access.registry import registry_access
from spark_jobs.errors import ConfigError, FormatError, KafkaError
from spark_jobs.formats.written_schema import Import, WrittenSchema
from spark_jobs.options.formats import RegistryOptions

CONTENT_TYPE = "application/vnd.schemaregistry.v1+json"
PATIENCE_S = 20.0
_TIMEOUT_S = 10.0
_FIRST_PAUSE_S = 0.2
_MOST_PAUSE_S = 3.0

T = TypeVar("T")


class Registered(NamedTuple):
    """A version of a subject."""

    id: int
    version: int


class RegisteredSchema(NamedTuple):
    """A schema's text and what it is written in: AVRO, JSON or PROTOBUF."""

    kind: str
    text: str
    has_references: bool


class RegistryClient:
    """A Confluent-compatible registry, as the options of a format describe it."""

    def __init__(self, options: RegistryOptions, patience_s: float = PATIENCE_S) -> None:
        access = registry_access(options, _TIMEOUT_S, {"Content-Type": CONTENT_TYPE})
        self._urls = access.urls
        self._client = access.client
        self._patience_s = patience_s

    def register(self, subject: str, schema: WrittenSchema) -> int:
        """Register the schema and return its id, which it keeps if it is registered already."""
        for name, imported in schema.imports:
            self.register(name, imported)
        what = f"subject {subject}"
        body = self._body(schema)
        answer = self._send("POST", f"/subjects/{_quoted(subject)}/versions", what, body)
        return _number(_judge(answer, what, dict), "id", answer)

    def subjects(self) -> tuple[int, float | None]:
        """The number of subjects, and the registry's time (Unix seconds) if the answer has it."""
        answer = self._send("GET", "/subjects", "subjects")
        names = _judge(answer, "subjects", list)
        date = answer.headers.get("date")
        return len(names), None if date is None else parsedate_to_datetime(date).timestamp()

    def latest(self, subject: str) -> Registered | None:
        """The newest version; None if the subject does not exist."""
        what = f"subject {subject}"
        answer = self._send("GET", f"/subjects/{_quoted(subject)}/versions/latest", what)
        if answer.status_code == 404:
            return None
        found = _judge(answer, what, dict)
        return Registered(_number(found, "id", answer), _number(found, "version", answer))

    def schema(self, schema_id: int) -> RegisteredSchema:
        """The schema with this id. Raises FormatError if there is none."""
        what = f"schema {schema_id}"
        answer = self._send("GET", f"/schemas/ids/{schema_id}", what)
        found = _judge(answer, what, dict)
        kind, text = found.get("schemaType", "AVRO"), found.get("schema")
        if not isinstance(kind, str) or not isinstance(text, str):
            _none_of_a_registry(answer)
        return RegisteredSchema(kind, text, bool(found.get("references")))

    def lookup(self, subject: str, schema: WrittenSchema) -> Registered | None:
        """The version of the subject that is exactly this schema; None if it has none."""
        if any(self.lookup(name, imported) is None for name, imported in schema.imports):
            return None
        what = f"subject {subject}"
        body = self._body(schema)
        answer = self._send("POST", f"/subjects/{_quoted(subject)}", what, body)
        if answer.status_code == 404:
            return None
        found = _judge(answer, what, dict)
        return Registered(_number(found, "id", answer), _number(found, "version", answer))

    def problems(self, subject: str, schema: WrittenSchema) -> list[str]:
        """Why the schema cannot be the subject's next version; empty if it can.

        A schema whose imports are not registered cannot be compared yet: theirs are the problems.
        """
        new = [each for each in schema.imports if self.lookup(*each) is None]
        if new:
            return [each for name, imported in new for each in self.problems(name, imported)]
        what = f"subject {subject}"
        path = f"/compatibility/subjects/{_quoted(subject)}/versions"
        body = self._body(schema)
        answer = self._send("POST", f"{path}?verbose=true", what, body)
        if answer.status_code in (404, 405):  # older registries compare with one version only
            answer = self._send("POST", f"{path}/latest?verbose=true", what, body)
        verdict = _judge(answer, what, dict)
        if verdict.get("is_compatible") is not False:
            return []
        messages = verdict.get("messages", verdict.get("reason"))  # Apicurio gives one reason
        found = [str(m) for m in messages] if isinstance(messages, list) else [str(messages or "")]
        return [each for each in found if each] or ["the registry gives no reason"]

    def close(self) -> None:
        self._client.close()

    def _body(self, schema: WrittenSchema) -> dict[str, object]:
        """The schema as a request has it; what it imports is registered."""
        body: dict[str, object] = {"schema": schema.text}
        if schema.kind != "AVRO":  # older registries do not know the field
            body["schemaType"] = schema.kind
        if schema.imports:
            body["references"] = [self._reference(each) for each in schema.imports]
        return body

    def _reference(self, imported: Import) -> dict[str, object]:
        name, schema = imported
        found = self.lookup(name, schema)
        if found is None:
            raise FormatError("SCHEMA_REFUSED", f"subject {name}: the registry lost the schema")
        return {"name": name, "subject": name, "version": found.version}

    def _send(
        self, method: str, path: str, what: str, body: Mapping[str, object] | None = None
    ) -> httpx.Response:
        """Send a request; retry with growing pauses while the registry is down."""
        deadline = time.monotonic() + self._patience_s
        pause_s = _FIRST_PAUSE_S
        while True:
            problem = ""
            for url in self._urls:
                try:
                    response = self._client.request(method, url + path, json=body)
                except httpx.InvalidURL as error:
                    raise ConfigError("REGISTRY_URL", f"'{url}' is not a URL: {error}") from error
                except httpx.TransportError as error:
                    problem = f"{url} does not answer: {error}"
                    continue
                if response.status_code < 500 and response.status_code != 429:
                    return response
                problem = f"{url} answers {response.status_code}"
            if time.monotonic() + pause_s > deadline:
                raise KafkaError("REGISTRY_UNREACHABLE", f"{what}: the registry at {problem}")
            time.sleep(pause_s)
            pause_s = min(pause_s * 2, _MOST_PAUSE_S)


def _quoted(subject: str) -> str:
    return quote(subject, safe="")


def _judge(response: httpx.Response, what: str, kind: type[T]) -> T:
    """The answer's JSON, which must be a list or an object as `kind` says."""
    if response.is_success:
        try:
            found: object = response.json()
        except ValueError:
            found = None
        return found if isinstance(found, kind) else _none_of_a_registry(response)
    detail = response.text[:500]
    match response.status_code:
        case 401 | 403:
            raise KafkaError(
                "REGISTRY_REFUSED",
                f"{what}: the registry refuses access ({response.status_code})",
                hint="set the format's 'basic-auth.*' or 'bearer-auth.*' options",
            )
        case 409:
            raise FormatError(
                "SCHEMA_INCOMPATIBLE",
                f"{what}: the sink's columns do not fit the registered schema: {detail}",
                hint="write to another topic, or change the subject's compatibility level",
            )
        case status:
            raise FormatError("SCHEMA_REFUSED", f"{what}: the registry answers {status}: {detail}")


def _number(answer: Mapping[str, object], name: str, response: httpx.Response) -> int:
    found = answer.get(name)
    return found if isinstance(found, int) else _none_of_a_registry(response)


def _none_of_a_registry(response: httpx.Response) -> NoReturn:
    """The answer is that of another server, such as the page of a registry's UI."""
    raise FormatError(
        "REGISTRY_FAILED",
        f"{response.url} does not answer as a schema registry: {response.text[:100]!r}",
        hint="set the format's 'url' to the address of the registry's API",
    )
