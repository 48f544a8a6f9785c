"""What stands in the sinks of a file at the end: rows by key, or how often each row is there."""

import io
import json
from collections import Counter
from collections.abc import Iterable
from decimal import Decimal
from functools import cache
from typing import Any

import fastavro
import httpx

from spark_jobs.scenario.records import Record
from spark_jobs.sql.catalog import Table

Answer = list[str]


def folded(table: Table, records: Iterable[Record], registry: str = "") -> Answer:
    """The rows of a sink in one text each, sorted; key and value are compared as they are written.

    The reader is the test's own: a record of Flink and one of rejoin have to say the same to it.
    """
    if table.connector == "upsert-kafka":
        return _by_key((_read(r.key, registry), _read(r.value, registry)) for r in records)
    counts: Counter[str] = Counter()
    format_ = table.value_format.name if table.value_format else ""
    for record in records:
        value = _read(record.value, registry)
        if format_ == "canal-json":
            [row] = value["data"]
            counts[_text(row)] += -1 if value["type"] == "DELETE" else 1
        elif format_ == "debezium-json":
            if value["before"] is not None:
                counts[_text(value["before"])] -= 1
            if value["after"] is not None:
                counts[_text(value["after"])] += 1
        else:
            key = "" if record.key is None else f"{_text(_read(record.key, registry))} "
            counts[key + _text(value)] += 1
    assert all(n >= 0 for n in counts.values()), f"taken back and not there: {-counts}"
    return sorted(counts.elements())


def _by_key(records: Iterable[tuple[Any, Any]]) -> Answer:
    rows: dict[str, Any] = {}
    for key, value in records:
        rows.pop(_text(key), None)
        if value is not None:
            rows[_text(key)] = value
    return sorted(f"{key} {_text(value)}" for key, value in rows.items())


def _read(content: bytes | None, registry: str) -> Any:
    if content is None:
        return None
    if content[:1] == b"\0":
        schema = _schema(registry, int.from_bytes(content[1:5], "big"))
        return fastavro.schemaless_reader(io.BytesIO(content[5:]), schema, None)
    try:
        return json.loads(content, parse_float=Decimal)
    except ValueError:
        return content.decode()


@cache
def _schema(registry: str, number: int) -> Any:
    answer = httpx.get(f"{registry}/schemas/ids/{number}").raise_for_status()
    return fastavro.parse_schema(json.loads(answer.json()["schema"]))


def _text(value: Any) -> str:
    return json.dumps(_plain(value), sort_keys=True, ensure_ascii=False, default=str)


def _plain(value: Any) -> Any:
    """Numbers by their value: 12.50 is 12.5."""
    match value:
        case dict():
            return {name: _plain(part) for name, part in value.items()}
        case list():
            return [_plain(part) for part in value]
        case Decimal() | float():
            number = Decimal(str(value))
            return int(number) if number == int(number) else str(number.normalize())
    return value
