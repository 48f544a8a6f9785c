"""Values that records hold as texts: JSON, lines of CSV, and what the texts of a column are."""

import csv
import json
import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

_DELIMITERS = (",", ";", "\t", "|")
_BOOLEANS = {"true": True, "false": False}
# a number with zeros in front is a code
_KINDS: tuple[tuple[re.Pattern[str], Callable[[str], Any]], ...] = (
    (re.compile(r"-?(?:0|[1-9]\d{0,17})", re.ASCII), int),
    (re.compile(r"-?(?:0|[1-9]\d*)(?:\.\d+)?", re.ASCII), Decimal),
    (re.compile(r"true|false", re.IGNORECASE), lambda text: _BOOLEANS[text.lower()]),
    (re.compile(r"\d{4}-\d\d-\d\d(?:[ T].*)?", re.ASCII), str),
)


@dataclass(frozen=True, slots=True)
class CsvLines:
    """Records that are CSV; `fields` has None for one that is not of the common shape."""

    delimiter: str
    fields: Sequence[list[str] | None]


def parse_json(data: bytes) -> Any:
    """JSON with exact decimals. Raises ValueError, also for bytes that are not UTF-8."""
    try:
        return json.loads(data, parse_float=Decimal)
    except RecursionError as cause:
        raise ValueError("nested too deeply") from cause


def csv_lines(records: Sequence[bytes], most_others: float) -> CsvLines | None:
    """The records as CSV of one number of fields, at least two, under the likeliest delimiter.

    None if more than the share `most_others` of them are not.

    >>> csv_lines([b'1,"a;b"', b"2,c"], 0.1).fields
    [['1', 'a;b'], ['2', 'c']]
    """
    best: CsvLines | None = None
    width = 1
    for delimiter in _DELIMITERS:
        split = [_split(record, delimiter) for record in records]
        counts = Counter(len(fields) for fields in split if fields)
        common, found = max(counts.items(), key=lambda n: n[1], default=(0, 0))
        if common > width and found >= (1 - most_others) * len(records):
            width = common
            best = CsvLines(delimiter, [f if f and len(f) == common else None for f in split])
    return best


def typed(texts: Sequence[str | None]) -> list[Any]:
    """The texts of a column as what all of them are: numbers, booleans, texts.

    An empty one is None; a column of texts keeps it.

    >>> typed(["1", "", "20"]), typed(["007", "20"])
    ([1, None, 20], ['007', '20'])
    """
    present = [text for text in texts if text]
    for pattern, convert in _KINDS:
        if present and all(pattern.fullmatch(text) for text in present):
            return [convert(text) if text else None for text in texts]
    return list(texts)


def typed_rows(rows: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Rows whose texts are read as what all values of their column are."""
    names = dict.fromkeys(name for row in rows for name in row)
    columns = {name: [row.get(name) for row in rows] for name in names}
    read = {
        name: typed(values) if all(v is None or isinstance(v, str) for v in values) else values
        for name, values in columns.items()
    }
    return [{name: read[name][i] for name in row} for i, row in enumerate(rows)]


def _split(record: bytes, delimiter: str) -> list[str] | None:
    """The fields of a record; None if it is not one line of CSV."""
    try:
        text = record.decode().rstrip("\r\n")
        lines = list(csv.reader([text], delimiter=delimiter, strict=True))
    except (UnicodeDecodeError, csv.Error):
        return None
    return lines[0] if len(lines) == 1 else None
