"""A JVM with the kernel in it, and a stand-in for a schema registry that a test can make fail."""

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark import SparkContext

from tests.harness import gateway
from tests.harness.gateway import kernel
from tests.harness.http_server import serving


@pytest.fixture(scope="session")
def jvm() -> Any:
    """The kernel's one object."""
    return kernel()


@dataclass
class SchemaIds:
    """Schemas by id at `url`; each of `failures` is the status of one more answer that is none.

    `bodies` are answers to other paths, as they are.
    """

    url: str
    schemas: dict[int, str] = field(default_factory=dict)
    bodies: dict[str, str] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def add(self, schema: object) -> int:
        """Ids are never reused: the kernel keeps what it has seen."""
        schema_id = 1000 + len(self.schemas)
        self.schemas[schema_id] = json.dumps(schema)
        return schema_id

    def by_id(self, path: str) -> str | None:
        """What a registry with Confluent's interface answers."""
        prefix, _, number = path.rpartition("/")
        known = prefix == "/schemas/ids" and int(number) in self.schemas
        return json.dumps({"schema": self.schemas[int(number)]}) if known else None


@pytest.fixture(scope="session")
def schema_ids() -> Iterator[SchemaIds]:
    """Knows `GET /schemas/ids/{id}` and what a test adds; for recorded ids and for outages."""
    ids = SchemaIds("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            ids.asked.append(self.path)
            body = ids.bodies.get(self.path) or ids.by_id(self.path)
            status = ids.failures.pop(0) if ids.failures else 200 if body else 404
            if status == 404 and self.path.startswith("/schemas/ids/"):
                body = json.dumps({"error_code": 40403, "message": "Schema not found"})
            elif status != 200:
                body = json.dumps({"error_code": status, "message": f"HTTP {status}"})
            self.send_response(status)
            self.end_headers()
            self.wfile.write((body or "").encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are in `asked`."""

    with serving(Handler) as ids.url:
        yield ids


@pytest.fixture
def pyspark_functions(monkeypatch: pytest.MonkeyPatch) -> None:
    """PySpark's functions make real Columns in this JVM: its `_jvm` is all that they ask a context
    for."""
    monkeypatch.setattr(SparkContext, "_active_spark_context", SimpleNamespace(_jvm=gateway.jvm()))
