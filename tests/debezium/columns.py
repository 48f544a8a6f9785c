"""Columns of the recorded tables: PostgreSQL's types, what they are declared as, what they hold.

Written from the type table of fixtures/debezium/README.md and from sql/01_schema.sql; `value` says
what a column must hold after reading, as docs/scenarios.md writes values.
"""

import base64
import math
import re
from datetime import date, datetime, timedelta
from decimal import Decimal, localcontext
from functools import cache
from typing import Any

from tests.debezium.recording import FIXTURES

PLACEHOLDER = "__debezium_unavailable_value"
# added or dropped while the run was recorded
_ALTERED = {
    "orders": {"channel": "text"},
    "orders_full": {"qty": "integer"},
    "product_changelog": {"price": "numeric(14,4)"},
}
INFINITE = (
    9223372036825200000, -9223372036832400000, 9223372036825200, -9223372036832400,
    -2147472692, -2147472691, "infinity", "-infinity",
)  # fmt: skip


class Infinite(Exception):
    """An infinity of the database, which no column of a time can hold."""


class OutOfRange(Exception):
    """24:00:00."""


@cache
def types_of(table: str) -> dict[str, str]:
    """PostgreSQL's types by column."""
    text = (FIXTURES / "sql" / "01_schema.sql").read_text()
    base = table.removesuffix("_full")
    found = re.search(rf"CREATE TABLE (?:{table}|{base}) \((.*?)\);", text, re.DOTALL)
    assert found is not None
    columns: dict[str, str] = {}
    for part in re.split(r",(?![^(]*\))", found[1]):
        words = part.split()
        if words[0] != "PRIMARY":
            name = words[0].strip('"')
            kept = " ".join(words[1:])
            columns[name] = re.split(r" PRIMARY| NOT NULL| DEFAULT", kept)[0].strip()
    return columns | _ALTERED.get(table, {})


KEYS = {
    "orders": ["order_id"], "orders_full": ["order_id"], "product_changelog": ["product_id"],
    "product_changelog_full": ["product_id"], "wide": ["id"], "wide_full": ["id"],
    "order_items": ["order_id", "line_no"], "special": ["id"], "nokey_full": [],
}  # fmt: skip

_SPARK = {
    "smallint": "short", "integer": "integer", "bigint": "long", "real": "float",
    "double precision": "double", "boolean": "boolean", "bytea": "binary", "date": "date",
    "time": "TIME", "time(3)": "TIME", "timestamp": "TIMESTAMP(6)", "timestamp(3)": "TIMESTAMP(3)",
    "timestamptz": "timestamp", "interval": "long", "numeric": "decimal(38,10)",
    "money": "decimal(20,2)", "bit(1)": "boolean", "bit(12)": "binary",
}  # fmt: skip
_POINT = {
    "type": "struct",
    "fields": [
        {"name": n, "type": t, "nullable": True, "metadata": {}}
        for n, t in (("x", "double"), ("y", "double"), ("wkb", "binary"), ("srid", "integer"))
    ],
}


def declared(type_: str, has_schema: bool) -> Any:
    """The column's type; of milliseconds without a schema only the number can be had."""
    if type_.endswith("[]"):
        element = declared(type_.removesuffix("[]"), has_schema)
        return {"type": "array", "elementType": element, "containsNull": True}
    if not has_schema and type_ in ("time(3)", "timestamp(3)"):
        return "long"
    if not has_schema and type_ == "bit(12)":
        return "binary"
    if type_.startswith("numeric("):
        return "decimal" + type_.removeprefix("numeric")
    return _POINT if type_ == "point" else _SPARK.get(type_, "string")


def value(type_: str, raw: Any, has_schema: bool) -> Any:
    """What a column of this type holds for what the record says."""
    if raw is None:
        return None
    if type_.endswith("[]"):
        return [value(type_.removesuffix("[]"), r, has_schema) for r in raw]
    kind = declared(type_, has_schema)
    if kind in _TIMES:
        return _time_value(type_, raw)
    if kind == "binary":
        return base64.b64encode(_bytes(raw)).decode()
    if kind is _POINT:
        wkb = raw["wkb"]
        text = None if wkb is None else base64.b64encode(_bytes(wkb)).decode()
        return [raw["x"], raw["y"], text, raw["srid"]]
    if kind in ("float", "double"):
        return _special(float(raw))
    if isinstance(kind, str) and kind.startswith("decimal"):
        return _decimal(raw, scale=int(kind.rpartition(",")[2].rstrip(")")))
    return raw


_TIMES = ("date", "timestamp", "TIMESTAMP(6)", "TIMESTAMP(3)", "TIME")


def _time_value(type_: str, raw: Any) -> Any:
    if raw in INFINITE:
        raise Infinite
    match type_:
        case "date":
            return _date(raw)
        case "time" | "time(3)":
            return _time(raw // 1000 if type_ == "time" else raw)
        case "timestamptz":
            return _zoned(raw)
        case _:
            return _instant(raw * (1 if type_ == "timestamp" else 1000))


def _special(number: float) -> float | str:
    """Numbers that JSON has not come as texts."""
    if math.isnan(number):
        return "NaN"
    return number if math.isfinite(number) else "Infinity" if number > 0 else "-Infinity"


def is_placeholder(type_: str, raw: Any) -> bool:
    if type_ == "bytea" and raw is not None:
        return _bytes(raw) == PLACEHOLDER.encode()
    return raw in (PLACEHOLDER, [PLACEHOLDER])


def _bytes(raw: Any) -> bytes:
    return base64.b64decode(raw) if isinstance(raw, str) else bytes(raw)


def _decimal(raw: Any, scale: int) -> str:
    unscaled, given = (raw["value"], raw["scale"]) if isinstance(raw, dict) else (raw, scale)
    digits = int.from_bytes(_bytes(unscaled), "big", signed=True)
    with localcontext(prec=100):
        return f"{Decimal(digits).scaleb(-given):.{scale}f}"


def _time(millis: int) -> int:
    if millis >= 86_400_000:
        raise OutOfRange
    return millis


def _date(days: int) -> str:
    if days < -719162:
        # before the year 1: Python has none; the calendar repeats after 400 years
        later = date(1970, 1, 1) + timedelta(days + 146097 * 5)
        return f"{_year(later.year - 2000)}-{later:%m-%d}"
    return (date(1970, 1, 1) + timedelta(days)).isoformat()


def _instant(micros: int) -> str:
    days, of_day = divmod(micros, 86_400_000_000)
    time = (datetime(2000, 1, 1) + timedelta(microseconds=of_day)).time()
    digits = "milliseconds" if micros % 1000 == 0 else "microseconds"
    return f"{_date(days)}T{time.isoformat(digits)}"


def _zoned(text: str) -> str:
    """Debezium writes the instant in UTC; trailing zeros of a fraction beyond milliseconds go."""
    whole, _, fraction = text.removesuffix("Z").partition(".")
    fraction = (fraction + "000000")[:6]
    return f"{whole}.{fraction[:3] if fraction.endswith('000') else fraction}"


def _year(year: int) -> str:
    return f"-{-year:04d}" if year < 0 else f"{year:04d}"
