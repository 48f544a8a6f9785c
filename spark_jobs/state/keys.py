"""Parses a join key typed by a person into what the kernel takes: a JSON array of values."""

import base64
import json
import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Context, Decimal, InvalidOperation
from typing import NoReturn

from spark_jobs.plan.nodes.plan_json import Json
from spark_jobs.sql.types.data_types import MAX_DECIMAL, SPARK_NAMES

_BITS = {"byte": 8, "short": 16, "integer": 32, "long": 64}
_SQL_NAMES = {spark: sql for sql, spark in reversed(SPARK_NAMES.items())}
_INTEGER = re.compile(r"[+-]?[0-9]+")
_CLOCK = re.compile(r"(\d\d):(\d\d)(?::(\d\d)(?:\.(\d{1,3}))?)?")


@dataclass(frozen=True, slots=True)
class KeyColumn:
    """A column of a key. `spark_type` is Spark's JSON type; a TIME is kept as an integer."""

    name: str
    spark_type: Json
    is_time: bool = False

    def __str__(self) -> str:
        return f"{self.name} {self.sql_type()}"

    def sql_type(self) -> str:
        if self.is_time:
            return "TIME"
        if not isinstance(self.spark_type, str):
            return "ROW, ARRAY or MAP"
        return _SQL_NAMES.get(self.spark_type, self.spark_type.upper())


def key_columns(struct: Mapping[str, Json]) -> tuple[KeyColumn, ...]:
    """The key columns in Spark's JSON schema of the key."""
    found: list[KeyColumn] = []
    fields = struct["fields"]
    for field in fields if isinstance(fields, list) else ():
        if isinstance(field, dict):
            sql_type = field.get("metadata")
            named = str(sql_type.get("sqlType", "")) if isinstance(sql_type, dict) else ""
            is_time = named.partition("(")[0] == "TIME"
            found.append(KeyColumn(str(field["name"]), field["type"], is_time))
    return tuple(found)


def parse_key(text: str, columns: Sequence[KeyColumn]) -> list[Json]:
    """Raises ValueError with the reason if the text does not fit the columns.

    >>> parse_key("42", [KeyColumn("id", "integer")])
    [42]
    >>> parse_key('{"a": 1, "b": "x"}', [KeyColumn("b", "string"), KeyColumn("a", "long")])
    ['x', 1]
    """
    values = _split(text, columns)
    return [_value(value, column) for value, column in zip(values, columns, strict=True)]


def _split(text: str, columns: Sequence[KeyColumn]) -> list[Json]:
    """Split the text into values by column; text that is no JSON is the value of the one column."""
    try:
        given: Json = json.loads(text, parse_float=str, parse_constant=str)
    except ValueError:
        given = text
    if isinstance(given, dict):
        names = [column.name for column in columns]
        if sorted(given) != sorted(names):
            raise ValueError(f"it has the columns {', '.join(given) or 'none'}")
        return [given[name] for name in names]
    if not isinstance(given, list):
        is_text = isinstance(given, str) or given is None
        given = [given if is_text or isinstance(given, bool) else text.strip()]
    if len(given) != len(columns):
        raise ValueError(f"it has {len(given)} of {len(columns)} values")
    return given


def _value(given: Json, column: KeyColumn) -> Json:
    if given is None:
        return None
    try:
        if column.is_time:
            return _millis_of_day(str(given))
        if isinstance(given, dict | list) or not isinstance(column.spark_type, str):
            raise ValueError
        return _scalar(given, column.spark_type)
    except (ValueError, ArithmeticError) as cause:
        raise ValueError(f"{json.dumps(given)} is no {column.sql_type()}") from cause


def _scalar(given: str | float | bool, spark_type: str) -> Json:
    match spark_type:
        case "string":
            return given if isinstance(given, str) else json.dumps(given)
        case "boolean":
            truth = {"true": True, "false": False}.get(str(given).lower())
            return _reject() if truth is None else truth
        case "byte" | "short" | "integer" | "long":
            number = int(given) if _INTEGER.fullmatch(str(given)) else _reject()
            limit = 1 << (_BITS[spark_type] - 1)
            return number if -limit <= number < limit else _reject()
        case "float" | "double":
            return fraction if math.isfinite(fraction := float(given)) else _reject()
        case "date":
            return date.fromisoformat(str(given)).isoformat()
        case "timestamp" | "timestamp_ntz":
            return _timestamp(str(given), has_zone=spark_type == "timestamp")
        case "binary":
            return base64.b64encode(base64.b64decode(str(given), validate=True)).decode()
        case _ if spark_type.startswith("decimal("):
            return _decimal(str(given), spark_type)
        case _:
            return _reject()


def _reject() -> NoReturn:
    raise ValueError


def _timestamp(text: str, *, has_zone: bool) -> str:
    """Only a TIMESTAMP_LTZ may have a UTC offset; without one it is taken as UTC."""
    at = datetime.fromisoformat(text)
    if at.tzinfo is not None:
        at = at.astimezone(UTC).replace(tzinfo=None) if has_zone else datetime.max
    if at == datetime.max:
        raise ValueError
    return at.isoformat(timespec="microseconds")


def _decimal(text: str, spark_type: str) -> str:
    precision, scale = (int(n) for n in spark_type[len("decimal(") : -1].split(","))
    try:
        number = Decimal(text)
        fixed = number.quantize(Decimal(1).scaleb(-scale), context=Context(prec=2 * MAX_DECIMAL))
    except InvalidOperation as cause:
        raise ValueError from cause
    if fixed != number or len(fixed.as_tuple().digits) > precision:
        raise ValueError
    return format(fixed, "f")


def _millis_of_day(text: str) -> int:
    match = _CLOCK.fullmatch(text)
    if match is None:
        raise ValueError
    hours, minutes, seconds = (int(part or 0) for part in match.groups()[:3])
    if hours > 23 or minutes > 59 or seconds > 59:
        raise ValueError
    return (hours * 3600 + minutes * 60 + seconds) * 1000 + int(f"{match[4] or '':0<3}")
