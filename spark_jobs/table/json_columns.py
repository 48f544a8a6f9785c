"""The narrowest safe SQL types of sampled JSON values."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from decimal import Decimal
from typing import Any, Literal, TypeAlias

from spark_jobs.api.text import quoted
from spark_jobs.sql.types.data_types import BIGINT, STRING, DataType, RowField
from spark_jobs.table.columns import Column, TimeUnit, number_unit

Standard: TypeAlias = Literal["SQL", "ISO-8601"]

_SEPARATORS: dict[Standard, str] = {"SQL": " ", "ISO-8601": "T"}
_INSTANT = re.compile(r"(\d{4}-\d\d-\d\d)([ T])(\d\d:\d\d:\d\d)(?:\.(\d{1,9}))?(Z?)", re.ASCII)
_DATE = re.compile(r"\d{4}-\d\d-\d\d", re.ASCII)
_LONG = 2**63
BY_VALUES = "types are what the sampled values allow; the records have no schema"
"""What is said about types that json_columns or csv_columns has found."""
_MOST_DIGITS = 38
_MILLIS, _MICROS = 3, 6


@dataclass(frozen=True, slots=True)
class JsonColumns:
    """Columns in the order of their first appearance, and the text form of their timestamps."""

    columns: tuple[Column, ...]
    standard: Standard


def json_columns(rows: Sequence[dict[str, Any]]) -> JsonColumns:
    """The columns of JSON objects. A table reads timestamps in one text form: the more frequent."""
    found = {standard: _columns(rows, standard) for standard in _SEPARATORS}
    texts = {s: sum(c.unit == "text" for c in columns) for s, columns in found.items()}
    standard: Standard = "ISO-8601" if texts["ISO-8601"] > texts["SQL"] else "SQL"
    return JsonColumns(found[standard], standard)


def csv_columns(rows: Sequence[dict[str, Any]]) -> tuple[Column, ...]:
    """The columns of lines of CSV, which has one text form of timestamps."""
    return _columns(rows, "SQL")


def _columns(rows: Sequence[dict[str, Any]], standard: Standard) -> tuple[Column, ...]:
    names = dict.fromkeys(name for row in rows for name in row)
    return tuple(_column(n, [row.get(n) for row in rows], standard) for n in names)


def _column(name: str, values: Sequence[Any], standard: Standard) -> Column:
    type_, note = _type_of(values, standard)
    present = [value for value in values if value is not None]
    unit: TimeUnit | None = None
    if type_.name in ("TIMESTAMP", "TIMESTAMP_LTZ"):
        unit = "text"
    elif type_ == BIGINT:
        unit = number_unit(name, present)
        note = f"epoch {unit}, by name and values" if unit else note
    return Column(name, type_, note, unit)


def _type_of(values: Iterable[Any], standard: Standard) -> tuple[DataType, str | None]:
    """The type that takes all values, and what it assumes."""
    present = [value for value in values if value is not None]
    if not present:
        return STRING, "NULL or absent in every sampled record"
    kinds = {type(value) for value in present}
    if kinds == {bool}:
        return DataType("BOOLEAN"), None
    if kinds <= {int, Decimal, float} and bool not in kinds:
        return _number(present)
    if kinds == {str}:
        return _text(present, standard), None
    if kinds == {dict}:
        return _struct(present, standard)
    if kinds == {list}:
        element, note = _type_of((item for value in present for item in value), standard)
        return DataType("ARRAY", element=element), note
    return STRING, "values of several JSON types, read as their text"


def _number(values: Sequence[Any]) -> tuple[DataType, str | None]:
    if all(isinstance(value, int) for value in values):
        if all(-_LONG <= value < _LONG for value in values):
            return BIGINT, None
        return DataType("DECIMAL", precision=_MOST_DIGITS, scale=0), "beyond BIGINT"
    scale = max(_scale(value) for value in values)
    note = f"at most {scale} decimals in the sample: DECIMAL(p, {scale}) if it is an exact amount"
    return DataType("DOUBLE"), note


def _scale(value: Any) -> int:
    exponent = value.as_tuple().exponent if isinstance(value, Decimal) else 0
    return max(-exponent, 0) if isinstance(exponent, int) else 0


def _text(values: Sequence[str], standard: Standard) -> DataType:
    instants = [_INSTANT.fullmatch(value) for value in values]
    if all(m and m[2] == _SEPARATORS[standard] and _is_time(m[0]) for m in instants):
        zones = {m[5] for m in instants if m}
        precision = max(len(m[4] or "") for m in instants if m)
        if len(zones) == 1:
            name = "TIMESTAMP_LTZ" if zones == {"Z"} else "TIMESTAMP"
            return DataType(name, precision=_MILLIS if precision <= _MILLIS else _MICROS)
    if all(_DATE.fullmatch(value) and _is_time(value) for value in values):
        return DataType("DATE")
    return STRING


def _is_time(text: str) -> bool:
    try:
        datetime.fromisoformat(text)
    except ValueError:
        return False
    return True


def _struct(values: Sequence[dict[str, Any]], standard: Standard) -> tuple[DataType, str | None]:
    inner = _columns(values, standard)
    if not inner:
        return DataType("MAP", key=STRING, element=STRING), "an empty object in every record"
    notes = [f"{quoted(c.name)}: {c.note}" for c in inner if c.note]
    fields = tuple(RowField(c.name, c.type) for c in inner)
    return DataType("ROW", fields=fields), "; ".join(notes) or None
