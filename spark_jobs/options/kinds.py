"""What an option of a table, format or job may hold: its kinds, and how their texts are read."""

import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any, TypeVar, cast

from spark_jobs.options.patterns import is_pattern, is_plain_pattern

T = TypeVar("T")

# a secret is named in SQL and resolved by the driver just before use
REFERENCE = re.compile(r"\$\{(?:env|file):[^}]*\}")

_ESCAPE = re.compile(
    r"\\(?:u+(?P<hex>[0-9a-fA-F]{4})|(?P<octal>[0-3]?[0-7]{1,2})|(?P<letter>.))", re.DOTALL
)
_ESCAPED = {"b": "\b", "t": "\t", "n": "\n", "f": "\f", "r": "\r"}

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
    """One option. `expected` says what a value looks like; `read` gives None for any other text.

    `refused` says why a valid Flink option cannot be used here.
    """

    help: str
    expected: str
    read: Callable[[str], object]
    default: str | None = None
    refused: str | None = None

    def accepts(self, value: str) -> bool:
        return self.read(value) is not None


def option(
    name: str,
    help_: str,
    expected: str,
    read: Callable[[str], T | None],
    default: str | None = None,
) -> T:
    """A field that holds an option's value; without a default it is None where nothing is given.

    This is the general kind; the functions below are the common ones.
    """
    found = Option(help_, expected, read, default)
    value = None if default is None else read(default)
    return cast(T, field(default=value, metadata={"name": name, "option": found}))


def text(name: str, help_: str, expected: str = "text", default: str | None = None) -> str:
    """Any text that is not blank."""
    return option(name, help_, expected, lambda value: value if value.strip() else None, default)


def any_text(name: str, help_: str) -> str | None:
    """Any text, also none at all."""
    return option(name, help_, "text", lambda value: value)


def pattern(name: str, help_: str) -> str | None:
    """A regular expression as Java reads it."""
    expected = "a regular expression"
    return option(name, help_, expected, lambda value: value if is_pattern(value) else None)


def topic_pattern(name: str, help_: str) -> str | None:
    """A regular expression that Java and Python read alike, over the names of topics."""
    expected = "a regular expression without flags, look-around and possessive quantifiers"
    return option(name, help_, expected, lambda v: v if v and is_plain_pattern(v) else None)


def character(name: str, help_: str, default: str | None = None, escapes: bool = False) -> Any:
    """A single character of Java's; with `escapes` it may be written as in Java's source."""

    def read(value: str) -> str | None:
        found = _unescaped(value) if escapes else value
        return found if len(found) == 1 and found <= "\uffff" else None

    return option(name, help_, "a single character", read, default)


def _unescaped(text: str) -> str:
    """The character of one of Java's escapes; any other text as it is.

    >>> _unescaped(r"\u0001") == "\x01"
    True
    """
    match = _ESCAPE.fullmatch(text)
    if match is None:
        return text
    if match["hex"] or match["octal"]:
        return chr(int(match["hex"], 16) if match["hex"] else int(match["octal"], 8))
    return _ESCAPED.get(match["letter"], match["letter"])


def names(name: str, help_: str) -> tuple[str, ...]:
    """Names with semicolons between them."""

    def read(value: str) -> tuple[str, ...] | None:
        return tuple(n.strip() for n in value.split(";") if n.strip()) or None

    return option(name, help_, "text", read)


def choice(name: str, help_: str, default: str | None = None, values: Iterable[str] = ()) -> Any:
    """One of these texts; without `values` those that the field's type lists (declared.py)."""
    found = one_of(help_, values, default)
    return field(default=default, metadata={"name": name, "option": found})


def one_of(help_: str, values: Iterable[str], default: str | None) -> Option:
    """An option whose value is one of these texts."""
    known = {v: v for v in values}
    return Option(help_, " | ".join(known), known.get, default)


def enum(name: str, help_: str, values: str) -> Any:
    """An enumeration of Flink's, which takes either case; the first value is the default."""
    known = {v: v for v in values.split(" | ")}
    return option(name, help_, values, lambda v: known.get(v.lower()), next(iter(known)))


def flag(name: str, help_: str, default: str = "false") -> bool:
    """true or false, in either case."""
    known = {"true": True, "false": False}
    return option(name, help_, "true | false", lambda v: known.get(v.lower()), default)


def integer(name: str, help_: str, default: str | None = None, least: int = 0) -> int:
    """A whole number."""

    def read(value: str) -> int | None:
        return int(value) if value.strip().isdigit() and int(value) >= least else None

    return option(name, help_, f"a whole number of at least {least}", read, default)


def share(name: str, help_: str, default: str) -> float:
    """A part of a whole."""

    def read(value: str) -> float | None:
        return float(value) if _SHARE.fullmatch(value) and 0 < float(value) <= 1 else None

    return option(name, help_, "a number above 0 and up to 1", read, default)


def number(
    name: str, help_: str, default: str, least: float = 0, most: float = float("inf")
) -> float:
    """A decimal number."""

    def read(value: str) -> float | None:
        is_number = re.fullmatch(r"\d+(\.\d+)?", value.strip()) is not None
        return float(value) if is_number and least <= float(value) <= most else None

    above = "" if most == float("inf") else f" and at most {most:g}"
    return option(name, help_, f"a number of at least {least:g}{above}", read, default)


def duration(name: str, help_: str, default: str | None = None) -> int:
    """Flink's durations, in milliseconds."""
    return option(name, help_, "a duration such as '10 s'", parse_duration_ms, default)


def offsets(name: str, help_: str) -> dict[int, int]:
    """Flink's offsets by partition."""
    expected = "'partition:0,offset:42;partition:1,offset:300'"
    return option(name, help_, expected, parse_offsets)


def refused(help_: str, why: str) -> Option:
    """Flink has it; here it is refused, with what to do instead."""
    return Option(help_, "nothing", lambda _: None, refused=why)


def is_reference(text: str) -> bool:
    """Whether a value holds a `${env:...}` or `${file:...}`, so that it cannot be checked yet."""
    return REFERENCE.search(text) is not None
