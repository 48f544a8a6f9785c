"""Rows of state as JSON objects, with values in a form that people can read."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from spark_jobs.plan.nodes.plan_json import Json

JsonObject: TypeAlias = dict[str, Any]

_SHOWN = 60


def named(values: Sequence[Json], struct: Mapping[str, Json]) -> dict[str, Json]:
    """The kernel's array of values as an object by column name; `struct` is Spark's JSON schema.

    >>> named([1000], {"fields": [
    ...     {"name": "t", "type": "integer", "metadata": {"sqlType": "TIME(0)"}}]})
    {'t': '00:00:01.000'}
    """
    fields = struct["fields"]
    columns = fields if isinstance(fields, list) else []
    return {
        str(field["name"]): _readable(value, field["type"], field.get("metadata"))
        for value, field in zip(values, columns, strict=True)
        if isinstance(field, dict)
    }


def _readable(value: Json, type_: Json, metadata: Json = None) -> Json:
    """A TIMESTAMP_LTZ gets its zone, a TIME becomes a time of day, a ROW an object."""
    if value is None:
        return None
    if isinstance(metadata, dict) and "sqlType" in metadata and isinstance(value, int):
        return _clock(value)
    if type_ == "timestamp":
        return f"{value}Z"
    if isinstance(type_, dict) and isinstance(value, list):
        if type_["type"] == "struct":
            return named(value, type_)
        return [_readable(item, type_.get("elementType")) for item in value]
    if isinstance(type_, dict) and isinstance(value, dict):
        return {k: _readable(item, type_.get("valueType")) for k, item in value.items()}
    return value


def _clock(millis: int) -> str:
    seconds, milli = divmod(millis, 1000)
    return f"{seconds // 3600:02}:{seconds // 60 % 60:02}:{seconds % 60:02}.{milli:03}"


def time_text(ms: int) -> str:
    """Epoch milliseconds as ISO 8601; a number where Python's calendar ends.

    >>> time_text(1_704_110_400_000)
    '2024-01-01T12:00:00.000'
    """
    try:
        at = datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return str(ms)
    return at.isoformat(timespec="milliseconds")


def cell_text(value: Json, shown: int = _SHOWN) -> str:
    """A value as a table cell: ambiguous text is quoted, long text is cut.

    >>> [cell_text(v) for v in (None, "NULL", "a b", "", 1, True)]
    ['NULL', '"NULL"', 'a b', '""', '1', 'true']
    """
    if value is None:
        return "NULL"
    plain = isinstance(value, str) and value.isprintable() and value.strip() == value
    text = str(value) if plain and value not in ("", "NULL") else json.dumps(value)
    return text if len(text) <= shown else text[:shown] + "…"
