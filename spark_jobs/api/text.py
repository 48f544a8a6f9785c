"""Formats names, string constants and intervals as Flink SQL."""

import re

from spark_jobs.errors import SqlError
from spark_jobs.sql.parse.dialect import Flink

_WORD = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
_UNITS_US = (
    ("DAY", 86_400_000_000),
    ("HOUR", 3_600_000_000),
    ("MINUTE", 60_000_000),
    ("SECOND", 1_000_000),
)


def quoted(name: str) -> str:
    """A name, in backticks if it needs them.

    >>> quoted("order_id"), quoted("at"), quoted("a b")
    ('order_id', 'at', '`a b`')
    """
    if _WORD.fullmatch(name) and Flink().tokenize(name)[0].token_type.name == "VAR":
        return name
    return "`" + name.replace("`", "``") + "`"


def string_text(value: str) -> str:
    """
    >>> string_text("it's")
    "'it''s'"
    """
    return "'" + value.replace("'", "''") + "'"


def interval_text(micros: int) -> str:
    """An INTERVAL in the largest unit without a fraction, else in seconds.

    >>> interval_text(14_400_000_000), interval_text(-1_500_000)
    ("INTERVAL '4' HOUR", "INTERVAL -'1.5' SECOND")

    Raises:
        SqlError: the interval is no multiple of a millisecond.
    """
    if micros % 1_000:
        raise SqlError(
            "BAD_LITERAL",
            f"an interval of {micros} microseconds is no multiple of a millisecond",
            "use milliseconds: times have no finer unit",
        )
    sign, size = ("-", -micros) if micros < 0 else ("", micros)
    for unit, length in _UNITS_US:
        if size % length == 0:
            return f"INTERVAL {sign}'{size // length}' {unit}"
    return f"INTERVAL {sign}'{size / 1_000_000:.3f}'".rstrip("0'") + "' SECOND"
