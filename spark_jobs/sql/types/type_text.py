"""The grammar of Flink's type texts: `DECIMAL(10, 4)`, `ROW<id BIGINT NOT NULL>`, ..."""

import re
from collections.abc import Callable
from dataclasses import dataclass, replace

from spark_jobs.sql.types.data_types import (
    INTEGERS,
    MAX_DECIMAL,
    DataType,
    RowField,
    decimal,
    time,
    timestamp,
    timestamp_ltz,
)

_BLANK = r"(?:\s|--[^\n]*|/\*.*?\*/)*"
_TOKEN = re.compile(
    _BLANK + r"(?:(?P<word>[^\W\d]\w*)|`(?P<quoted>(?:[^`]|``)*)`|(?P<number>\d+)"
    r"|'(?P<text>(?:[^']|'')*)'|(?P<sign>[<>(),]))",
    re.DOTALL,
)
_MAX_LENGTH = 2_147_483_647
MAX_TIMESTAMP = 6
MAX_TIME = 3

_PLAIN = {name: name for name in ("STRING", "BOOLEAN", *INTEGERS, "FLOAT", "DATE", "BYTES")}
_PLAIN["INTEGER"] = "INT"
_UNSUPPORTED = {
    "MULTISET": "use ARRAY",
    "INTERVAL": "an INTERVAL can stand in an expression, not in a column",
    **dict.fromkeys(("RAW", "SYMBOL", "VARIANT", "STRUCTURED", "NULL")),
}
# texts and bytes with a length: the type without one, and whether the length is fixed
_WITH_LENGTH = {
    "VARCHAR": ("STRING", False),
    "CHAR": ("STRING", True),
    "CHARACTER": ("STRING", True),
    "VARBINARY": ("BYTES", False),
    "BINARY": ("BYTES", True),
}


@dataclass(frozen=True, slots=True)
class Length:
    """Of VARCHAR(n) and VARBINARY(n) the most, of CHAR(n) and BINARY(n) the one that is `fixed`."""

    count: int
    fixed: bool


@dataclass(frozen=True, slots=True)
class WrittenType:
    """A type as a text has it: values have the type alone, and CAST or a sink sees to the length.

    `has_inner`: a field, element or key has a length.
    """

    type: DataType
    length: Length | None = None
    has_inner: bool = False


class TypeTextError(ValueError):
    """What is wrong with a type text, and at which character."""

    def __init__(self, message: str, offset: int, hint: str | None = None) -> None:
        super().__init__(message)
        self.message = message
        self.offset = offset
        self.hint = hint


class UnsupportedTypeError(TypeTextError):
    """A type that Flink has and rejoin has not."""


def parse_type(text: str) -> DataType:
    """The type that a whole text describes.

    >>> parse_type("DECIMAL(10, 4) NOT NULL").sql()
    'DECIMAL(10, 4) NOT NULL'
    """
    written, end = parse_type_at(text, 0)
    if re.compile(_BLANK, re.DOTALL).fullmatch(text, end) is None:
        raise TypeTextError(f"unexpected text after the type: {text[end:].strip()}", end)
    return written.type


def parse_type_at(text: str, offset: int) -> tuple[WrittenType, int]:
    """The type that begins at an offset, and the offset after it."""
    reader = _Reader(text, offset)
    type_ = reader.type()
    is_scalar = type_.name in ("STRING", "BYTES")
    length = reader.lengths[0] if reader.lengths and is_scalar else None
    has_inner = bool(reader.lengths) and not is_scalar
    return WrittenType(type_, length, has_inner), reader.offset


