"""Records of the recorded run as Python values, whatever their format."""

import base64
import io
import json
import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import fastavro

FIXTURES = Path(__file__).parents[1] / "fixtures" / "debezium"
FORMATS = (
    "json",
    "json_schema",
    "json_unwrapped",
    "json_replayed",
    "avro",
    "avro_apicurio_8byte",
    "avro_apicurio_headers",
)


@dataclass(frozen=True)
class Recorded:
    """A record; `event` is its value without framing and schema, None for a tombstone."""

    value: bytes | None
    key: bytes | None
    headers: tuple[tuple[str, bytes], ...]
    event: Any


def files(format_: str) -> list[Path]:
    return sorted((FIXTURES / format_).glob("*.jsonl"))


def table_of(file: Path) -> str:
    """`shopjson.public.orders.jsonl` is the table orders; other topics are not public."""
    found = re.search(r"\.public\.(\w+)$", file.stem)
    return found[1] if found else "heartbeat" if "heartbeat" in file.stem else file.suffixes[0][1:]


def tells_types(format_: str) -> bool:
    """Whether a schema of the record says what numbers and bytes mean."""
    return format_ == "json_schema" or format_.startswith("avro")


@cache
def records(file: Path) -> tuple[Recorded, ...]:
    """All records of a file, in offset order."""
    return tuple(_record(file.parent, json.loads(line)) for line in file.read_text().splitlines())


def _record(folder: Path, line: Mapping[str, Any]) -> Recorded:
    value, key = _bytes(line["value_b64"]), _bytes(line["key_b64"])
    headers = tuple((name, base64.b64decode(v)) for name, v in line["headers"])
    return Recorded(value, key, headers, _event(folder, value, dict(headers)))


def _event(folder: Path, value: bytes | None, headers: Mapping[str, bytes]) -> Any:
    if value is None:
        return None
    if not folder.name.startswith("avro"):
        event = json.loads(value)
        return event["payload"] if folder.name == "json_schema" else event
    if folder.name == "avro_apicurio_headers":
        id_ = int.from_bytes(headers["apicurio.value.globalId"], "big")
        body = value
    else:
        size = 8 if folder.name == "avro_apicurio_8byte" else 4
        id_, body = int.from_bytes(value[1 : 1 + size], "big"), value[1 + size :]
    return fastavro.schemaless_reader(io.BytesIO(body), _schema(folder, id_), None)


@cache
def _schema(folder: Path, id_: int) -> Any:
    schema = json.loads(schemas(folder.name)[id_])
    return fastavro.parse_schema(_without_logical_types(schema))


@cache
def schemas(format_: str) -> dict[int, str]:
    """Schema texts by id, as the registry had them."""
    found = json.loads((FIXTURES / format_ / "schemas.json").read_text())
    texts = {int(i): s["schema"] for i, s in found.items()}
    return {i: s if isinstance(s, str) else json.dumps(s) for i, s in texts.items()}


def _without_logical_types(schema: Any) -> Any:
    """Decimals stay bytes, so that both encodings are read by one set of rules."""
    match schema:
        case dict():
            return {k: _without_logical_types(v) for k, v in schema.items() if k != "logicalType"}
        case list():
            return [_without_logical_types(s) for s in schema]
        case _:
            return schema


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
