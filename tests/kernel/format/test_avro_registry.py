"""A registry that is down, refuses, or does not know: a wait, an error, a bad record."""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from spark_jobs.embedded.process import free_ports
from tests.harness.gateway import jvm as gateway
from tests.harness.http_server import serving
from tests.kernel.conftest import SchemaIds
from tests.kernel.format.avro_records import avro, framed, record_schema
from tests.kernel.tables import TableScan

pytestmark = pytest.mark.service  # waits for registries that do not answer

SCHEMA = record_schema(("c", "int"))
COLUMNS = {"c": "integer"}


def test_outage_is_waited_out(jvm: Any, schema_ids: SchemaIds) -> None:
    records = framed(schema_ids, SCHEMA, {"c": 1})
    schema_ids.failures[:] = [503, 500, 429]
    before = registry_counts()
    assert avro(schema_ids, COLUMNS).read(jvm, *records).rows == [["+I", 1]]
    asked = len(schema_ids.asked)
    assert avro(schema_ids, COLUMNS).read(jvm, *records).rows == [["+I", 1]]
    assert len(schema_ids.asked) == asked
    after = registry_counts()
    assert [after[n] - before.get(n, 0) for n in ("calls", "failures")] == [4, 3]


def registry_counts() -> dict[str, int]:
    """Calls of registries since the JVM began, and how many of them failed."""
    counts = gateway().org.apache.spark.sql.rejoin.run.JvmCounts.json()
    found: dict[str, int] = json.loads(counts).get("registry", {})
    return found


def test_wait_is_seen_and_has_a_limit(jvm: Any) -> None:
    [port] = free_ports(1)
    url = f"http://127.0.0.1:{port}"
    options = {"url": url, "rejoin.registry.timeout-ms": "1500"}
    ids = SchemaIds(url)
    records = framed(ids, SCHEMA, {"c": 1})
    failures: list[Py4JJavaError] = []

    def read() -> None:
        with pytest.raises(Py4JJavaError) as raised:
            TableScan(COLUMNS, "avro-confluent", options).read(jvm, *records)
        failures.append(raised.value)

    started_ms = time.time() * 1000
    reading = threading.Thread(target=read)
    reading.start()
    waits = until_waiting(jvm)
    reading.join()
    assert abs(waits[url] - started_ms) < 60_000
    assert "[REGISTRY_UNREACHABLE]" in str(failures[0].java_exception.toString())
    assert jvm.registry_waits() == {}


def until_waiting(jvm: Any) -> dict[str, int]:
    for _ in range(200):
        waits: dict[str, int] = jvm.registry_waits()
        if waits:
            return waits
        time.sleep(0.02)
    raise AssertionError("nobody waits")


def test_second_url_answers(jvm: Any, schema_ids: SchemaIds) -> None:
    [port] = free_ports(1)
    records = framed(schema_ids, SCHEMA, {"c": 2})
    options = {"url": f"http://127.0.0.1:{port}, {schema_ids.url}/"}
    assert avro(schema_ids, COLUMNS, options=options).read(jvm, *records).rows == [["+I", 2]]


@pytest.mark.parametrize(("status", "code"), [(401, "REGISTRY_REFUSED"), (403, "REGISTRY_REFUSED")])
def test_refused_access_is_no_bad_record(
    jvm: Any, schema_ids: SchemaIds, status: int, code: str
) -> None:
    records = framed(schema_ids, SCHEMA, {"c": 1})
    schema_ids.failures[:] = [status]
    with pytest.raises(Py4JJavaError, match=code):
        avro(schema_ids, COLUMNS).read(jvm, *records)


@contextmanager
def answering(status: int, body: str) -> Iterator[str]:
    """A server that says the same to everybody."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(status)
            self.end_headers()
            self.wfile.write(body.encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Quiet."""

    with serving(Handler) as url:
        yield url


@pytest.mark.parametrize(
    "body", ["<html>not here</html>", '{"error_code": 404, "message": "HTTP 404"}']
)
def test_wrong_address_is_no_unknown_id(jvm: Any, schema_ids: SchemaIds, body: str) -> None:
    """Else a typing error in a URL would make a dead letter of every record."""
    records = framed(schema_ids, SCHEMA, {"c": 1})
    with answering(404, body) as url, pytest.raises(Py4JJavaError, match="REGISTRY_FAILED"):
        avro(schema_ids, COLUMNS, options={"url": url}).read(jvm, *records)


@pytest.mark.parametrize("body", ["<html>log in</html>", "{}"])
def test_answer_that_is_no_schema(jvm: Any, schema_ids: SchemaIds, body: str) -> None:
    """As a proxy in between may give: not the record's fault, and said by name."""
    records = framed(schema_ids, SCHEMA, {"c": 1})
    with answering(200, body) as url, pytest.raises(Py4JJavaError, match="REGISTRY_FAILED"):
        avro(schema_ids, COLUMNS, options={"url": url}).read(jvm, *records)


def test_references(jvm: Any, schema_ids: SchemaIds) -> None:
    """Named types of other subjects, which may have references themselves."""
    leaf = record_schema(("c", "int"), name="Leaf")
    middle = record_schema(("leaf", "Leaf"), name="Middle")
    schema_ids.bodies["/subjects/leaf%2Fs/versions/1"] = json.dumps({"schema": json.dumps(leaf)})
    schema_ids.bodies["/subjects/middle/versions/2"] = json.dumps({
        "schema": json.dumps(middle),
        "references": [{"name": "Leaf", "subject": "leaf/s", "version": 1}],
    })  # fmt: skip
    top = record_schema(("c", "int"), ("middle", "Middle"))
    nested = record_schema(("leaf", leaf), name="Middle")
    whole = record_schema(("c", "int"), ("middle", nested))
    [record] = framed(schema_ids, whole, {"c": 9, "middle": {"leaf": {"c": 1}}})
    assert record.value is not None
    schema_id = int.from_bytes(record.value[1:5], "big")
    schema_ids.bodies[f"/schemas/ids/{schema_id}"] = json.dumps({
        "schema": json.dumps(top),
        "references": [{"name": "Middle", "subject": "middle", "version": 2}],
    })  # fmt: skip
    assert avro(schema_ids, COLUMNS).read(jvm, record).rows == [["+I", 9]]


def test_schema_of_another_kind(jvm: Any, schema_ids: SchemaIds) -> None:
    records = framed(schema_ids, SCHEMA, {"c": 1})
    schema_id = int.from_bytes((records[0].value or b"")[1:5], "big")
    body = json.dumps({"schema": "message A {}", "schemaType": "PROTOBUF"})
    schema_ids.bodies[f"/schemas/ids/{schema_id}"] = body
    assert avro(schema_ids, COLUMNS).read(jvm, *records).rejects == ["avro-schema-mismatch"]
