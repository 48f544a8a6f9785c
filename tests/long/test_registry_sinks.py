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
from spark_jobs.formats.proto_text import proto_text
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.sink_schema import encodable
from spark_jobs.options.formats import FORMATS, Format, RegistryOptions
from spark_jobs.sql.types.data_types import RowField
from spark_jobs.sql.types.type_text import parse_type
from tests.e2e import artifacts
from tests.e2e.apicurio import Apicurio
from tests.harness.shop import Shop

Field = descriptor_pb2.FieldDescriptorProto
STOP_S = 30.0
ORDERS = 12
DELETED = 3
COLUMNS = (
    "id BIGINT, name STRING, amount DOUBLE, at TIMESTAMP_LTZ(3), tags ARRAY<STRING>,"
    " home ROW<city STRING>, PRIMARY KEY (id) NOT ENFORCED"
)
ORDER_COLUMNS = (
    "id BIGINT, customer BIGINT, amount DOUBLE, at TIMESTAMP_LTZ(3), tags ARRAY<STRING>,"
    " PRIMARY KEY (id) NOT ENFORCED"
)
CUSTOMER_COLUMNS = "id BIGINT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED"
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
    """Records of the inputs; the rows of the join by their ids."""
    shop.create("orders", "customers", "as_json", "as_protobuf", "json_sink", "protobuf_sink")
    shop.send("customers", [{"id": 1, "name": "Zoë", "city": "Oslo"}], key="id")
    rows = [
        {
            "id": i, "customer": i % 2, "amount": i + 0.5, "tags": ["a", ""] if i % 3 else None,
            "at": f"2024-01-01 12:00:00.{2 * i + 101}Z",
        }
        for i in range(ORDERS)
    ]  # fmt: skip
    shop.send("orders", rows, key="id")
    return [
        {
            "id": r["id"], "name": "Zoë" if r["customer"] else None, "amount": r["amount"],
            "at": r["at"], "tags": r["tags"], "home": {"city": "Oslo" if r["customer"] else None},
        }
        for r in rows
    ]  # fmt: skip


def test_what_confluents_clients_and_our_own_read(
    shop: Shop, registry: Apicurio, tmp_path: Path
) -> None:
    expected = sent(shop)
    path = str(descriptor_file(tmp_path, described()))
    bounded = {"scan__bounded__mode": "latest-offset"}
    inputs = shop.table("orders", ORDER_COLUMNS, "upsert-kafka")
    inputs += shop.table("customers", CUSTOMER_COLUMNS, "upsert-kafka")
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
    job = (
        inputs
        + shop.table("as_json", COLUMNS, "upsert-kafka", **as_json)
        + shop.table("as_protobuf", COLUMNS, "upsert-kafka", **as_protobuf)
        + JOINED.format(sink="as_json")
        + JOINED.format(sink="as_protobuf")
    )
    child = shop.start(job)
    for topic in ("as_json", "as_protobuf"):
        shop.messages(topic, lambda found: len({m.key() for m in found}) >= ORDERS)
    shop.delete("orders", "id", [DELETED])
    rows = {row["id"]: row for row in expected}
    assert read_json(shop, registry) == rows | {DELETED: None}
    assert read_protobuf(shop, registry) == {
        i: None if i == DELETED else as_message(row) for i, row in rows.items()
    }
    child.stop(STOP_S)
    assert child.exit_code == 0, child.log_tail(40)
    job = "".join(
        shop.table(f"as_{name}", COLUMNS, "upsert-kafka", **options, **bounded)
        + shop.table(f"{name}_sink", COLUMNS, "upsert-kafka")
        + COPIED.format(name=name)
        for name, options in (("json", as_json), ("protobuf", as_protobuf))
    )
    shop.run(job, "--no-sidecar", "--checkpoint", str(shop.folder / "again"))
    del rows[DELETED]
    assert folded(shop, "json_sink") == rows
    # a field of proto3 that tells nothing of itself is its default, not NULL
    assert folded(shop, "protobuf_sink") == {i: with_defaults(row) for i, row in rows.items()}


def last_values(shop: Shop, topic: str) -> dict[bytes, bytes | None]:
    """The last record of each key, once one of them is a deletion."""

    def enough(found: list[Message]) -> bool:
        return len({m.key() for m in found}) >= ORDERS and any(m.value() is None for m in found)

    return {m.key() or b"": m.value() for m in shop.messages(topic, enough)}


def read_json(shop: Shop, registry: Apicurio) -> dict[int, Any]:
    """By the schemas that the records name."""
    read = JSONDeserializer(
        None, schema_registry_client=SchemaRegistryClient({"url": registry.url})
    )
    contexts = [SerializationContext("as_json", f) for f in (MessageField.KEY, MessageField.VALUE)]
    found = last_values(shop, "as_json").items()
    return {read(key, contexts[0])["id"]: read(value, contexts[1]) for key, value in found}


def read_protobuf(shop: Shop, registry: Apicurio) -> dict[int, Any]:
    """By compiled messages: the client wants descriptors, and Apicurio gives schemas as text."""
    read_key, read = (
        ProtobufDeserializer(message_class(name), {"use.deprecated.format": False})
        for name in ("p.Key", "p.Joined")
    )
    rows: dict[int, Any] = {}
    for key, value in last_values(shop, "as_protobuf").items():
        found = read(value, SerializationContext("as_protobuf", MessageField.VALUE))
        row = None if found is None else json_format.MessageToDict(found)
        rows[read_key(key, SerializationContext("as_protobuf", MessageField.KEY)).id] = row
    assert_registered(registry, key)
    return rows


def assert_registered(registry: Apicurio, record: bytes) -> None:
    """The schema that a record names is the text of its file, and refers to the other file."""
    found = httpx.get(f"{registry.url}/schemas/ids/{int.from_bytes(record[1:5], 'big')}").json()
    assert (found["schemaType"], found["schema"]) == (
        "PROTOBUF",
        proto_text(described()[-1].SerializeToString()),
    )
    home = {"name": "home.proto", "subject": "home.proto", "version": 1}
    assert found["references"] == [home]


def as_message(row: dict[str, Any]) -> dict[str, Any]:
    """Protobuf's own JSON of a row: 64 bits are texts, NULLs and zeros are not there."""
    at = row["at"].replace(" ", "T").replace(".000Z", "Z")
    home = {name: city for name, city in row["home"].items() if city is not None}
    message = {**row, "id": str(row["id"]), "at": at, "home": home}
    return {n: v for n, v in message.items() if v is not None and (n, v) != ("id", "0")}


def with_defaults(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "name": row["name"] or "", "home": {"city": row["home"]["city"] or ""}}


def folded(shop: Shop, topic: str) -> dict[int, Any]:
    """The last row of each key of a JSON topic, without the order that was deleted."""
    found = shop.messages(topic, lambda messages: len({m.key() for m in messages}) >= ORDERS - 1)
    last = {json.loads(m.key() or b"")["id"]: m.value() for m in found}
    return {key: json.loads(value) for key, value in last.items() if value is not None}


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
