"""Types and constants as Spark SQL text."""

from typing import assert_never

from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Literal

_NAMES = {
    "BYTES": "BINARY",
    "TIME": "INT",
    "TIMESTAMP": "TIMESTAMP_NTZ",
    "TIMESTAMP_LTZ": "TIMESTAMP",
    "NULL": "VOID",
    "INTERVAL_DAY": "INTERVAL DAY TO SECOND",
    "INTERVAL_YEAR": "INTERVAL YEAR TO MONTH",
}
_SUFFIXES = {"TINYINT": "Y", "SMALLINT": "S", "INT": "", "BIGINT": "L"}


def quoted(name: str) -> str:
    return f"`{name.replace('`', '``')}`"


def text(value: str) -> str:
    r"""A STRING constant; Spark reads backslashes in it, Flink does not.

    >>> text("it's")
    "'it\\'s'"
    """
    escaped = value.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def type_text(type_: DataType) -> str:
    """The type in CAST; TIME is the millisecond of the day, an INT."""
    match type_:
        case DataType(name="DECIMAL"):
            return f"DECIMAL({type_.precision}, {type_.scale})"
        case DataType(name="ROW"):
            fields = (f"{quoted(f.name)}: {type_text(f.type)}" for f in type_.fields)
            return f"STRUCT<{', '.join(fields)}>"
        case DataType(name="ARRAY", element=DataType() as element):
            return f"ARRAY<{type_text(element)}>"
        case DataType(name="MAP", key=DataType() as key, element=DataType() as element):
            return f"MAP<{type_text(key)}, {type_text(element)}>"
        case _:
            return _NAMES.get(type_.name, type_.name)


def literal_text(literal: Literal) -> str:
    """A constant of exactly its type."""
    value, name = literal.value, literal.type.name
    match value:
        case None:
            return f"CAST(NULL AS {type_text(literal.type)})"
        case bool():
            return "true" if value else "false"
        case int() if name == "INTERVAL_DAY":
            return _day_interval(value)
        case int() if name == "INTERVAL_YEAR":
            years, months = divmod(abs(value), 12)
            return f"INTERVAL '{_sign(value)}{years}-{months}' YEAR TO MONTH"
        case int():
            return _signed(f"{value}{_SUFFIXES[name]}")
        case float():
            return _signed(f"{value!r}{'F' if name == 'FLOAT' else 'D'}")
        case bytes():
            return f"X'{value.hex()}'"
        case str():
            return _of_text(value, literal.type)
        case _:
            assert_never(value)


def _of_text(value: str, type_: DataType) -> str:
    match type_.name:
        case "DECIMAL":
            return f"CAST({_signed(f'{value}BD')} AS {type_text(type_)})"
        case "DATE":
            return f"DATE '{value}'"
        case "TIME":
            return str(_millis_of_day(value))
        case "TIMESTAMP":
            return f"TIMESTAMP_NTZ '{value}'"
        case _:
            return text(value)


def _millis_of_day(clock: str) -> int:
    whole, _, fraction = clock.partition(".")
    hours, minutes, seconds = (int(p) for p in whole.split(":"))
    return (hours * 3600 + minutes * 60 + seconds) * 1000 + int(f"{fraction:0<3}"[:3])


def _day_interval(milliseconds: int) -> str:
    seconds, milli = divmod(abs(milliseconds), 1000)
    minutes, second = divmod(seconds, 60)
    hours, minute = divmod(minutes, 60)
    days, hour = divmod(hours, 24)
    clock = f"{days} {hour:02}:{minute:02}:{second:02}.{milli:03}"
    return f"INTERVAL '{_sign(milliseconds)}{clock}' DAY TO SECOND"


def _sign(value: int) -> str:
    return "-" if value < 0 else ""


def _signed(number: str) -> str:
    return f"({number})" if number.startswith("-") else number
