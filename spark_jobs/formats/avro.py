"""The Avro schema that Flink would write a row with: the same names, unions and logical types."""

import json
from collections.abc import Iterable
from typing import Any

from spark_jobs.errors import FormatError
from spark_jobs.sql.types import DataType, RowField

ROOT_RECORD = "org.apache.flink.avro.generated.record"
_PRIMITIVES = {
    "BOOLEAN": "boolean",
    "TINYINT": "int",
    "SMALLINT": "int",
    "INT": "int",
    "BIGINT": "long",
    "FLOAT": "float",
    "DOUBLE": "double",
    "STRING": "string",
    "BYTES": "bytes",
}


def avro_schema(fields: Iterable[RowField]) -> str:
    """The schema of a record key or value with these columns.

    >>> avro_schema([RowField("id", DataType("BIGINT", nullable=False))])
    '{"type":"record","name":"record","namespace":"org.apache.flink.avro.generated",\
"fields":[{"name":"id","type":"long"}]}'
    """
    namespace, _, name = ROOT_RECORD.rpartition(".")
    record = {"type": "record", "name": name, "namespace": namespace}
    return json.dumps(
        {**record, "fields": [_field(f, name) for f in fields]}, separators=(",", ":")
    )


def _field(field: RowField, record: str) -> dict[str, Any]:
    described = {"name": field.name, "type": _type(field.type, f"{record}_{field.name}")}
    return {**described, "default": None} if field.type.nullable else described


def _type(data_type: DataType, name: str) -> Any:
    own = _not_null(data_type, name)
    return ["null", own] if data_type.nullable else own


def _not_null(data_type: DataType, name: str) -> Any:
    """`name` is that of the record, if it becomes one: Avro wants each to be different."""
    if data_type.name in _PRIMITIVES:
        return _PRIMITIVES[data_type.name]
    match data_type:
        case DataType(name="DATE"):
            return {"type": "int", "logicalType": "date"}
        case DataType(name="TIME"):
            return {"type": "int", "logicalType": "time-millis"}
        case DataType(name="TIMESTAMP" | "TIMESTAMP_LTZ", precision=precision):
            unit = "millis" if precision is not None and precision <= 3 else "micros"
            return {"type": "long", "logicalType": f"timestamp-{unit}"}
        case DataType(name="DECIMAL", precision=precision, scale=scale):
            size = {"precision": precision, "scale": scale or 0}
            return {"type": "bytes", "logicalType": "decimal", **size}
        case DataType(name="ROW", fields=fields):
            return {"type": "record", "name": name, "fields": [_field(f, name) for f in fields]}
        case DataType(name="ARRAY", element=DataType() as element):
            return {"type": "array", "items": _type(element, name)}
        case DataType(name="MAP", key=DataType(name="STRING"), element=DataType() as value):
            return {"type": "map", "values": _type(value, name)}
    raise FormatError("AVRO_TYPE", f"{data_type} of '{name}' has no Avro type")
