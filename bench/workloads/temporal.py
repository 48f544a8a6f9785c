"""`temporal-left`: orders joined with the price of their own time."""

from array import array
from bisect import bisect_right
from collections.abc import Iterator

from bench.avro import TIMESTAMP_MS, encode_instant, encode_long, frame
from bench.workloads.records import (
    DISORDER_MS,
    DOUBLE,
    PARTITIONS,
    SPAN_MS,
    START_MS,
    Expected,
    InputTopic,
    Record,
    random_bits,
)

ORDERS = InputTopic(
    "orders",
    None,
    (
        ("order_id", "long"),
        ("product_id", "long"),
        ("quantity", "int"),
        ("order_time", TIMESTAMP_MS),
    ),
)
PRICES = InputTopic(
    "prices",
    (("product_id", "long"),),
    (("product_id", "long"), ("price", "double"), ("changed_at", TIMESTAMP_MS)),
)
SQL = """\
CREATE TABLE orders (
  order_id BIGINT,
  product_id BIGINT,
  quantity INT,
  order_time TIMESTAMP(3),
  WATERMARK FOR order_time AS order_time - INTERVAL '5' SECOND
) WITH ($append_source, 'topic' = 'orders');

CREATE TABLE prices (
  product_id BIGINT,
  price DOUBLE,
  changed_at TIMESTAMP(3),
  PRIMARY KEY (product_id) NOT ENFORCED,
  WATERMARK FOR changed_at AS changed_at - INTERVAL '5' SECOND
) WITH ($upsert_source, 'topic' = 'prices');

CREATE TABLE priced (
  order_id BIGINT,
  product_id BIGINT,
  quantity INT,
  order_time TIMESTAMP(3),
  price DOUBLE
) WITH ($append_sink);

INSERT INTO priced
SELECT o.order_id, o.product_id, o.quantity, o.order_time, p.price
FROM orders AS o
LEFT JOIN prices FOR SYSTEM_TIME AS OF o.order_time AS p
ON o.product_id = p.product_id;
"""


class TemporalData:
    """An append topic with three quarters of `rows` and a topic of price versions; both unordered.

    No product has two versions at the same time, because the result would be undefined.
    """

    topics = (ORDERS, PRICES)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = keys
        self.text_bytes: dict[str, float] = {}
        self._orders = (array("q"), array("q"), array("q"))  # product, quantity, time by order id
        self._versions: list[list[tuple[int, float]]] = [[] for _ in range(keys)]

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        if topic is ORDERS:
            return self._append_orders(self.rows - self.rows // 4, frame(value_id))
        return self._price_versions(self.rows // 4, frame(key_id), frame(value_id))

    def expected(self) -> Expected:
        """Expected rows by order: (order_id, product_id, quantity, order_time, price or None)."""
        histories = [sorted(versions) for versions in self._versions]
        times = [[time for time, _ in history] for history in histories]
        rows: Expected = {}
        for order, (product, quantity, at) in enumerate(zip(*self._orders, strict=True)):
            version = bisect_right(times[product], at)
            price = histories[product][version - 1][1] if version else None
            rows[order] = (order, product, quantity, at, price)
        return rows

    def _append_orders(self, rows: int, value_frame: bytes) -> Iterator[Record]:
        encoded = [encode_long(key) for key in range(self.keys)]
        products, quantities, times = self._orders
        draw = random_bits(3)
        for number, product, choice in zip(range(rows), draw, draw, strict=False):
            product = product * self.keys >> 31
            quantity = 1 + choice % 9
            at = START_MS + number * SPAN_MS // rows + (choice >> 4) % DISORDER_MS
            products.append(product)
            quantities.append(quantity)
            times.append(at)
            value = encode_long(number) + encoded[product] + bytes((quantity * 2,))
            yield number % PARTITIONS, None, value_frame + value + encode_instant(at)

    def _price_versions(self, rows: int, key_frame: bytes, value_frame: bytes) -> Iterator[Record]:
        encoded = [encode_long(key) for key in range(self.keys)]
        draw = random_bits(4)
        for number, product, choice in zip(range(rows), draw, draw, strict=False):
            product = product * self.keys >> 31
            price = choice % 100_000 / 100
            at = START_MS + number * SPAN_MS // rows + (choice >> 4) % DISORDER_MS
            history = self._versions[product]
            while any(at == time for time, _ in history[-8:]):
                at += 1
            history.append((at, price))
            value = encoded[product] + DOUBLE.pack(price) + encode_instant(at)
            yield product % PARTITIONS, key_frame + encoded[product], value_frame + value
