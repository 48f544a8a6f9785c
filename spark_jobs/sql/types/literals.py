"""Constants: their types, their normal text, and intervals as numbers."""

import re
from datetime import date, datetime, time
from decimal import ROUND_HALF_UP, Decimal, InvalidOperation
from math import isinf

from spark_jobs.sql.types import data_types
from spark_jobs.sql.types.data_types import DataType, with_nullable
from spark_jobs.sql.types.expr import Literal

_MS = {"WEEK": 604_800_000, "DAY": 86_400_000, "HOUR": 3_600_000, "MINUTE": 60_000, "SECOND": 1_000}
_MONTHS = {"YEAR": 12, "QUARTER": 3, "MONTH": 1}
_FINER = ("DAY", "HOUR", "MINUTE", "SECOND")
_TIMESTAMP = re.compile(r"(\d{4}-\d{1,2}-\d{1,2})(?:[ T](\d{1,2}:\d{2}:\d{2})(?:\.(\d{1,9}))?)?")
_TIME = re.compile(r"(\d{1,2}:\d{2}:\d{2})(?:\.(\d{1,9}))?")


class LiteralError(Exception):
    """A constant that is not what it is written as."""


def number(text: str) -> Literal:
    """A number, with its sign: INT, BIGINT or DECIMAL by its digits, DOUBLE with an exponent.

    >>> number("12.50").type.sql(), number("0.5").type.sql(), number(".5").type.sql()
    ('DECIMAL(4, 2) NOT NULL', 'DECIMAL(2, 1) NOT NULL', 'DECIMAL(1, 1) NOT NULL')
    """
    if "e" in text.lower():
        return _double(text)
    if "." in text.rstrip("."):
        return _decimal(text)
    value = int(text.rstrip("."))
    for type_ in (data_types.INT, data_types.BIGINT):
        bound = 2 ** (_BITS[type_.name] - 1)
        if -bound <= value < bound:
            return Literal(value, _not_null(type_))
    raise LiteralError(f"{text} is beyond BIGINT")


def converted(literal: Literal, target: DataType) -> Literal | None:
    """The literal as a constant of a numeric or time type; None if that needs a CAST."""
    target = with_nullable(target, literal.value is None)
    value = literal.value
    if value is None:
        return Literal(None, target)
    if literal.type.name == "STRING" and isinstance(value, str):
        return typed(target.name, value, target.precision) if target.name in _KINDS else None
    if literal.type.name not in data_types.NUMERIC or isinstance(value, bool):
        return None
    if target.name in data_types.INTEGERS and isinstance(value, int):
        bound = 2 ** (_BITS[target.name] - 1)
        return Literal(value, target) if -bound <= value < bound else None
    if target.name == "DECIMAL" and not isinstance(value, float):
        return _rescaled(str(value), target)
    if target.name in data_types.APPROXIMATE:
        return Literal(float(str(value)), target)
    return None


def typed(kind: str, text: str, precision: int | None = None) -> Literal:
    """DATE, TIME and TIMESTAMP constants; the precision is that of the text unless given."""
    try:
        match kind:
            case "DATE":
                value = date.fromisoformat(_padded_date(text.strip())).isoformat()
                return Literal(value, _not_null(data_types.DATE))
            case "TIME":
                return _time(text.strip(), precision)
            case _:
                return _timestamp(kind, text.strip(), precision)
    except ValueError as error:
        raise LiteralError(f"'{text}' is not a {kind.replace('_', ' ')}") from error


def interval(text: str, unit: str, to: str | None, negative: bool) -> Literal:
    """An interval: milliseconds, or months if its units are years and months."""
    sign = -1 if negative else 1
    body = text.strip()
    if body[:1] in "+-" and body:
        sign, body = (-sign if body[0] == "-" else sign), body[1:]
    if to is not None:
        amount, months = _interval_range(body, unit, to)
    elif unit in _MS and re.fullmatch(r"\d+(\.\d+)?", body):
        amount, months = Decimal(body) * _MS[unit], False
    elif unit in _MONTHS and body.isdigit():
        amount, months = Decimal(body) * _MONTHS[unit], True
    else:
        raise LiteralError(f"'{text}' is not an interval in {unit}")
    if amount != int(amount):
        raise LiteralError(f"'{text}' {unit} is finer than a millisecond")
    kind = data_types.INTERVAL_YEAR if months else data_types.INTERVAL_DAY
    return Literal(sign * int(amount), _not_null(kind))


