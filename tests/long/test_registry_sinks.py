"""Sinks with JSON Schema and Protobuf at a real registry, read by Confluent's deserializers."""

import json
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import httpx
import pytest
from confluent_kafka import Message
from confluent_kafka.schema_registry import SchemaRegistryClient
from confluent_kafka.schema_registry.json_schema import JSONDeserializer
from confluent_kafka.schema_registry.protobuf import ProtobufDeserializer
from confluent_kafka.serialization import MessageField, SerializationContext
from google.protobuf import descriptor_pb2, descriptor_pool, json_format, message_factory
from google.protobuf.timestamp_pb2 import DESCRIPTOR as TIMESTAMP

from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import FormatError
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.sink_schema import encodable
from spark_jobs.options.formats import FORMATS, Format, RegistryOptions
from spark_jobs.sql.types.data_types import RowField
from spark_jobs.sql.types.type_text import parse_type
from tests.e2e import artifacts
from tests.e2e.apicurio import Apicurio
from tests.harness.shop import Shop

Field = descriptor_pb2.FieldDescriptorProto
COLUMNS = (
    "id BIGINT, name STRING, amount DOUBLE, at TIMESTAMP_LTZ(3), tags ARRAY<STRING>,"
    " home ROW<city STRING>, PRIMARY KEY (id) NOT ENFORCED"
)
ORDERS = "id BIGINT, customer BIGINT, amount DOUBLE, at TIMESTAMP_LTZ(3), tags ARRAY<STRING>"
JOINED = """
INSERT INTO {sink} SELECT o.id, c.name, o.amount, o.at, o.tags, ROW(c.city)
FROM orders AS o LEFT JOIN customers AS c ON o.customer = c.id;
"""
COPIED = """
INSERT INTO {name}_sink SELECT * FROM as_{name};
"""


@pytest.fixture(scope="module")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Apicurio]:
    """Refuses incompatible schemas, as Confluent's does by default."""
    artifacts.provide(sys.stdout.write)
    running = Apicurio(tmp_path_factory.mktemp("apicurio") / "registry")
    running.launch()
    try:
        running.wait()
        level = {"compatibility": "BACKWARD"}
        assert httpx.put(f"{running.url}/config", json=level).is_success
        yield running
    finally:
        running.stop()


