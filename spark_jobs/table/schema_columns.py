"""SQL types of Kafka Connect's schemas and of Avro schemas, as docs/formats.md maps them."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from spark_jobs.sql.types.data_types import BIGINT, BYTES, INT, STRING, DataType, RowField
from spark_jobs.table.columns import Column, TimeUnit

_DATE, _TIME = DataType("DATE"), DataType("TIME", precision=3)
_MILLIS, _MICROS = DataType("TIMESTAMP", precision=3), DataType("TIMESTAMP", precision=6)
_LTZ = DataType("TIMESTAMP_LTZ", precision=6)
_MOST_DIGITS = 38
_CONNECT, _DEBEZIUM = "org.apache.kafka.connect.data.", "io.debezium."

_INTEGERS = {"int8": DataType("TINYINT"), "int16": DataType("SMALLINT")}
_PRIMITIVES = {
    **_INTEGERS,
    "int32": INT,
    "int64": BIGINT,
    "int": INT,
    "long": BIGINT,
    "float": DataType("FLOAT"),
    "float32": DataType("FLOAT"),
    "float64": DataType("DOUBLE"),
    "double": DataType("DOUBLE"),
    "boolean": DataType("BOOLEAN"),
    "string": STRING,
    "bytes": BYTES,
    "enum": STRING,
    "fixed": BYTES,
}
# by the name of Kafka Connect or Debezium: the type, and what its numbers count
_NAMED: dict[str, tuple[DataType, TimeUnit | None]] = {
    f"{_CONNECT}Date": (_DATE, None),
    f"{_CONNECT}Time": (_TIME, None),
    f"{_CONNECT}Timestamp": (_MILLIS, "millis"),
    f"{_DEBEZIUM}time.Date": (_DATE, None),
    f"{_DEBEZIUM}time.Time": (_TIME, None),
    f"{_DEBEZIUM}time.MicroTime": (_TIME, None),
    f"{_DEBEZIUM}time.NanoTime": (_TIME, None),
    f"{_DEBEZIUM}time.ZonedTime": (_TIME, None),
    f"{_DEBEZIUM}time.Timestamp": (_MILLIS, "millis"),
    f"{_DEBEZIUM}time.MicroTimestamp": (_MICROS, "micros"),
    f"{_DEBEZIUM}time.NanoTimestamp": (_MICROS, "nanos"),
    f"{_DEBEZIUM}time.ZonedTimestamp": (_LTZ, "text"),
    f"{_DEBEZIUM}data.VariableScaleDecimal": (STRING, None),
}
_LOGICAL: dict[str, tuple[DataType, TimeUnit | None]] = {
    "date": (_DATE, None),
    "time-millis": (_TIME, None),
    "time-micros": (_TIME, None),
    "timestamp-millis": (_MILLIS, "millis"),
    "timestamp-micros": (_MICROS, "micros"),
    "local-timestamp-millis": (_MILLIS, "millis"),
    "local-timestamp-micros": (_MICROS, "micros"),
    "uuid": (STRING, None),
}


@dataclass(frozen=True, slots=True)
class _Typed:
    type: DataType
    note: str | None = None
    unit: TimeUnit | None = None


class RecursiveSchemaError(ValueError):
    """A type that contains itself, which SQL cannot name."""


def connect_columns(schema: Mapping[str, Any]) -> tuple[Column, ...]:
    """The columns of a struct of Kafka Connect's JSON schemas."""
    return tuple(_named_column(f["field"], _connect_type(f)) for f in schema.get("fields", ()))


def _connect_type(schema: Mapping[str, Any]) -> _Typed:
    parameters = schema.get("parameters") or {}
    if named := _by_name(schema.get("name"), parameters):
        return named
    match schema["type"]:
        case "struct":
            fields = tuple(
                RowField(f["field"], _connect_type(f).type) for f in schema.get("fields", ())
            )
            return _Typed(DataType("ROW", fields=fields))
        case "array":
            return _Typed(DataType("ARRAY", element=_connect_type(schema["items"]).type))
        case "map":
            return _Typed(DataType("MAP", key=STRING, element=_connect_type(schema["values"]).type))
        case str() as name:
            return _Typed(_PRIMITIVES.get(name, STRING))
        case _:
            return _Typed(STRING, "a type of Kafka Connect that is unknown")


def avro_columns(schema: Any) -> tuple[Column, ...]:
    """The columns of an Avro record schema as parsed JSON; fields of recursive types are left out.

    Raises ValueError if it is no record.
    """
    names = _named_types(schema)
    record = names.get(schema, schema) if isinstance(schema, str) else schema
    if isinstance(record, list):
        record = _branch(record)[0]
    if not isinstance(record, dict) or record.get("type") != "record":
        raise ValueError("the schema is no record")
    return tuple(_avro_fields(record, names, frozenset()))


def avro_field(schema: Any, name: str) -> Any:
    """The schema of a record's field, without NULL and with the named type that it refers to.

    Debezium defines the row's type in `before` and names it in `after`. Raises KeyError.
    """
    names = _named_types(schema)
    record = _branch(schema)[0] if isinstance(schema, list) else schema
    found = {f["name"]: f["type"] for f in record["fields"]}[name]
    inner = _branch(found)[0] if isinstance(found, list) else found
    return names.get(inner, inner) if isinstance(inner, str) else inner