_KINDS = ("DATE", "TIME", "TIMESTAMP")
_BITS = {"TINYINT": 8, "SMALLINT": 16, "INT": 32, "BIGINT": 64}


def _not_null(type_: DataType) -> DataType:
    return with_nullable(type_, False)


def _double(text: str) -> Literal:
    try:
        value = float(text)
    except ValueError as error:
        raise LiteralError(f"{text} is not a number") from error
    if isinf(value):
        raise LiteralError(f"{text} is beyond DOUBLE")
    return Literal(value, _not_null(data_types.DOUBLE))


def _decimal(text: str) -> Literal:
    """Every digit that is written counts, zeros in front included."""
    sign = "-" if text.startswith("-") else ""
    whole, _, fraction = text.removeprefix("-").partition(".")
    written = f"{sign}{whole.lstrip('0') or '0'}.{fraction}"
    digits = len(whole.lstrip("0")) + len(fraction)
    if digits > data_types.MAX_DECIMAL:
        raise LiteralError(f"{text} has more than {data_types.MAX_DECIMAL} digits")
    precision = min(len(whole) + len(fraction), data_types.MAX_DECIMAL)
    return Literal(written, _not_null(data_types.decimal(precision, len(fraction))))


def _rescaled(text: str, target: DataType) -> Literal | None:
    scale = target.scale or 0
    try:
        value = Decimal(text).quantize(Decimal(1).scaleb(-scale), ROUND_HALF_UP)
    except InvalidOperation:
        return None
    fits = abs(value) < Decimal(10) ** ((target.precision or 0) - scale)
    return Literal(f"{value:f}", target) if fits else None


def _padded_date(text: str) -> str:
    year, month, day = text.split("-")
    return f"{year}-{month:0>2}-{day:0>2}"


def _time(text: str, precision: int | None) -> Literal:
    match = _TIME.fullmatch(text)
    if match is None:
        raise ValueError(text)
    fraction = match[2] or ""
    places = min(len(fraction), 3) if precision is None else precision
    clock = time.fromisoformat(f"{match[1]:0>8}").isoformat()
    return Literal(clock + _fraction(fraction, places), _not_null(data_types.time(places)))


def _timestamp(kind: str, text: str, precision: int | None) -> Literal:
    match = _TIMESTAMP.fullmatch(text)
    if match is None:
        raise ValueError(text)
    fraction = match[3] or ""
    if len(fraction.rstrip("0")) > 6:
        raise LiteralError(f"'{text}' is finer than a microsecond")
    places = min(len(fraction), 6) if precision is None else precision
    clock = f"{match[2] or '00:00:00':0>8}"
    value = datetime.fromisoformat(f"{_padded_date(match[1])} {clock}").isoformat(" ")
    type_ = DataType(kind, nullable=False, precision=places)
    return Literal(value + _fraction(fraction, places), type_)


def _fraction(digits: str, places: int) -> str:
    return f".{digits:0<{places}}"[: places + 1] if places else ""


def _interval_range(body: str, unit: str, to: str) -> tuple[Decimal, bool]:
    if (unit, to) == ("YEAR", "MONTH"):
        match = re.fullmatch(r"(\d+)-(\d+)", body)
        if match is None:
            raise LiteralError(f"'{body}' is not an interval YEAR TO MONTH, such as '1-6'")
        return Decimal(int(match[1]) * 12 + int(match[2])), True
    if unit not in _FINER or to not in _FINER or _FINER.index(unit) >= _FINER.index(to):
        raise LiteralError(f"there is no interval {unit} TO {to}")
    units = _FINER[_FINER.index(unit) : _FINER.index(to) + 1]
    parts = re.split(r"[ :]", body)
    if len(parts) != len(units) or not all(re.fullmatch(r"\d+(\.\d+)?", p) for p in parts):
        raise LiteralError(f"'{body}' is not an interval {unit} TO {to}")
    return sum((Decimal(p) * _MS[u] for p, u in zip(parts, units, strict=True)), Decimal()), False