@pytest.fixture
def shop(broker: Broker, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(broker, tmp_path)
    yield made
    for child in made.running:
        child.stop(0.0)


def described(id_type: int = Field.TYPE_INT64) -> list[descriptor_pb2.FileDescriptorProto]:
    """A message for keys, one for values, and one in another file, as protoc describes them."""
    other = descriptor_pb2.FileDescriptorProto(name="home.proto", package="p", syntax="proto3")
    other.message_type.add(name="Home").field.add(name="city", number=1, type=9, label=1)
    file = descriptor_pb2.FileDescriptorProto(name="joined.proto", package="p", syntax="proto3")
    file.dependency.extend(["google/protobuf/timestamp.proto", "home.proto"])
    file.message_type.add(name="Key").field.add(name="id", number=1, type=id_type, label=1)
    value = file.message_type.add(name="Joined")
    for number, (name, kind, label, type_name) in enumerate(
        (
            ("id", id_type, Field.LABEL_OPTIONAL, None),
            ("name", Field.TYPE_STRING, Field.LABEL_OPTIONAL, None),
            ("amount", Field.TYPE_DOUBLE, Field.LABEL_OPTIONAL, None),
            ("at", Field.TYPE_MESSAGE, Field.LABEL_OPTIONAL, ".google.protobuf.Timestamp"),
            ("tags", Field.TYPE_STRING, Field.LABEL_REPEATED, None),
            ("home", Field.TYPE_MESSAGE, Field.LABEL_OPTIONAL, ".p.Home"),
        ),
        1,
    ):
        value.field.add(name=name, number=number, type=kind, label=label, type_name=type_name)
    timestamp = descriptor_pb2.FileDescriptorProto.FromString(TIMESTAMP.serialized_pb)
    return [timestamp, other, file]


def descriptor_file(folder: Path, files: list[descriptor_pb2.FileDescriptorProto]) -> Path:
    path = folder / "joined.desc"
    path.write_bytes(descriptor_pb2.FileDescriptorSet(file=files).SerializeToString())
    return path


def message_class(name: str) -> Any:
    pool = descriptor_pool.DescriptorPool()
    for each in described():
        pool.Add(each)
    return message_factory.GetMessageClass(pool.FindMessageTypeByName(name))


def sent(shop: Shop) -> list[dict[str, Any]]:
    """Records of the inputs; the rows of the join, of which order 3's deletion is not one."""
    shop.create("orders", "customers", "as_json", "as_protobuf", "json_sink", "protobuf_sink")
    shop.send("customers", [{"id": 1, "name": "Zoë", "city": "Oslo"}], key="id")
    rows = [
        {
            "id": i, "customer": i % 2, "amount": i + 0.5, "at": f"2024-01-01 12:00:00.{i:03}Z",
            "tags": ["a", ""] if i % 3 else None,
        }
        for i in range(12)
    ]  # fmt: skip
    shop.send("orders", rows, key="id")
    shop.delete("orders", "id", [3])
    return [
        {
            "id": r["id"], "name": "Zoë" if r["customer"] else None, "amount": r["amount"],
            "at": r["at"], "tags": r["tags"], "home": {"city": "Oslo" if r["customer"] else None},
        }
        for r in rows
        if r["id"] != 3
    ]  # fmt: skip


def test_what_confluents_clients_and_our_own_read(
    shop: Shop, registry: Apicurio, tmp_path: Path
) -> None:
    expected = sent(shop)
    path = str(descriptor_file(tmp_path, described()))
    bounded = {"scan__bounded__mode": "latest-offset"}
    inputs = shop.table("orders", f"{ORDERS}, PRIMARY KEY (id) NOT ENFORCED", "upsert-kafka",
                        **bounded) + shop.table(
        "customers", "id BIGINT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED",
        "upsert-kafka", **bounded,
    )  # fmt: skip
    as_json, as_protobuf = {}, {}
    for part in ("key", "value"):
        as_json |= {f"{part}__format": "json-registry",
                    f"{part}__json-registry__url": registry.url}  # fmt: skip
        message = "p.Key" if part == "key" else "p.Joined"
        as_protobuf |= {
            f"{part}__format": "proto-registry",
            f"{part}__proto-registry__url": registry.url,
            f"{part}__proto-registry__descriptor-file": path,
            f"{part}__proto-registry__message-name": message,
        }
    shop.run(
        inputs
        + shop.table("as_json", COLUMNS, "upsert-kafka", **as_json)
        + shop.table("as_protobuf", COLUMNS, "upsert-kafka", **as_protobuf)
        + JOINED.format(sink="as_json")
        + JOINED.format(sink="as_protobuf")
    )
    keys = {r["id"] for r in expected} | {3}
    assert_json(shop, registry, expected, keys)
    assert_protobuf(shop, registry, expected, keys)
    job = "".join(
        shop.table(f"as_{name}", COLUMNS, "upsert-kafka", **options, **bounded)
        + shop.table(f"{name}_sink", COLUMNS, "upsert-kafka")
        + COPIED.format(name=name)
        for name, options in (("json", as_json), ("protobuf", as_protobuf))
    )
    shop.run(job, "--no-sidecar", "--checkpoint", str(shop.folder / "again"))
    assert folded(shop, "json_sink", json.loads) == {r["id"]: r for r in expected}
    # a field of proto3 that tells nothing of itself is its default, not NULL
    told = {r["id"]: r | {"name": r["name"] or "", "home": {"city": r["home"]["city"] or ""}}
            for r in expected}  # fmt: skip
    assert folded(shop, "protobuf_sink", json.loads) == told


def read_values(shop: Shop, topic: str, keys: set[int]) -> list[Message]:
    """Every key has a last record."""
    return shop.messages(topic, lambda found: len({m.key() for m in found}) >= len(keys))


def folded(shop: Shop, topic: str, read: Any) -> dict[int, Any]:
    """The last row of each key of a JSON topic, deletions left out."""
    rows: dict[int, Any] = {}
    for message in shop.messages(topic, lambda found: len({m.key() for m in found}) >= 11):
        key, value = read(message.key())["id"], message.value()
        rows.pop(key, None)
        if value is not None:
            rows[key] = read(value)
    return rows


def assert_json(
    shop: Shop, registry: Apicurio, expected: list[dict[str, Any]], keys: set[int]
) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    read = JSONDeserializer(None, schema_registry_client=client)
    topic = shop.topic("as_json")
    rows: dict[int, Any] = {}
    for message in read_values(shop, "as_json", keys):
        key = read(message.key(), SerializationContext(topic, MessageField.KEY))
        rows[key["id"]] = read(message.value(), SerializationContext(topic, MessageField.VALUE))
    assert rows == {r["id"]: r for r in expected} | ({3: None} if 3 in rows else {})
    subjects = httpx.get(f"{registry.url}/subjects").json()
    assert {f"{topic}-key", f"{topic}-value"} <= set(subjects)


def assert_protobuf(
    shop: Shop, registry: Apicurio, expected: list[dict[str, Any]], keys: set[int]
) -> None:
    client = SchemaRegistryClient({"url": registry.url})
    conf = {"use.deprecated.format": False}
    read_key = ProtobufDeserializer(message_class("p.Key"), conf, client)
    read = ProtobufDeserializer(message_class("p.Joined"), conf, client)
    topic = shop.topic("as_protobuf")
    rows: dict[int, Any] = {}
    for message in read_values(shop, "as_protobuf", keys):
        key = read_key(message.key(), SerializationContext(topic, MessageField.KEY))
        value = read(message.value(), SerializationContext(topic, MessageField.VALUE))
        rows[key.id] = None if value is None else json_format.MessageToDict(value)
    for row in expected:
        found = rows[row["id"]]
        assert found.get("name") == row["name"]
        assert found["amount"] == row["amount"]
        assert found["at"][:23].rstrip("Z") == row["at"][:23].replace(" ", "T").removesuffix(".000")
        assert found.get("tags") == row["tags"]
        assert found["home"].get("city") == row["home"]["city"]
    assert rows.get(3) is None
    assert "home.proto" in httpx.get(f"{registry.url}/subjects").json()


def fields(text: str) -> list[RowField]:
    return list(parse_type(f"ROW<{text}>").fields)


def with_id(declared: Format, columns: str) -> str:
    return encodable(declared, declared.name, "value", fields(columns)).texts["schema-id"]


@pytest.mark.parametrize("name", ["json-registry", "proto-registry"])
def test_how_schemas_may_change(name: str, registry: Apicurio, tmp_path: Path) -> None:
    """As the registry says, in its words; without registration a schema has to be there."""

    def declared(id_type: int, **options: str) -> Format:
        given = {"url": registry.url, **options}
        if name == "proto-registry":
            path = descriptor_file(tmp_path, described(id_type))
            given |= {"descriptor-file": str(path), "message-name": "p.Joined"}
        return FORMATS[name].read({f"{name}.{n}": v for n, v in given.items()}, "")

    looked_up = {"auto-register-schemas": "false"}
    with pytest.raises(FormatError, match="SCHEMA_UNREGISTERED"):
        with_id(declared(Field.TYPE_INT64, **looked_up), "id BIGINT NOT NULL")
    first = with_id(declared(Field.TYPE_INT64), "id BIGINT NOT NULL")
    assert with_id(declared(Field.TYPE_INT64, **looked_up), "id BIGINT NOT NULL") == first
    assert with_id(declared(Field.TYPE_INT64), "id BIGINT NOT NULL") == first
    if name == "json-registry":
        wider = with_id(declared(Field.TYPE_INT64), "id BIGINT NOT NULL, name STRING")
        assert wider != first
    with pytest.raises(FormatError, match=rf"SCHEMA_INCOMPATIBLE.*{name}-value.*[Ii]ncompatible"):
        with_id(declared(Field.TYPE_STRING), "id STRING NOT NULL")
    with closing(RegistryClient(RegistryOptions(url=registry.url))) as client:
        latest = client.latest(f"{name}-value")
    assert latest is not None
    assert latest.version == (2 if name == "json-registry" else 1)
