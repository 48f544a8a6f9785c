"""Schemas of Avro sinks: as Flink writes them, and accepted by an Avro library."""

import json

import pytest
from fastavro import parse_schema

from spark_jobs.errors import FormatError
from spark_jobs.formats.avro import avro_schema
from spark_jobs.sql.types.data_types import DataType, RowField


def test_types_and_nullability() -> None:
    nested = DataType("ROW", fields=(RowField("x", DataType("INT")),))
    fields = [
        RowField("id", DataType("BIGINT", nullable=False)),
        RowField("name", DataType("STRING")),
        RowField("price", DataType("DECIMAL", nullable=False, precision=10, scale=4)),
        RowField("day", DataType("DATE", nullable=False)),
        RowField("at", DataType("TIMESTAMP", nullable=False, precision=3)),
        RowField("exactly", DataType("TIMESTAMP_LTZ", nullable=False, precision=6)),
        RowField("nested", nested),
        RowField("tags", DataType("ARRAY", element=nested)),
        RowField(
            "counts",
            DataType("MAP", key=DataType("STRING"), element=DataType("INT", nullable=False)),
        ),
    ]
    schema = json.loads(avro_schema(fields))
    parse_schema(schema)  # among others: no record name twice
    types = {f["name"]: f["type"] for f in schema["fields"]}
    assert types["id"] == "long"
    assert types["name"] == ["null", "string"]
    assert types["price"]["logicalType"] == "decimal"
    assert (types["price"]["precision"], types["price"]["scale"]) == (10, 4)
    assert types["at"] == {"type": "long", "logicalType": "timestamp-millis"}
    assert types["exactly"] == {"type": "long", "logicalType": "timestamp-micros"}
    assert types["nested"][1]["name"] == "record_nested"
    assert types["tags"][1]["items"][1]["name"] == "record_tags"
    assert types["counts"][1] == {"type": "map", "values": "int"}
    defaults = {f["name"]: "default" in f for f in schema["fields"]}
    assert (defaults["id"], defaults["name"]) == (False, True)
    assert f"{schema['namespace']}.{schema['name']}" == "org.apache.flink.avro.generated.record"


def test_types_that_avro_has_not() -> None:
    keyed_by_number = DataType("MAP", key=DataType("INT"), element=DataType("INT"))
    with pytest.raises(FormatError, match="AVRO_TYPE"):
        avro_schema([RowField("m", keyed_by_number)])
