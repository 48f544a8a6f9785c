"""Fast Avro encoders for the few types in the benchmark's topics.

Results are decoded by fastavro (results.py), so that an error here cannot cancel itself out.
"""

import json
import struct
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import httpx

AvroType: TypeAlias = "str | Mapping[str, Any] | list[Any]"
AvroField: TypeAlias = tuple[str, AvroType]
TIMESTAMP_MS = {"type": "long", "logicalType": "timestamp-millis"}
_FRAME = struct.Struct(">bI")
_HTTP_TIMEOUT_S = 30.0


def encode_long(number: int) -> bytes:
    """A long in Avro's zigzag encoding, seven bits per byte.

    >>> encode_long(0), encode_long(-1), encode_long(64)
    (b'\\x00', b'\\x01', b'\\x80\\x01')
    """
    rest = number << 1 if number >= 0 else (-number << 1) - 1
    out = bytearray()
    while rest > 0x7F:
        out.append(rest & 0x7F | 0x80)
        rest >>= 7
    out.append(rest)
    return bytes(out)


def encode_string(text: str) -> bytes:
    """A string: its length, then UTF-8.

    >>> encode_string("ab")
    b'\\x04ab'
    """
    data = text.encode()
    return encode_long(len(data)) + data


def encode_instant(ms: int) -> bytes:
    """A time of this century in epoch milliseconds; always six bytes, so no loop is needed.

    >>> encode_instant(1_700_000_000_000) == encode_long(1_700_000_000_000)
    True
    """
    rest = ms << 1
    return bytes(
        (
            rest & 127 | 128,
            rest >> 7 & 127 | 128,
            rest >> 14 & 127 | 128,
            rest >> 21 & 127 | 128,
            rest >> 28 & 127 | 128,
            rest >> 35,
        )
    )


def frame(schema_id: int) -> bytes:
    """The five bytes that precede every record in Confluent's framing.

    >>> frame(7)
    b'\\x00\\x00\\x00\\x00\\x07'
    """
    return _FRAME.pack(0, schema_id)


def record_schema(name: str, fields: Sequence[AvroField]) -> str:
    """The schema of a record whose fields are not nullable."""
    described = [{"name": field, "type": kind} for field, kind in fields]
    return json.dumps({"type": "record", "name": name, "namespace": "bench", "fields": described})


def register(registry_url: str, subject: str, schema: str) -> int:
    """Register the schema; returns its id."""
    address = f"{registry_url}/subjects/{subject}/versions"
    answer = httpx.post(address, json={"schema": schema}, timeout=_HTTP_TIMEOUT_S)
    return int(answer.raise_for_status().json()["id"])


def schema_by_id(registry_url: str, schema_id: int) -> str:
    """The schema with this id in the registry."""
    answer = httpx.get(f"{registry_url}/schemas/ids/{schema_id}", timeout=_HTTP_TIMEOUT_S)
    return str(answer.raise_for_status().json()["schema"])