class _Reader:
    """A cursor over the text; `offset` stands behind the last token taken."""

    def __init__(self, text: str, offset: int) -> None:
        self.text = text
        self.offset = offset
        self.lengths: list[Length] = []

    def type(self) -> DataType:
        type_ = self._nullability(self._base())
        while self._take("ARRAY", "MULTISET") is not None:
            type_ = self._nullability(DataType("ARRAY", element=type_))
        return type_

    def _nullability(self, type_: DataType) -> DataType:
        if self._take("NOT") is not None:
            self._expect("NULL")
            return replace(type_, nullable=False)
        self._take("NULL")
        return type_

    def _base(self) -> DataType:
        start = self._start()
        name = (self._group("word") or "").upper()
        if name in _PLAIN:
            return DataType(_PLAIN[name])
        if name in _WITH_LENGTH:
            return self._with_length(start, *_WITH_LENGTH[name])
        parse = _PARAMETRIC.get(name)
        if parse is not None:
            return parse(self, start)
        if name in _UNSUPPORTED:
            raise UnsupportedTypeError(f"type {name} is not supported", start, _UNSUPPORTED[name])
        raise TypeTextError(f"expected a type, found {self._found(start)}", start)

    def double(self, _: int) -> DataType:
        self._take("PRECISION")
        return DataType("DOUBLE")

    def decimal(self, start: int) -> DataType:
        precision, scale = 10, 0
        if self._take("(") is not None:
            precision = self._number()
            scale = self._number() if self._take(",") is not None else 0
            self._expect(")")
        if not 1 <= precision <= MAX_DECIMAL or scale > precision:
            raise TypeTextError(
                f"DECIMAL({precision}, {scale}) does not exist",
                start,
                f"the precision is 1 to {MAX_DECIMAL}, the scale at most the precision",
            )
        return decimal(precision, scale)

    def timestamp(self, start: int) -> DataType:
        precision = self._precision(6)
        local = False
        if self._take("WITH") is not None:
            if self._take("LOCAL") is None:
                raise UnsupportedTypeError(
                    "type TIMESTAMP WITH TIME ZONE is not supported",
                    start,
                    "use TIMESTAMP_LTZ(p)",
                )
            local = True
            self._expect("TIME", "ZONE")
        elif self._take("WITHOUT") is not None:
            self._expect("TIME", "ZONE")
        return self._checked_timestamp(start, timestamp_ltz if local else timestamp, precision)

    def timestamp_ltz(self, start: int) -> DataType:
        return self._checked_timestamp(start, timestamp_ltz, self._precision(6))

    def time(self, start: int) -> DataType:
        precision = self._precision(0)
        if self._take("WITHOUT") is not None:
            self._expect("TIME", "ZONE")
        if precision > MAX_TIME:
            raise UnsupportedTypeError(
                f"TIME({precision}) is not supported",
                start,
                f"use TIME({MAX_TIME}): milliseconds are the finest that is kept",
            )
        return time(precision)

    def row(self, start: int) -> DataType:
        close = self._open(start, "ROW")
        fields: list[RowField] = []
        while not fields or self._take(",") is not None:
            name = self._name()
            fields.append(RowField(name, self.type()))
            self._group("text")  # a comment
        self._expect(close)
        return DataType("ROW", fields=tuple(fields))

    def array(self, start: int) -> DataType:
        close = self._open(start, "ARRAY")
        element = self.type()
        self._expect(close)
        return DataType("ARRAY", element=element)

    def map(self, start: int) -> DataType:
        close = self._open(start, "MAP")
        key = self.type()
        self._expect(",")
        value = self.type()
        self._expect(close)
        return DataType("MAP", key=key, element=value)

    def _checked_timestamp(
        self, start: int, make: Callable[[int], DataType], precision: int
    ) -> DataType:
        if precision > MAX_TIMESTAMP:
            raise UnsupportedTypeError(
                f"{make(precision).sql()} is not supported",
                start,
                f"use a precision up to {MAX_TIMESTAMP}: microseconds are the finest that is kept",
            )
        return make(precision)

    def _with_length(self, start: int, name: str, fixed: bool) -> DataType:
        """Without a length CHAR and BINARY have one of 1, the others none (FlinkTypeSystem)."""
        fixed = self._take("VARYING") is None and fixed
        length = 1 if fixed else _MAX_LENGTH
        if self._take("(") is not None:
            length = self._number()
            self._expect(")")
        if not 1 <= length <= _MAX_LENGTH:
            written = self.text[start : self.offset]
            hint = f"a length is 1 to {_MAX_LENGTH}"
            raise TypeTextError(f"{written} does not exist", start, hint)
        if length < _MAX_LENGTH:
            self.lengths.append(Length(length, fixed))
        return DataType(name)

    def _precision(self, default: int) -> int:
        if self._take("(") is None:
            return default
        precision = self._number()
        self._expect(")")
        return precision

    def _open(self, start: int, name: str) -> str:
        if self._take("<") is not None:
            return ">"
        if name == "ROW" and self._take("(") is not None:
            return ")"
        raise TypeTextError(f"{name} needs its parts, such as {name}<...>", start)

    def _match(self) -> re.Match[str] | None:
        return _TOKEN.match(self.text, self.offset)

    def _take(self, *expected: str) -> str | None:
        match = self._match()
        if match is None:
            return None
        found = match["sign"] or (match["word"] or "").upper()
        if found not in expected:
            return None
        self.offset = match.end()
        return found

    def _expect(self, *words: str) -> None:
        for expected in words:
            start = self._start()
            if self._take(expected) is None:
                raise TypeTextError(f"expected {expected}, found {self._found(start)}", start)

    def _name(self) -> str:
        start = self._start()
        quoted = self._group("quoted")
        name = quoted.replace("``", "`") if quoted is not None else self._group("word")
        if name is None:
            raise TypeTextError(f"expected a field name, found {self._found(start)}", start)
        return name

    def _number(self) -> int:
        start = self._start()
        number = self._group("number")
        if number is None:
            raise TypeTextError(f"expected a number, found {self._found(start)}", start)
        return int(number)

    def _group(self, group: str) -> str | None:
        match = self._match()
        if match is None or match[group] is None:
            return None
        self.offset = match.end()
        return match[group]

    def _start(self) -> int:
        match = self._match()
        if match is None:
            return min(self.offset, len(self.text))
        return next(match.start(g) for g in _GROUPS if match[g] is not None)

    def _found(self, start: int) -> str:
        match = _TOKEN.match(self.text, start)
        return f"'{match[0].strip()}'" if match else "the end of the text"


_GROUPS = ("word", "quoted", "number", "text", "sign")
_PARAMETRIC: dict[str, Callable[[_Reader, int], DataType]] = {
    "DOUBLE": _Reader.double,
    "DECIMAL": _Reader.decimal,
    "DEC": _Reader.decimal,
    "NUMERIC": _Reader.decimal,
    "TIMESTAMP": _Reader.timestamp,
    "TIMESTAMP_LTZ": _Reader.timestamp_ltz,
    "TIME": _Reader.time,
    "ROW": _Reader.row,
    "ARRAY": _Reader.array,
    "MAP": _Reader.map,
}
