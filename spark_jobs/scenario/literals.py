"""Parses values of scenario files: `(1, 'ann', NULL, ('nested', 2), ['a', 'b'], {'k': 1})`."""

import re
from decimal import Decimal
from typing import TypeAlias

Scalar: TypeAlias = bool | int | Decimal | str | bytes | None
Literal: TypeAlias = "Scalar | tuple[Literal, ...] | list[Literal] | dict[str, Literal]"
RowLiteral: TypeAlias = "tuple[Literal, ...] | dict[str, Literal]"

_TOKEN = re.compile(
    r"""\s*(?:
      (?P<bytes>[xX]'(?:[0-9a-fA-F]{2})*')
    | (?P<string>'(?:[^']|'')*')
    | (?P<number>[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?)
    | (?P<word>[A-Za-z_]\w*)
    | (?P<mark>[()\[\]{},:])
    )""",
    re.VERBOSE,
)
_WORDS: dict[str, Literal] = {"NULL": None, "TRUE": True, "FALSE": False}
_CLOSING = {"(": ")", "[": "]", "{": "}"}


class LiteralError(ValueError):
    """The text is no row of values."""


def parse_row(text: str) -> RowLiteral:
    """Parse a row: all its values in parentheses, or some by name in braces.

    >>> parse_row("(1, 'it''s', NULL, 2.50, ('a', TRUE), ['x'], {'k': 1})")
    (1, "it's", None, Decimal('2.50'), ('a', True), ['x'], {'k': 1})
    >>> parse_row("{order_id: 1, name: 'Ada'}")
    {'order_id': 1, 'name': 'Ada'}
    """
    tokens = _Tokens(text)
    row = tokens.value()
    if not isinstance(row, tuple | dict) or not tokens.at_end():
        raise LiteralError(f"expected (value, ...) or {{column: value, ...}}, found {text!r}")
    return row


class _Tokens:
    def __init__(self, text: str) -> None:
        self._text = text.rstrip()
        self._at = 0

    def at_end(self) -> bool:
        return self._at == len(self._text)

    def value(self) -> Literal:
        kind, text = self._next()
        match kind:
            case "string":
                return text[1:-1].replace("''", "'")
            case "bytes":
                return bytes.fromhex(text[2:-1])
            case "number":
                return int(text) if re.fullmatch(r"[-+]?\d+", text) else Decimal(text)
            case "word" if text.upper() in _WORDS:
                return _WORDS[text.upper()]
            case "mark" if text == "(":
                return tuple(self._items(")"))
            case "mark" if text == "[":
                return self._items("]")
            case "mark" if text == "{":
                return self._entries()
        raise LiteralError(f"{text!r} in {self._text!r} is no value")

    def _items(self, closing: str) -> list[Literal]:
        items: list[Literal] = []
        while not self._accept(closing):
            if items:
                self._expect(",")
            items.append(self.value())
        return items

    def _entries(self) -> dict[str, Literal]:
        entries: dict[str, Literal] = {}
        while not self._accept("}"):
            if entries:
                self._expect(",")
            key = self._name()
            self._expect(":")
            entries[key] = self.value()
        return entries

    def _name(self) -> str:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found["word"] is None:
            return str(self.value())
        self._at = found.end()
        return found["word"]

    def _next(self) -> tuple[str, str]:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found.lastgroup is None:
            rest = self._text[self._at :]
            raise LiteralError(f"cannot read {rest!r} in {self._text!r}")
        self._at = found.end()
        return found.lastgroup, found[found.lastgroup]

    def _accept(self, mark: str) -> bool:
        found = _TOKEN.match(self._text, self._at)
        if found is None or found["mark"] != mark:
            return False
        self._at = found.end()
        return True

    def _expect(self, mark: str) -> None:
        if not self._accept(mark):
            raise LiteralError(f"expected {mark!r} before {self._text[self._at :]!r}")
