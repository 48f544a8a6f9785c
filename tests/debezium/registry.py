"""The recorded schemas by their recorded ids, as Confluent's and Apicurio's registries give them.

A real registry would give them ids of its own.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

from tests.debezium.recording import schemas
from tests.harness.http_server import serving


@contextmanager
def recorded_registry() -> Iterator[str]:
    """Its address; the first part of a path is the name of a format's folder."""
    with serving(_Handler) as address:
        yield address


class _Handler(BaseHTTPRequestHandler):
    def do_GET(self) -> None:
        _, format_, *rest = self.path.split("?")[0].split("/")
        schema = schemas(format_).get(int(rest[-1])) if rest[-1].isdigit() else None
        is_confluent = "schemas" in rest
        absent = json.dumps({"error_code": 40403, "message": "Schema not found"})
        body = absent if schema is None else json.dumps({"schema": schema})
        if schema is not None and not is_confluent:
            body = schema
        self.send_response(404 if schema is None else 200)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, format: str, *args: Any) -> None:
        """Says nothing."""
