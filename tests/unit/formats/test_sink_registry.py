"""Registering sink schemas at the embedded registry, and at ones that refuse or are not there."""

import json
from collections.abc import Iterator
from contextlib import closing
from http.server import BaseHTTPRequestHandler

import pytest

from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.errors import ConfigError, FormatError, KafkaError
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.sink_schema import encodable
from spark_jobs.formats.written_schema import WrittenSchema
from spark_jobs.options.formats import RegistryOptions, format_of
from spark_jobs.sql.types.data_types import DataType, RowField
from tests.harness.http_server import serving

ID = RowField("id", DataType("BIGINT", nullable=False))
NAME = RowField("name", DataType("STRING"))


def with_schema_id(
    options: dict[str, str],
    topic: str,
    part: str,
    columns: list[RowField],
    name: str = "avro-confluent",
) -> dict[str, str]:
    return encodable(format_of(name, options), topic, part, columns).texts


def test_schema_is_registered_once(registry: RegistryServer) -> None:
    options = {"url": registry.url}
    first = with_schema_id(options, "once", "value", [ID, NAME])
    assert with_schema_id(options, "once", "value", [ID, NAME]) == first
    assert json.loads(first["schema"])["fields"][0] == {"name": "id", "type": "long"}
    assert int(first["schema-id"]) > 0
    given = with_schema_id({**options, "schema": '"long"', "subject": "s"}, "once", "key", [ID])
    assert given["schema"] == '"long"'
    assert given["schema-id"] != first["schema-id"]


def test_a_schema_that_may_not_be_registered_is_looked_up(registry: RegistryServer) -> None:
    options = {"url": registry.url, "auto-register-schemas": "false"}
    with pytest.raises(FormatError, match=r"SCHEMA_UNREGISTERED.*looked-up-value") as refused:
        with_schema_id(options, "looked-up", "value", [ID, NAME])
    assert "auto-register-schemas" in (refused.value.hint or "")
    with closing(RegistryClient(RegistryOptions(url=registry.url))) as client:
        assert client.latest("looked-up-value") is None
    first = with_schema_id({"url": registry.url}, "looked-up", "value", [ID, NAME])
    found = with_schema_id(options, "looked-up", "value", [ID, NAME])
    assert found["schema-id"] == first["schema-id"]
    with pytest.raises(FormatError, match="SCHEMA_UNREGISTERED"):
        with_schema_id(options, "looked-up", "value", [ID])


def test_a_registry_that_knows_avro_alone(registry: RegistryServer) -> None:
    with pytest.raises(FormatError, match=r"SCHEMA_REFUSED.*JSON"):
        with_schema_id({"url": registry.url}, "json", "value", [ID], "json-registry")


def test_incompatible_columns_are_named(registry: RegistryServer) -> None:
    options = {"url": registry.url}
    with_schema_id(options, "changing", "value", [ID])
    needs_more = [ID, RowField("x", DataType("INT", nullable=False))]
    with pytest.raises(FormatError, match=r"SCHEMA_INCOMPATIBLE.*changing-value"):
        with_schema_id(options, "changing", "value", needs_more)


def test_envelopes_have_subjects_like_rows(registry: RegistryServer) -> None:
    options = {"url": registry.url}
    first = with_schema_id(options, "events", "value", [ID], "debezium-avro-confluent")
    schema = json.loads(first["schema"])
    assert [f["name"] for f in schema[1]["fields"]] == ["before", "after", "op"]
    key = with_schema_id(options, "events", "key", [ID])
    assert key["schema-id"] != first["schema-id"]
    wider = [ID, NAME]
    second = with_schema_id(options, "events", "value", wider, "debezium-avro-confluent")
    assert second["schema-id"] != first["schema-id"]
    needs_more = [ID, RowField("x", DataType("INT", nullable=False))]
    with pytest.raises(FormatError, match=r"SCHEMA_INCOMPATIBLE.*events-value"):
        with_schema_id(options, "events", "value", needs_more, "debezium-avro-confluent")


def test_registry_that_is_not_there() -> None:
    client = RegistryClient(RegistryOptions(url="http://127.0.0.1:1"), patience_s=0.3)
    with pytest.raises(KafkaError, match="REGISTRY_UNREACHABLE"):
        client.register("s", WrittenSchema('"long"'))


class Moody(BaseHTTPRequestHandler):
    """Down at first, then up for whoever has the right password."""

    asked: list[str | None]

    def do_POST(self) -> None:
        self.asked.append(self.headers["Authorization"])
        self.rfile.read(int(self.headers["Content-Length"]))
        status = 503 if len(self.asked) == 1 else 401 if self.asked[-1] is None else 200
        body = b'{"id": 7}' if status == 200 else b"{}"
        self.send_response(status)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


@pytest.fixture
def moody() -> Iterator[str]:
    Moody.asked = []
    with serving(Moody) as url:
        yield url


def test_retries_with_credentials(moody: str) -> None:
    options = RegistryOptions(url=moody, user_info="ann:secret")
    assert RegistryClient(options).register("s/1", WrittenSchema('"long"')) == 7
    assert Moody.asked == ["Basic YW5uOnNlY3JldA=="] * 2


def test_refused_access_is_not_retried(moody: str) -> None:
    with pytest.raises(KafkaError, match="REGISTRY_REFUSED"):
        RegistryClient(RegistryOptions(url=moody)).register("s", WrittenSchema('"long"'))
    assert len(Moody.asked) == 2


class Page(BaseHTTPRequestHandler):
    """What stands at a registry's address when it is that of its user interface."""

    def do_GET(self) -> None:
        body = b"<html>" if self.path.endswith("latest") else b'{"id": "x"}'
        self.send_response(200)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.do_GET()

    def log_message(self, format: str, *args: object) -> None:
        """Quiet."""


def test_what_is_no_registry_is_named() -> None:
    with serving(Page) as url, closing(RegistryClient(RegistryOptions(url=url))) as client:
        for ask in (
            lambda: client.latest("s"),
            client.subjects,
            lambda: client.register("s", WrittenSchema('"long"')),
        ):
            with pytest.raises(FormatError, match="REGISTRY_FAILED"):
                ask()


def test_an_address_that_is_none() -> None:
    with pytest.raises(ConfigError, match="REGISTRY_URL"):
        RegistryClient(RegistryOptions(url="http://host:port")).latest("s")
