"""Records in CSV, by Python's own module: shares no code with the kernel's format."""

import csv
import io
from collections.abc import Iterable, Mapping
from decimal import Decimal
from typing import Any

from spark_jobs.options.formats import CsvOptions
from spark_jobs.sql.types.data_types import DataType, RowField


def line_of(options: CsvOptions, values: Iterable[Any]) -> bytes:
    """The line of values in their JSON form."""
    out = io.StringIO()
    writer = csv.writer(out, **_dialect(options))
    writer.writerow([_text(options, value) for value in values])
    return out.getvalue().encode()


def values_of(options: CsvOptions, line: bytes, fields: Iterable[RowField]) -> dict[str, Any]:
    """The fields of a line by name, in their JSON form; without a null literal '' is NULL."""
    [texts] = csv.reader([line.decode()], **_dialect(options)) if line else [[""]]
    named = zip(fields, texts, strict=True)
    return {field.name: _value(options, text, field.type) for field, text in named}


def _dialect(options: CsvOptions) -> dict[str, Any]:
    return {
        "delimiter": options.delimiter,
        "quotechar": None if options.disable_quotes else options.quote,
        "quoting": csv.QUOTE_NONE if options.disable_quotes else csv.QUOTE_MINIMAL,
        "escapechar": options.escape,
        "lineterminator": "",
    }


def _text(options: CsvOptions, value: Any) -> str:
    match value:
        case None:
            return options.null_literal or ""
        case bool():
            return str(value).lower()
        case Decimal():
            return f"{value:f}"
        case Mapping():
            return options.array_delimiter.join(_text(options, v) for v in value.values())
        case list():
            return options.array_delimiter.join(_text(options, v) for v in value)
        case _:
            return str(value)


def _value(options: CsvOptions, text: str, type_: DataType) -> Any:
    match type_:
        case DataType(name="ARRAY", element=DataType() as element):
            parts = text.split(options.array_delimiter) if text else []
            return [_value(options, part, element) for part in parts]
        case DataType(name="ROW", fields=fields):
            parts = text.split(options.array_delimiter)
            named = zip(fields, parts, strict=True)
            return {f.name: _value(options, part, f.type) for f, part in named} if text else None
        case _ if text == (options.null_literal or ""):
            return None
        case DataType(name="BOOLEAN"):
            return text == "true"
        case _:
            return text
