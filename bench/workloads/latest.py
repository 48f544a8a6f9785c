"""`temporal-proc`: orders joined with the newest price, by processing time.

What a row sees depends on when it is read, so that only one case has one right answer: rejoin lets
orders wait until the prices that the topic had at the start are loaded. Each order sees the last.
"""

from collections.abc import Iterator

from bench.avro import encode_long, frame
from bench.workloads.records import DOUBLE, PARTITIONS, Expected, InputTopic, Record, random_bits

ORDERS = InputTopic(
    "orders", None, (("order_id", "long"), ("product_id", "long"), ("quantity", "int"))
)
PRICES = InputTopic(
    "prices", (("product_id", "long"),), (("product_id", "long"), ("price", "double"))
)
SQL = """\
CREATE TABLE orders (
  order_id BIGINT,
  product_id BIGINT,
  quantity INT,
  proc_time AS PROCTIME()
) WITH ($append_source, 'topic' = 'orders');

CREATE TABLE prices (
  product_id BIGINT,
  price DOUBLE,
  PRIMARY KEY (product_id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'prices');

CREATE TABLE priced (
  order_id BIGINT,
  product_id BIGINT,
  quantity INT,
  price DOUBLE
) WITH ($append_sink);

INSERT INTO priced
SELECT o.order_id, o.product_id, o.quantity, p.price
FROM orders AS o
LEFT JOIN prices FOR SYSTEM_TIME AS OF o.proc_time AS p
ON o.product_id = p.product_id;
"""


class LatestData:
    """Half of `rows` are prices of random products, half are orders; some products have none."""

    topics = (PRICES, ORDERS)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = keys
        self.text_bytes: dict[str, float] = {}
        self._prices: dict[int, float] = {}
        self._orders: list[tuple[int, int]] = []  # product, quantity

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        if topic is ORDERS:
            return self._append_orders(self.rows - self.rows // 2, frame(value_id))
        return self._price_changes(self.rows // 2, frame(key_id), frame(value_id))

    def expected(self) -> Expected:
        """Expected rows by order: (order, product, quantity, price or None)."""
        return {
            order: (order, product, quantity, self._prices.get(product))
            for order, (product, quantity) in enumerate(self._orders)
        }

    def _price_changes(self, rows: int, key_frame: bytes, value_frame: bytes) -> Iterator[Record]:
        draw = random_bits(11)
        for product, choice, _ in zip(draw, draw, range(rows), strict=False):
            product = product * self.keys >> 31
            price = self._prices[product] = choice % 100_000 / 100
            key = encode_long(product)
            yield product % PARTITIONS, key_frame + key, value_frame + key + DOUBLE.pack(price)

    def _append_orders(self, rows: int, value_frame: bytes) -> Iterator[Record]:
        draw = random_bits(12)
        for number, product, choice in zip(range(rows), draw, draw, strict=False):
            product, quantity = product * self.keys >> 31, 1 + choice % 9
            self._orders.append((product, quantity))
            value = encode_long(number) + encode_long(product) + bytes((quantity * 2,))
            yield number % PARTITIONS, None, value_frame + value
