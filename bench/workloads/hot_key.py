"""`hot-key`: orders joined with their customer; one customer has a fifth of all records."""

from collections.abc import Iterator

from bench.avro import encode_long, encode_string, frame
from bench.workloads.records import DOUBLE, PARTITIONS, Expected, InputTopic, Record, random_bits

HOT = 0  # the customer
_HOT_SHARE = 0.2  # of all records

ORDERS = InputTopic(
    "orders", None, (("order_id", "long"), ("customer_id", "long"), ("amount", "double"))
)
CUSTOMERS = InputTopic(
    "customers", (("customer_id", "long"),), (("customer_id", "long"), ("name", "string"))
)
SQL = """\
CREATE TABLE orders (
  order_id BIGINT,
  customer_id BIGINT,
  amount DOUBLE
) WITH ($append_source, 'topic' = 'orders');

CREATE TABLE customers (
  customer_id BIGINT,
  name STRING,
  PRIMARY KEY (customer_id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'customers');

CREATE TABLE named_orders (
  order_id BIGINT,
  customer_id BIGINT,
  amount DOUBLE,
  name STRING,
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH ($upsert_sink);

INSERT INTO named_orders
SELECT o.order_id, o.customer_id, o.amount, c.name
FROM orders AS o
LEFT JOIN customers AS c ON o.customer_id = c.customer_id
ON CONFLICT DO DEDUPLICATE;
"""


class HotKeyData:
    """Three quarters of `rows` are orders. The hot customer has one record, halfway of its topic.

    One alone, because each would write all of that customer's orders anew.
    """

    topics = (ORDERS, CUSTOMERS)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = max(keys, 2)
        self.text_bytes: dict[str, float] = {}
        self._orders: list[tuple[int, float]] = []  # customer, amount
        self._names: dict[int, str] = {}

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        if topic is ORDERS:
            return self._append_orders(self.rows - self.rows // 4, frame(value_id))
        return self._customer_changes(self.rows // 4, frame(key_id), frame(value_id))

    def expected(self) -> Expected:
        """Expected rows by order: (order, customer, amount, name or None)."""
        return {
            order: (order, customer, amount, self._names.get(customer))
            for order, (customer, amount) in enumerate(self._orders)
        }

    def _append_orders(self, rows: int, value_frame: bytes) -> Iterator[Record]:
        hot_below = round(_HOT_SHARE * self.rows / rows * (1 << 31))
        draw = random_bits(20)
        for number, chance, customer, choice in zip(range(rows), draw, draw, draw, strict=False):
            customer = HOT if chance < hot_below else 1 + (customer * (self.keys - 1) >> 31)
            amount = choice % 100_000 / 100
            self._orders.append((customer, amount))
            value = encode_long(number) + encode_long(customer) + DOUBLE.pack(amount)
            yield number % PARTITIONS, None, value_frame + value

    def _customer_changes(
        self, rows: int, key_frame: bytes, value_frame: bytes
    ) -> Iterator[Record]:
        draw = random_bits(21)
        for number, customer, choice in zip(range(rows), draw, draw, strict=False):
            customer = HOT if number == rows // 2 else 1 + (customer * (self.keys - 1) >> 31)
            name = self._names[customer] = f"customer {choice % 1_000} of {customer}"
            key = encode_long(customer)
            yield customer % PARTITIONS, key_frame + key, value_frame + key + encode_string(name)
