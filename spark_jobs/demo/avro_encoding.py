"""The shop's records in Avro with Confluent's framing; a registry has the schemas of `schemas/`."""

import io
import json
import struct
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path
from typing import Any

import fastavro
import httpx

from spark_jobs.demo.encoding import EXAMPLES, SCHEMAS, BrokenValue, Envelope
from spark_jobs.demo.shop import ORDERS, PRODUCTS, Order
from spark_jobs.demo.verify import JOINED_FIELDS, JoinedRow
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.formats.written_schema import WrittenSchema
from spark_jobs.options.formats import RegistryOptions

_PREFIX = struct.Struct(">bI")  # Confluent's framing: a zero byte, the schema id
_UNKNOWN_ID = 2_000_000_000
_TIMEOUT_S = 10.0
_SCALE = Decimal("0.0001")


class AvroEncoding:
    """Registers the schemas of its records, and reads the job's rows with the job's schema.

    Raises RejoinError if the registry refuses a schema.
    """

    def __init__(self, registry_url: str) -> None:
        self._url = registry_url
        registry = RegistryClient(RegistryOptions(url=registry_url))
        try:
            self._order = _Writer(registry, f"{ORDERS}-value")
            self._key = _Writer(registry, f"{PRODUCTS}-key")
            self._change = _Writer(registry, f"{PRODUCTS}-value")
        finally:
            registry.close()
        self._schemas: dict[int, Any] = {}

    @property
    def job_file(self) -> Path:
        return EXAMPLES / "shop_avro.sql"

    @property
    def registry_url(self) -> str:
        return self._url

    def order(self, order: Order) -> bytes:
        fields = {"order_id": order.order_id, "product_id": order.product_id}
        return self._order.write({**fields, "order_time": order.time_ms})

    def product_key(self, product_id: str) -> bytes:
        return self._key.write({"product_id": product_id})

    def change(self, envelope: Envelope) -> bytes:
        return self._change.write({**envelope, **_exact_prices(envelope)})

    def joined_row(self, value: bytes) -> JoinedRow:
        zero, schema_id = _PREFIX.unpack_from(value.ljust(_PREFIX.size))
        body = io.BytesIO(value[_PREFIX.size :])
        if zero != 0:
            raise ValueError("no Confluent framing")
        try:
            fields = fastavro.schemaless_reader(body, self._schema(schema_id), None)
        except (EOFError, IndexError) as cause:
            raise ValueError("no Avro of the schema that it names") from cause
        if body.read(1) or not isinstance(fields, dict) or set(fields) != JOINED_FIELDS:
            raise ValueError("fields other than the sink's")
        order_ms = _epoch_ms(fields["order_time"])
        if order_ms is None:
            raise ValueError("no order_time")
        product_ms = _epoch_ms(fields["product_time"])
        return JoinedRow(
            fields["order_id"], order_ms, fields["product_name"], product_ms, fields["price"]
        )

    def broken_values(self) -> Sequence[BrokenValue]:
        order = self._order.write({"order_id": "o_broken", "product_id": "p_001", "order_time": 0})
        scooter = {"product_id": "p_001", "product_name": "scooter", "product_price": _SCALE}
        return (
            ("JSON in an Avro topic", ORDERS, b'{"order_id":"o_broken","product_id":"p_001"}'),
            ("a prefix that breaks off", PRODUCTS, b"\x00\x00\x00"),
            ("an id that no schema has", ORDERS, _PREFIX.pack(0, _UNKNOWN_ID) + order[5:]),
            ("an order that breaks off", ORDERS, order[:-3]),
            ("a change that breaks off", PRODUCTS, self._broken(op="c", after=scooter)[:40]),
            ("an unknown operation", PRODUCTS, self._broken(op="x", after=scooter)),
            ("an update to nothing", PRODUCTS, self._broken(op="u", after=None)),
            ("an id that no schema has", PRODUCTS, _PREFIX.pack(0, _UNKNOWN_ID)),
        )

    def _broken(self, **fields: object) -> bytes:
        source = {"version": "", "connector": "", "name": "", "ts_ms": 0, "db": ""}
        source |= {"schema": "public", "table": "products"}
        return self._change.write({"source": source, **fields})

    def _schema(self, schema_id: int) -> Any:
        if schema_id not in self._schemas:
            answer = httpx.get(f"{self._url}/schemas/ids/{schema_id}", timeout=_TIMEOUT_S)
            if answer.status_code == httpx.codes.NOT_FOUND:
                raise ValueError(f"the registry has no schema {schema_id}")
            text = answer.raise_for_status().json()["schema"]
            self._schemas[schema_id] = fastavro.parse_schema(json.loads(text))
        return self._schemas[schema_id]


class _Writer:
    """Encodes values of one subject, which `schemas/` describes, framed with its schema's id."""

    def __init__(self, registry: RegistryClient, subject: str) -> None:
        text = (SCHEMAS / f"{subject}.avsc").read_text(encoding="utf-8")
        self._schema = fastavro.parse_schema(json.loads(text))
        self._prefix = _PREFIX.pack(0, registry.register(subject, WrittenSchema(text)))

    def write(self, fields: dict[str, Any]) -> bytes:
        body = io.BytesIO()
        fastavro.schemaless_writer(body, self._schema, fields)
        return self._prefix + body.getvalue()


def _exact_prices(envelope: Envelope) -> Envelope:
    """The rows before and after, with prices in the scale of the schema."""
    rows = {side: envelope[side] for side in ("before", "after")}
    return {
        side: row and {**row, "product_price": row["product_price"].quantize(_SCALE)}
        for side, row in rows.items()
    }


def _epoch_ms(moment: datetime | None) -> int | None:
    if moment is None:
        return None
    if moment.microsecond % 1_000:
        raise ValueError(f"{moment} is not a TIMESTAMP(3)")
    return round(moment.replace(tzinfo=UTC).timestamp() * 1_000)
