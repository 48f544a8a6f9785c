"""Core's results against its topics, whoever has produced them and whatever was restarted.

The producer judges what it has sent itself, and after a restart knows nothing of what was before.
"""

import json
from collections import Counter
from collections.abc import Iterator
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

from spark_jobs.demo.json_encoding import JsonEncoding
from spark_jobs.demo.play import RESULTS
from spark_jobs.demo.shop import ORDERS, PRODUCTS, Order, Product, ProductChange
from spark_jobs.demo.verify import JoinedRow, RowAudit
from tests.e2e.topics import read_all

_SHOWN = 5


def problems(servers: str) -> list[str]:
    """What is wrong, doubled or missing; orders above the watermark have no row yet."""
    found = Counter(map(JsonEncoding().joined_row, _values(servers, RESULTS)))
    if not found:
        return ["no order has a row"]
    wanted = Counter(_expected(servers))
    joined_to_ms = max(row.order_ms for row in found)
    missing = [row for row in (wanted - found) if row.order_ms <= joined_to_ms]
    texts = [f"wrong or doubled: {row}" for row in (found - wanted)]
    return (texts + [f"missing: {row}" for row in missing])[:_SHOWN]


def _expected(servers: str) -> Iterator[JoinedRow]:
    audit = RowAudit(JsonEncoding().joined_row)
    for number, value in enumerate(_values(servers, PRODUCTS)):
        event = json.loads(value)
        before, after = _product(event["before"]), _product(event["after"])
        time_ms = event["source"]["ts_ms"]
        audit.history.add(ProductChange(number, event["op"], before, after, time_ms))
    for value in _values(servers, ORDERS):
        fields = json.loads(value)
        number = int(fields["order_id"].removeprefix("o_"))
        order = Order(number, fields["product_id"], _epoch_ms(fields["order_time"]))
        yield audit.expected(order)


def _values(servers: str, topic: str) -> Iterator[bytes]:
    for message in read_all(servers, [topic]):
        if (value := message.value()) is not None:
            yield value


def _product(row: dict[str, Any] | None) -> Product | None:
    if row is None:
        return None
    return Product(row["product_id"], row["product_name"], Decimal(row["product_price"]))


def _epoch_ms(text: str) -> int:
    moment = datetime.fromisoformat(text).replace(tzinfo=UTC)
    return round(moment.timestamp() * 1_000)
