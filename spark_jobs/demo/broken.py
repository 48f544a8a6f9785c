"""Records that no reader of the shop's tables can decode, one for each way to go wrong."""

import json
from collections.abc import Iterator
from itertools import cycle

from spark_jobs.demo.shop import ORDER_PARTITIONS, ORDERS, PRODUCTS, Record

_ORDER = {"order_id": "o_broken", "product_id": "p_001"}
_ROW = {"product_id": "p_001", "product_name": "scooter", "product_price": "1.0000"}
_SOURCE = {"connector": "postgresql", "ts_ms": 1_597_449_660_000, "snapshot": "false"}


def _envelope(**fields: object) -> bytes:
    return json.dumps({"before": None, "after": _ROW, "source": _SOURCE, **fields}).encode()


# what is wrong, the topic, the value
_KINDS: tuple[tuple[str, str, bytes], ...] = (
    ("JSON that breaks off", ORDERS, b'{"order_id":"o_broken","product_id":'),
    (
        "an envelope without payload",
        PRODUCTS,
        b'{"schema":{"type":"struct","name":"shop.public.products.Envelope"}}',
    ),
    (
        "a time that is none",
        ORDERS,
        json.dumps({**_ORDER, "order_time": "yesterday at noon"}).encode(),
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
KINDS = len(_KINDS)


def broken_records() -> Iterator[Record]:
    """Without end; every kind once among the first `KINDS`."""
    for n, (_, topic, value) in enumerate(cycle(_KINDS)):
        partition = n // KINDS % ORDER_PARTITIONS if topic == ORDERS else 0
        yield Record(topic, partition, f"broken_{n}".encode(), value)
