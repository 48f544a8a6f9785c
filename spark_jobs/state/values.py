"""Values of rows in state, by column name, as text that says what their types hide."""

import json
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import Any, TypeAlias

from spark_jobs.plan.nodes.plan_json import Json

Told: TypeAlias = dict[str, Any]
"""What is told to a program, as one JSON object."""

_SHOWN = 60


def named(values: Sequence[Json], struct: Mapping[str, Json]) -> dict[str, Json]:
    """The kernel's array of a row's values as an object; `struct` is Spark's JSON schema.

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
    """TIMESTAMP_LTZ ends with its zone, TIME is a time of day, a ROW has names."""
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
    """Milliseconds as a time; what lies outside the calendar stays a number.

    >>> time_text(1_704_110_400_000)
    '2024-01-01T12:00:00.000'
    """
    try:
        at = datetime.fromtimestamp(ms / 1000, UTC).replace(tzinfo=None)
    except (OverflowError, ValueError, OSError):
        return str(ms)
    return at.isoformat(timespec="milliseconds")


def cell_text(value: Json, shown: int = _SHOWN) -> str:
    """A value in a table: text that could be taken for something else is quoted, long text is cut.

    >>> [cell_text(v) for v in (None, "NULL", "a b", "", 1, True)]
    ['NULL', '"NULL"', 'a b', '""', '1', 'true']
    """
    if value is None:
        return "NULL"
    plain = isinstance(value, str) and value.isprintable() and value.strip() == value
    text = str(value) if plain and value not in ("", "NULL") else json.dumps(value)
    return text if len(text) <= shown else text[:shown] + "…"
