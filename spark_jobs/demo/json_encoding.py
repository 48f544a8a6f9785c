"""The shop's records in JSON without schemas; decimals are strings, as Debezium can write them."""

import json
from collections.abc import Sequence
from datetime import UTC, datetime
from decimal import Decimal
from pathlib import Path

from spark_jobs.demo.encoding import EXAMPLES, BrokenValue, Envelope
from spark_jobs.demo.shop import ORDERS, PRODUCTS, Order, sql_time
from spark_jobs.demo.verify import JOINED_FIELDS, JoinedRow

_ORDER = {"order_id": "o_broken", "product_id": "p_001"}
_ROW = {"product_id": "p_001", "product_name": "scooter", "product_price": "1.0000"}
_SOURCE = {"connector": "postgresql", "ts_ms": 1_597_449_660_000, "snapshot": "false"}


class JsonEncoding:
    """One JSON object per record."""

    @property
    def job_file(self) -> Path:
        return EXAMPLES / "shop.sql"

    @property
    def registry_url(self) -> None:
        return None

    def order(self, order: Order) -> bytes:
        return _json(
            {
                "order_id": order.order_id,
                "product_id": order.product_id,
                "order_time": sql_time(order.time_ms),
            }
        )

    def product_key(self, product_id: str) -> bytes:
        return _json({"product_id": product_id})

    def change(self, envelope: Envelope) -> bytes:
        return _json(envelope)

    def joined_row(self, value: bytes) -> JoinedRow:
        fields = json.loads(value, parse_float=Decimal, parse_int=Decimal)
        if not isinstance(fields, dict) or set(fields) != JOINED_FIELDS:
            raise ValueError("fields other than the sink's")
        order_ms = _epoch_ms(fields["order_time"])
        if order_ms is None:
            raise ValueError("no order_time")
        price = fields["price"]
        if not (price is None or isinstance(price, Decimal)):
            raise ValueError("price is not a number")
        return JoinedRow(
            order_id=str(fields["order_id"]),
            order_ms=order_ms,
            product_name=fields["product_name"],
            product_ms=_epoch_ms(fields["product_time"]),
            price=price,
        )

    def broken_values(self) -> Sequence[BrokenValue]:
        return (
            ("JSON that breaks off", ORDERS, b'{"order_id":"o_broken","product_id":'),
            (
                "an envelope without payload",
                PRODUCTS,
                b'{"schema":{"type":"struct","name":"shop.public.products.Envelope"}}',
            ),
            (
                "a time that is none",
                ORDERS,
                _json({**_ORDER, "order_time": "yesterday at noon"}),
            ),
            (
                "a price that is none",
                PRODUCTS,
                _envelope(op="c", after={**_ROW, "product_price": "eleven"}),
            ),
            ("bytes that are no text", ORDERS, b"\x00\x00\x01\xff\xfe\xc3("),
            ("an unknown operation", PRODUCTS, _envelope(op="x")),
            ("an array where an object belongs", ORDERS, b'["o_broken","p_001"]'),
            ("an update to nothing", PRODUCTS, _envelope(op="u", after=None)),
        )


def _envelope(**fields: object) -> bytes:
    return _json({"before": None, "after": _ROW, "source": _SOURCE, **fields})


def _json(value: object) -> bytes:
    return json.dumps(value, separators=(",", ":"), default=_decimal_text).encode()


def _decimal_text(value: object) -> str:
    if not isinstance(value, Decimal):
        raise TypeError(f"{value!r} has no JSON form")
    return f"{value:.4f}"


def _epoch_ms(text: str | None) -> int | None:
    """Parse a TIMESTAMP(3); its fraction may be short, because Flink omits trailing zeros."""
    if text is None:
        return None
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None or moment.microsecond % 1_000:
        raise ValueError(f"{text} is not a TIMESTAMP(3)")
    return round(moment.replace(tzinfo=UTC).timestamp() * 1_000)
