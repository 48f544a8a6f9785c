"""Converts values of scenario files, JSON records and the kernel to one comparable form."""

import base64
import json
from collections.abc import Callable, Mapping
from datetime import UTC, date, datetime, time, timedelta
from decimal import Decimal
from typing import Any, TypeAlias

from spark_jobs.sql.types.data_types import DataType

Value: TypeAlias = Any  # hashable; None, bool, int, float, Decimal, str, bytes, datetime, tuple
Row: TypeAlias = tuple[Value, ...]

_EPOCH = datetime(1970, 1, 1)


def canonical(value: Any, data_type: DataType) -> Value:
    """The comparable form of a value from a scenario file, from JSON or from the kernel's JSON."""
    if value is None:
        return None
    name = data_type.name
    if name in _SCALARS:
        return _SCALARS[name](value)
    if name == "ROW":
        return tuple(
            canonical(v, f.type)
            for v, f in zip(_fields(value, data_type), data_type.fields, strict=True)
        )
    if name == "ARRAY":
        return tuple(canonical(v, _part(data_type.element)) for v in value)
    if name == "MAP":
        key, element = _part(data_type.key), _part(data_type.element)
        entries = ((canonical(k, key), canonical(v, element)) for k, v in value.items())
        return tuple(sorted(entries, key=lambda entry: repr(entry[0])))
    raise ValueError(f"scenarios have no values of type {name}")


def to_json(value: Value, data_type: DataType, iso: bool = False) -> Any:
    """A canonical value as Flink's `json` format writes it (`iso`: ISO-8601 timestamps)."""
    if value is None:
        return None
    match data_type.name:
        case "TIMESTAMP":
            return _timestamp_text(value, iso)
        case "TIMESTAMP_LTZ":
            return _timestamp_text(value, iso) + "Z"
        case "DATE" | "TIME":
            return value.isoformat()
        case "BYTES":
            return base64.b64encode(value).decode()
        case "ROW":
            parts = zip(data_type.fields, value, strict=True)
            return {f.name: to_json(v, f.type, iso) for f, v in parts}
        case "ARRAY":
            return [to_json(v, _part(data_type.element), iso) for v in value]
        case "MAP":
            return {k: to_json(v, _part(data_type.element), iso) for k, v in value}
        case _:
            return value


def json_text(value: Any) -> str:
    """JSON that keeps all digits of a Decimal; the module `json` would write the nearest double.

    >>> json_text({"price": Decimal("11.1100"), "tags": ["a", None]})
    '{"price": 11.1100, "tags": ["a", null]}'
    """
    match value:
        case Decimal():
            return f"{value:f}"
        case dict():
            return (
                "{" + ", ".join(f"{json.dumps(k)}: {json_text(v)}" for k, v in value.items()) + "}"
            )
        case list():
            return "[" + ", ".join(json_text(v) for v in value) + "]"
        case _:
            return json.dumps(value)


def literal_text(value: Value, data_type: DataType) -> str:
    """A canonical value as a scenario file writes it."""
    if value is None:
        return "NULL"
    match data_type.name:
        case "BOOLEAN":
            return "TRUE" if value else "FALSE"
        case "BYTES":
            return f"x'{value.hex()}'"
        case "DECIMAL":
            return f"{value:f}"
        case "ROW":
            parts = zip(data_type.fields, value, strict=True)
            return "(" + ", ".join(literal_text(v, f.type) for f, v in parts) + ")"
        case "ARRAY":
            return "[" + ", ".join(literal_text(v, _part(data_type.element)) for v in value) + "]"
        case "MAP":
            key, element = _part(data_type.key), _part(data_type.element)
            entries = (f"{literal_text(k, key)}: {literal_text(v, element)}" for k, v in value)
            return "{" + ", ".join(entries) + "}"
        case "TIMESTAMP" | "TIMESTAMP_LTZ":
            return f"'{_timestamp_text(value, iso=False)}'"
        case "STRING" | "DATE" | "TIME":
            return "'" + str(value).replace("'", "''") + "'"
        case _:
            return str(value)


def epoch_ms(value: datetime) -> int:
    return (value - _EPOCH) // timedelta(milliseconds=1)


def from_epoch_ms(ms: int) -> datetime:
    return _EPOCH + timedelta(milliseconds=ms)


def _timestamp_text(value: datetime, iso: bool) -> str:
    return value.isoformat(
        "T" if iso else " ", "milliseconds" if value.microsecond % 1000 == 0 else "microseconds"
    )


def _timestamp(value: Any) -> datetime:
    if isinstance(value, datetime):
        return value
    if isinstance(value, int):
        return from_epoch_ms(value)
    stamp = datetime.fromisoformat(value.replace("Z", "+00:00"))
    return stamp.astimezone(UTC).replace(tzinfo=None) if stamp.tzinfo else stamp


def _time(value: Any) -> time:
    if isinstance(value, int):
        return (_EPOCH + timedelta(milliseconds=value)).time()
    return time.fromisoformat(value)


def _bytes(value: Any) -> bytes:
    return value if isinstance(value, bytes) else base64.b64decode(value)


def _decimal(value: Any) -> Decimal:
    """A Decimal without trailing zeros, because writers differ in how many they write."""
    return Decimal(repr(value) if isinstance(value, float) else value).normalize()


def _fields(value: Any, data_type: DataType) -> list[Any]:
    if isinstance(value, Mapping):
        return [value.get(f.name) for f in data_type.fields]
    return list(value)


def _part(data_type: DataType | None) -> DataType:
    if data_type is None:
        raise ValueError("a collection type without the type of its elements")
    return data_type


_SCALARS: dict[str, Callable[[Any], Value]] = {
    "STRING": str,
    "BOOLEAN": bool,
    "TINYINT": int,
    "SMALLINT": int,
    "INT": int,
    "BIGINT": int,
    "FLOAT": float,
    "DOUBLE": float,
    "DECIMAL": _decimal,
    "DATE": lambda v: v if isinstance(v, date) else date.fromisoformat(v),
    "TIME": _time,
    "TIMESTAMP": _timestamp,
    "TIMESTAMP_LTZ": _timestamp,
    "BYTES": _bytes,
}
