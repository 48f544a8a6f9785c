"""The Avro schema that Flink would write a row with: the same names, unions and logical types."""

import json
from collections.abc import Callable, Iterable
from typing import Any, TypeAlias

from spark_jobs.errors import FormatError
from spark_jobs.sql.types.data_types import STRING, DataType, RowField

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
_MILLIS = 3

_Timestamps: TypeAlias = Callable[[DataType, str], str]
"""The logical type of a TIMESTAMP or TIMESTAMP_LTZ, given the name of its column."""


def registered(data_type: DataType, name: str) -> str:
    """Avro with a registry: Flink writes milliseconds only, rejoin microseconds too."""
    return f"timestamp-{_unit(data_type)}"


def legacy(data_type: DataType, name: str) -> str:
    """Plain Avro by Flink's default mapping."""
    if data_type.name == "TIMESTAMP_LTZ":
        hint = "set 'avro.timestamp_mapping.legacy' = 'false', which has one"
        raise FormatError("AVRO_TYPE", f"{data_type} of '{name}' has no legacy Avro type", hint)
    return f"timestamp-{_exact(data_type, name)}"


def correct(data_type: DataType, name: str) -> str:
    """Plain Avro by the mapping that Flink calls correct."""
    local = "" if data_type.name == "TIMESTAMP_LTZ" else "local-"
    return f"{local}timestamp-{_exact(data_type, name)}"


def _unit(data_type: DataType) -> str:
    precision = data_type.precision
    return "millis" if precision is not None and precision <= _MILLIS else "micros"


def _exact(data_type: DataType, name: str) -> str:
    if (unit := _unit(data_type)) == "micros":
        raise FormatError(
            "AVRO_TYPE",
            f"{data_type} of '{name}': Flink writes milliseconds into plain Avro, whatever the"
            " precision",
            f"declare '{name}' with precision 3",
        )
    return unit


def avro_schema(fields: Iterable[RowField], timestamps: _Timestamps = registered) -> str:
    """The schema of a record key or value with these columns.

    >>> avro_schema([RowField("id", DataType("BIGINT", nullable=False))])
    '{"type":"record","name":"record","namespace":"org.apache.flink.avro.generated",\
"fields":[{"name":"id","type":"long"}]}'
    """
    return _text(_root(fields, timestamps))


def envelope_schema(fields: Iterable[RowField]) -> str:
    """The schema of Debezium's envelope of such a row, nullable as Flink has it."""
    row = DataType("ROW", fields=tuple(fields))
    envelope = (RowField("before", row), RowField("after", row), RowField("op", STRING))
    return _text(["null", _root(envelope, registered)])


def _text(schema: Any) -> str:
    return json.dumps(schema, separators=(",", ":"))


def _root(fields: Iterable[RowField], timestamps: _Timestamps) -> dict[str, Any]:
    namespace, _, name = ROOT_RECORD.rpartition(".")
    record = {"type": "record", "name": name, "namespace": namespace}
    return {**record, "fields": [_field(f, name, timestamps) for f in fields]}


def _field(field: RowField, record: str, timestamps: _Timestamps) -> dict[str, Any]:
    own = _type(field.type, f"{record}_{field.name}", timestamps)
    described = {"name": field.name, "type": own}
    return {**described, "default": None} if field.type.nullable else described


def _type(data_type: DataType, name: str, timestamps: _Timestamps) -> Any:
    own = _not_null(data_type, name, timestamps)
    return ["null", own] if data_type.nullable else own


def _not_null(data_type: DataType, name: str, timestamps: _Timestamps) -> Any:
    """`name` is for a type that becomes a record: Avro needs a different one for each."""
    if data_type.name in _PRIMITIVES:
        return _PRIMITIVES[data_type.name]
    match data_type:
        case DataType(name="DATE"):
            return {"type": "int", "logicalType": "date"}
        case DataType(name="TIME"):
            return {"type": "int", "logicalType": "time-millis"}
        case DataType(name="TIMESTAMP" | "TIMESTAMP_LTZ"):
            column = name.partition("_")[2]
            return {"type": "long", "logicalType": timestamps(data_type, column)}
        case DataType(name="DECIMAL", precision=precision, scale=scale):
            size = {"precision": precision, "scale": scale or 0}
            return {"type": "bytes", "logicalType": "decimal", **size}
        case DataType(name="ROW", fields=fields):
            inner = [_field(f, name, timestamps) for f in fields]
            return {"type": "record", "name": name, "fields": inner}
        case DataType(name="ARRAY", element=DataType() as element):
            return {"type": "array", "items": _type(element, name, timestamps)}
        case DataType(name="MAP", key=DataType(name="STRING"), element=DataType() as value):
            return {"type": "map", "values": _type(value, name, timestamps)}
    raise FormatError("AVRO_TYPE", f"{data_type} of '{name}' has no Avro type")
