"""What an option of a table, format or job may hold: its kinds, and how their texts are read."""

import re
from collections.abc import Callable
from dataclasses import dataclass

# a secret is named in SQL and resolved by the driver just before use
REFERENCE = re.compile(r"\$\{(?:env|file):[^}]*\}")

_SHARE = re.compile(r"[01]?\.?\d+")
_DURATION = re.compile(r"\s*(\d+)\s*([a-zµ]*)\s*")
_UNIT_MS = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}


def parse_duration_ms(text: str) -> int | None:
    """Flink's durations in milliseconds; None if the text is not one.

    >>> parse_duration_ms("5 min")
    300000
    """
    match = _DURATION.fullmatch(text.lower())
    if match is None or match[2] not in _UNIT_MS:
        return None
    return int(match[1]) * _UNIT_MS[match[2]]


def parse_offsets(text: str) -> dict[int, int] | None:
    """Flink's `partition:0,offset:42;partition:1,offset:300` as {partition: offset}, or None."""
    parts = [p for p in text.split(";") if p.strip()]
    found = [re.fullmatch(r"\s*partition:(\d+),\s*offset:(\d+)\s*", p) for p in parts]
    if not found or not all(found):
        return None
    return {int(m[1]): int(m[2]) for m in found if m}


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `expected` says what a value looks like and `accepts` decides.

    `refused` says why a valid Flink option cannot be used here.
    """

    help: str
    expected: str = "text"
    default: str | None = None
    accepts: Callable[[str], bool] = lambda text: bool(text.strip())
    refused: str | None = None


def choice(help_: str, *values: str, default: str | None = None) -> Option:
    """One of these texts."""
    return Option(help_, " | ".join(values), default, lambda text: text in values)


def enum(help_: str, *values: str) -> Option:
    """An enumeration of Flink's, which takes either case; the first value is the default."""
    return Option(help_, " | ".join(values), values[0], lambda text: text.lower() in values)


def flag(help_: str, default: str = "false") -> Option:
    """true or false, in either case."""
    return Option(help_, "true | false", default, lambda text: text.lower() in ("true", "false"))


def integer(help_: str, default: str | None = None, least: int = 0) -> Option:
    """A whole number."""
    return Option(
        help_,
        f"a whole number of at least {least}",
        default,
        lambda text: text.strip().isdigit() and int(text) >= least,
    )


def share(help_: str, default: str) -> Option:
    """A part of a whole."""
    return Option(
        help_,
        "a number above 0 and up to 1",
        default,
        lambda text: _SHARE.fullmatch(text) is not None and 0 < float(text) <= 1,
    )


def number(
    help_: str, default: str | None = None, least: float = 0, most: float = float("inf")
) -> Option:
    """A decimal number."""
    above = "" if most == float("inf") else f" and at most {most:g}"
    return Option(
        help_,
        f"a number of at least {least:g}{above}",
        default,
        lambda text: (
            re.fullmatch(r"\d+(\.\d+)?", text.strip()) is not None and least <= float(text) <= most
        ),
    )


def duration(help_: str, default: str | None = None) -> Option:
    """Flink's durations."""
    return Option(
        help_,
        "a duration such as '10 s'",
        default,
        lambda text: parse_duration_ms(text) is not None,
    )


def offsets(help_: str) -> Option:
    """Flink's offsets by partition."""
    return Option(
        help_,
        "'partition:0,offset:42;partition:1,offset:300'",
        accepts=lambda text: parse_offsets(text) is not None,
    )


def refused(help_: str, why: str) -> Option:
    """Flink has it; here it is refused, with what to do instead."""
    return Option(help_, refused=why)


def is_reference(text: str) -> bool:
    """Whether a value holds a `${env:...}` or `${file:...}`, so that it cannot be checked yet."""
    return REFERENCE.search(text) is not None
