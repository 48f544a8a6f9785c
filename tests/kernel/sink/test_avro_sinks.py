"""Avro out, byte for byte as Flink's own classes wrote it (tests/fixtures/flink)."""

import base64
import io
import json
from pathlib import Path
from typing import Any

import fastavro
import pytest

from spark_jobs.formats.avro import avro_schema, envelope_schema
from spark_jobs.formats.columns import with_columns
from spark_jobs.options.formats import FORMATS
from spark_jobs.sql.types.data_types import DataType, RowField
from tests.kernel.tables import Record, TableScan, write

FLINK = json.loads(
    (Path(__file__).parents[2] / "fixtures" / "flink" / "avro.json").read_text(encoding="utf-8")
)
LEGACY = {
    "id": DataType("BIGINT", nullable=False), "s": DataType("STRING"), "i": DataType("INT"),
    "small": DataType("SMALLINT"), "b": DataType("BOOLEAN"), "d": DataType("DOUBLE"),
    "f": DataType("FLOAT"), "amount": DataType("DECIMAL", precision=10, scale=2),
    "day": DataType("DATE"), "at": DataType("TIMESTAMP", precision=3),
    "time": DataType("TIME", precision=0), "raw": DataType("BYTES"),
    "list": DataType("ARRAY", element=DataType("STRING")),
    "map": DataType("MAP", key=DataType("STRING", nullable=False), element=DataType("INT")),
    "row": DataType(
        "ROW", fields=(RowField("x", DataType("INT")), RowField("y", DataType("STRING")))
    ),
}  # fmt: skip
CORRECT = LEGACY | {"instant": DataType("TIMESTAMP_LTZ", precision=3)}
ROW = {
    "id": 1, "s": "ä", "i": -7, "small": -5, "b": True, "d": 0.5, "f": 1.5, "amount": "-12.34",
    "day": "2020-02-29", "at": "2020-01-01 00:00:00.123", "time": "10:00:00", "raw": "AP8=",
    "list": ["a", None], "map": {"k": 1}, "row": {"x": 1, "y": None},
    "instant": "2020-01-01 00:00:00.123Z",
}  # fmt: skip


def fields(columns: dict[str, DataType]) -> list[RowField]:
    return [RowField(name, type_) for name, type_ in columns.items()]


def spark(columns: dict[str, DataType]) -> dict[str, Any]:
    return {n: "TIME" if t.name == "TIME" else t.spark_json() for n, t in columns.items()}


def plain(columns: dict[str, DataType], is_legacy: bool) -> dict[str, Any]:
    given = {"avro.timestamp_mapping.legacy": str(is_legacy).lower()}
    complete = with_columns(FORMATS["avro"].read(given, ""), fields(columns))
    return {"name": "avro", "options": dict(complete.texts)}


def flinks(part: str, columns: dict[str, DataType]) -> Any:
    """Flink's schema, without the columns that are refused here for what Flink does with them."""
    schema = FLINK[part]["schema"]
    return {**schema, "fields": [f for f in schema["fields"] if f["name"] in columns]}


@pytest.mark.parametrize(
    ("part", "columns", "is_legacy"),
    [("avro_legacy", LEGACY, True), ("avro_correct", CORRECT, False)],
)
def test_plain_avro(jvm: Any, part: str, columns: dict[str, DataType], is_legacy: bool) -> None:
    value = plain(columns, is_legacy)
    assert json.loads(value["options"]["schema"]) == flinks(part, columns)
    row = {name: ROW[name] for name in columns}
    got = write(jvm, {"valueFormat": value}, spark(columns), ("+I", row), ("+I", {"id": 2}))
    written = [v for _, v in got.records]
    if is_legacy:
        assert written == [base64.b64decode(v) for v in FLINK[part]["binary"]]
    values = [fastavro.schemaless_reader(io.BytesIO(v or b""), flinks(part, columns), None)
              for v in written]  # fmt: skip
    assert values[0]["id"] == 1
    assert values[1] == dict.fromkeys(columns) | {"id": 2}


def test_plain_avro_reads_what_flink_wrote(jvm: Any) -> None:
    value = plain(LEGACY, is_legacy=True)
    scan = TableScan(spark(LEGACY), "avro", value["options"])
    given = [Record(base64.b64decode(v)) for v in FLINK["avro_legacy"]["binary"]]
    got = scan.read(jvm, *given)
    assert got.rows[0] == [
        "+I", 1, "ä", -7, -5, True, 0.5, 1.5, "-12.34", "2020-02-29", "2020-01-01T00:00:00.123",
        36_000_000, "AP8=", ["a", None], {"k": 1}, [1, None],
    ]  # fmt: skip
    assert got.rows[1] == ["+I", 2, *[None] * 14]
    cut = given[0].value or b""
    wrong = scan.read(jvm, Record(cut[:-1]), Record(cut + b"\x00"))
    assert wrong.rejects == ["avro-malformed"] * 2


def debezium() -> dict[str, Any]:
    options = {"schema": envelope_schema(fields(LEGACY)), "schema-id": "7"}
    return {"name": "debezium-avro-confluent", "options": options}


def test_debezium_envelopes(jvm: Any) -> None:
    path, _, body = FLINK["debezium"]["registered"].partition(" ")
    assert path.startswith("/subjects/topic-value/versions")
    registered = json.loads(json.loads(body)["schema"])
    assert json.loads(debezium()["options"]["schema"]) == registered
    row = {name: ROW[name] for name in LEGACY}
    kinds = FLINK["debezium"]["kinds"]
    sink = {"mode": "retract", "valueFormat": debezium()}
    got = write(jvm, sink, spark(LEGACY), *((kind, row) for kind in kinds))
    assert [v for _, v in got.records] == [base64.b64decode(v) for v in kinds.values()]


def test_debezium_envelopes_are_read_back(jvm: Any, schema_ids: Any) -> None:
    """Flink's envelope is a nullable record, and its update two records."""
    schema_ids.schemas[7007] = debezium()["options"]["schema"]
    given = [base64.b64decode(v) for v in FLINK["debezium"]["kinds"].values()]
    renumbered = [v[:1] + (7007).to_bytes(4, "big") + v[5:] for v in given]
    options = {"url": schema_ids.url}
    columns = {"id": "long", "s": "string"}
    scan = TableScan(columns, "debezium-avro-confluent", options, "retract")
    rows = scan.read(jvm, *map(Record, renumbered)).rows
    assert rows == [[kind, 1, "ä"] for kind in ("+I", "-D", "+I", "-D")]


def test_key_and_value_have_schemas_of_their_own(jvm: Any) -> None:
    key = {"schema": avro_schema(fields(LEGACY)[:1]), "schema-id": "5"}
    sink = {
        "mode": "retract", "valueFormat": debezium(), "keyFields": ["id"],
        "keyFormat": {"name": "avro-confluent", "options": key},
    }  # fmt: skip
    row = {name: ROW[name] for name in LEGACY}
    got = write(jvm, sink, spark(LEGACY), ("-D", row))
    [(written_key, value)] = got.records
    assert written_key == b"\x00\x00\x00\x00\x05\x02"
    assert value == base64.b64decode(FLINK["debezium"]["kinds"]["-D"])
