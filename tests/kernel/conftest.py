"""A JVM with the kernel in it, and a stand-in for a schema registry that a test can make fail."""

import json
import threading
from collections.abc import Iterator
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from tests.harness.gateway import kernel


@pytest.fixture(scope="session")
def jvm() -> Any:
    """The kernel's one object."""
    return kernel()


@dataclass
class SchemaIds:
    """Schemas by id at `url`; each of `failures` is the status of one more answer that is none."""

    url: str
    schemas: dict[int, str] = field(default_factory=dict)
    failures: list[int] = field(default_factory=list)
    asked: list[str] = field(default_factory=list)

    def add(self, schema: object) -> int:
        """Ids are never reused: the kernel keeps what it has seen."""
        schema_id = 1000 + len(self.schemas)
        self.schemas[schema_id] = json.dumps(schema)
        return schema_id


@pytest.fixture(scope="session")
def schema_ids() -> Iterator[SchemaIds]:
    """Knows `GET /schemas/ids/{id}` and nothing else; for recorded ids and for outages."""
    ids = SchemaIds("")

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            ids.asked.append(self.path)
            schema = ids.schemas.get(int(self.path.rpartition("/")[2]))
            status = ids.failures.pop(0) if ids.failures else 200 if schema else 404
            body = json.dumps({"schema": schema} if status == 200 else {"error_code": status})
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Requests are in `asked`."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    ids.url = f"http://127.0.0.1:{server.server_port}"
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    yield ids
    server.shutdown()
    thread.join()
    server.server_close()