def _avro_fields(
    record: Mapping[str, Any], names: Mapping[str, Any], above: frozenset[str]
) -> list[Column]:
    found = []
    inside = above | {record["name"], _full_name(record, "")}
    for field in record["fields"]:
        try:
            found.append(_named_column(field["name"], _avro_type(field["type"], names, inside)))
        except RecursiveSchemaError:
            continue
    return found


def _avro_type(schema: Any, names: Mapping[str, Any], above: frozenset[str]) -> _Typed:
    if isinstance(schema, list):
        inner, others = _branch(schema)
        typed = _avro_type(inner, names, above)
        note = f"one of {others + 1} types in the schema" if others else typed.note
        return _Typed(typed.type, note, typed.unit)
    if isinstance(schema, str):
        if schema in _PRIMITIVES:
            return _Typed(_PRIMITIVES[schema])
        if schema == "null" or schema not in names:
            return _Typed(STRING, f"'{schema}' in the schema")
        if schema in above:
            raise RecursiveSchemaError(schema)
        return _avro_type(names[schema], names, above)
    if named := _by_name(schema.get("connect.name"), _parameters(schema)):
        return named
    if schema.get("logicalType") == "decimal":
        return _decimal(schema.get("precision"), schema.get("scale", 0))
    if logical := _LOGICAL.get(schema.get("logicalType", "")):
        return _Typed(logical[0], None, logical[1])
    return _avro_shape(schema, names, above)


def _avro_shape(schema: Any, names: Mapping[str, Any], above: frozenset[str]) -> _Typed:
    match schema["type"]:
        case "record":
            if schema["name"] in above:
                raise RecursiveSchemaError(schema["name"])
            inner = _avro_fields(schema, names, above)
            return _Typed(DataType("ROW", fields=tuple(RowField(c.name, c.type) for c in inner)))
        case "array":
            return _Typed(DataType("ARRAY", element=_avro_type(schema["items"], names, above).type))
        case "map":
            element = _avro_type(schema["values"], names, above).type
            return _Typed(DataType("MAP", key=STRING, element=element))
        case str() as name if schema.get("connect.type") in _INTEGERS:
            return _Typed(_INTEGERS.get(schema["connect.type"], _PRIMITIVES.get(name, STRING)))
        case nested:
            return _avro_type(nested, names, above)


def _parameters(schema: Mapping[str, Any]) -> Mapping[str, Any]:
    """Avro's own precision beside the parameters of Kafka Connect."""
    given = {"connect.decimal.precision": schema["precision"]} if "precision" in schema else {}
    return {**given, **(schema.get("connect.parameters") or {})}


def _by_name(name: str | None, parameters: Mapping[str, Any]) -> _Typed | None:
    if name == f"{_CONNECT}Decimal":
        return _decimal(parameters.get("connect.decimal.precision"), parameters.get("scale", 0))
    if name in _NAMED:
        type_, unit = _NAMED[name]
        note = "decimals of a scale that varies: the text has all digits" if unit is None else None
        return _Typed(type_, note if type_ == STRING else None, unit)
    return None


def _decimal(precision: Any, scale: Any) -> _Typed:
    """DECIMAL; a value of more than 38 digits would be a bad record, so that it is a STRING."""
    digits, decimals = int(precision or _MOST_DIGITS), int(scale)
    if digits > _MOST_DIGITS and precision is not None:
        type_ = DataType("DECIMAL", precision=_MOST_DIGITS, scale=min(decimals, _MOST_DIGITS))
        return _Typed(type_, f"{digits} digits in the schema; STRING takes all of them")
    note = None if precision else "the schema has no precision"
    return _Typed(DataType("DECIMAL", precision=digits, scale=decimals), note)


def _branch(union: list[Any]) -> tuple[Any, int]:
    """The first branch that is not NULL, and how many others there are."""
    branches = [branch for branch in union if branch != "null"]
    return (branches[0], len(branches) - 1) if branches else ("null", 0)


def _named_types(schema: Any, space: str = "") -> dict[str, Any]:
    """The definitions inside a schema by their full and their short names."""
    found: dict[str, Any] = {}
    match schema:
        case list():
            for branch in schema:
                found |= _named_types(branch, space)
        case dict():
            if "name" in schema and schema.get("type") in ("record", "enum", "fixed"):
                full = _full_name(schema, space)
                space = full.rpartition(".")[0]
                found |= {full: schema, schema["name"]: schema}
            inner = [schema.get("type"), schema.get("items"), schema.get("values")]
            for part in (*inner, *(f["type"] for f in schema.get("fields", ()))):
                found |= _named_types(part, space)
        case _:
            pass
    return found


def _full_name(schema: Mapping[str, Any], space: str) -> str:
    name = str(schema["name"])
    inherited = schema.get("namespace", space)
    return name if "." in name or not inherited else f"{inherited}.{name}"


def _named_column(name: str, typed: _Typed) -> Column:
    return Column(name, typed.type, typed.note, typed.unit)
