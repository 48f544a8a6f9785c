"""Encodes the shop's events and decodes the job's rows, in JSON or Avro."""

import json
from collections.abc import Iterator, Sequence
from itertools import cycle
from pathlib import Path
from typing import Any, Protocol, TypeAlias

from spark_jobs.demo.shop import (
    ORDER_PARTITIONS,
    ORDERS,
    PRODUCTS,
    Order,
    Product,
    ProductChange,
    Record,
    ShopEvent,
)
from spark_jobs.demo.verify import JoinedRow

# the demo runs from a clone or in the image: a wheel has neither of these folders
_ROOT = Path(__file__).resolve().parents[2]
EXAMPLES = _ROOT / "examples"
SCHEMAS = _ROOT / "schemas"
Envelope: TypeAlias = dict[str, Any]
# what is wrong with it, the topic, the bytes
BrokenValue: TypeAlias = tuple[str, str, bytes]


class Encoding(Protocol):
    """Encodes orders and Debezium envelopes, decodes joined rows; also has values to reject."""

    @property
    def job_file(self) -> Path:
        """The job file whose tables have this encoding."""

    @property
    def registry_url(self) -> str | None:
        """Address of the schema registry; None if there are no schemas."""

    def order(self, order: Order) -> bytes:
        """The record value of an order."""

    def product_key(self, product_id: str) -> bytes:
        """The record key of a product's changes."""

    def change(self, envelope: Envelope) -> bytes:
        """The record value of a product's change."""

    def joined_row(self, value: bytes) -> JoinedRow:
        """Raises ValueError, TypeError or ArithmeticError if the value is no row of the sink."""

    def broken_values(self) -> Sequence[BrokenValue]:
        """Values that the job must reject, one for each kind of error."""


def records_of(event: ShopEvent, encoding: Encoding) -> list[Record]:
    """The Kafka records of an event; as in Debezium, a tombstone follows the record of a delete."""
    if isinstance(event, Order):
        partition = event.number % ORDER_PARTITIONS
        return [Record(ORDERS, partition, event.order_id.encode(), encoding.order(event))]
    key = encoding.product_key(event.product_id)
    records = [Record(PRODUCTS, 0, key, encoding.change(envelope(event)))]
    if event.op == "d":
        records.append(Record(PRODUCTS, 0, key, None))
    return records


def broken_records(broken_values: Sequence[BrokenValue]) -> Iterator[Record]:
    """An endless cycle through the broken values."""
    for n, (_, topic, value) in enumerate(cycle(broken_values)):
        partition = n // len(broken_values) % ORDER_PARTITIONS if topic == ORDERS else 0
        yield Record(topic, partition, f"broken_{n}".encode(), value)


def envelope(change: ProductChange) -> Envelope:
    """The record value that Debezium 3.6 writes for PostgreSQL with REPLICA IDENTITY FULL."""
    lsn = 31_721_016 + 152 * change.number
    source = {
        "version": "3.6.3.Final",
        "connector": "postgresql",
        "name": "shop",
        "ts_ms": change.time_ms,
        "snapshot": "true" if change.op == "r" else "false",
        "db": "shop",
        "sequence": json.dumps([str(lsn - 152), str(lsn)]),
        "ts_us": change.time_ms * 1_000,
        "ts_ns": change.time_ms * 1_000_000,
        "schema": "public",
        "table": "products",
        "txId": 850 + change.number,
        "lsn": lsn,
        "xmin": None,
    }
    return {
        "before": _table_row(change.before),
        "after": _table_row(change.after),
        "source": source,
        "transaction": None,
        "op": change.op,
        "ts_ms": change.time_ms + 3,  # when the connector read the change
    }


def _table_row(product: Product | None) -> dict[str, object] | None:
    if product is None:
        return None
    return {
        "product_id": product.product_id,
        "product_name": product.name,
        "product_price": product.price,
    }
