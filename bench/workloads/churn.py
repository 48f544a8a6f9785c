"""`regular-outer-churn`: orders, and shipments that come, change, move to other orders and go.

Shipments have a key of their own, and the sink takes rows back. Flink then keeps complete rows of
both inputs (ChangelogNormalize), so that it does not meet FLINK-40681 (see `regular`).
"""

from collections.abc import Iterator

from bench.avro import encode_long, frame
from bench.workloads.records import (
    CARRIERS,
    DOUBLE,
    ENCODED_CARRIERS,
    PARTITIONS,
    Expected,
    InputTopic,
    Record,
    Row,
    random_bits,
)

_GO_BELOW = (1 << 31) * 2 // 5

ORDERS = InputTopic("orders", (("order_id", "long"),), (("order_id", "long"), ("amount", "double")))
SHIPMENTS = InputTopic(
    "shipments",
    (("shipment_id", "long"),),
    (("shipment_id", "long"), ("order_id", "long"), ("carrier", "string")),
)
SQL = """\
CREATE TABLE orders (
  order_id BIGINT,
  amount DOUBLE,
  PRIMARY KEY (order_id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'orders');

CREATE TABLE shipments (
  shipment_id BIGINT,
  order_id BIGINT,
  carrier STRING,
  PRIMARY KEY (shipment_id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'shipments');

CREATE TABLE under_way (
  order_id BIGINT,
  shipment_id BIGINT,
  amount DOUBLE,
  carrier STRING
) WITH ($retract_sink);

INSERT INTO under_way
SELECT o.order_id, s.shipment_id, o.amount, s.carrier
FROM orders AS o
LEFT JOIN shipments AS s ON o.order_id = s.order_id;
"""


class ChurnData:
    """A quarter of `rows` are orders. Of a shipment that exists, two records in five delete it."""

    topics = (ORDERS, SHIPMENTS)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = keys  # as many orders as shipments
        self.text_bytes: dict[str, float] = {}
        self._orders: dict[int, float] = {}  # amount
        self._shipments: dict[int, tuple[int, str]] = {}  # order, carrier

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        if topic is ORDERS:
            return self._order_changes(self.rows // 4, frame(key_id), frame(value_id))
        rows = self.rows - self.rows // 4
        return self._shipment_changes(rows, frame(key_id), frame(value_id))

    def expected(self) -> Expected:
        """Expected rows by order and shipment: (order, shipment, amount, carrier)."""
        rows: Expected = {}
        shipped = set()
        for shipment, (order, carrier) in self._shipments.items():
            if order in self._orders:
                shipped.add(order)
                row: Row = (order, shipment, self._orders[order], carrier)
                rows[order, shipment] = row
        for order, amount in self._orders.items():
            if order not in shipped:
                rows[order, None] = (order, None, amount, None)
        return rows

    def _order_changes(self, rows: int, key_frame: bytes, value_frame: bytes) -> Iterator[Record]:
        draw = random_bits(9)
        for order, choice, _ in zip(draw, draw, range(rows), strict=False):
            order = order * self.keys >> 31
            amount = self._orders[order] = choice % 100_000 / 100
            key = encode_long(order)
            yield order % PARTITIONS, key_frame + key, value_frame + key + DOUBLE.pack(amount)

    def _shipment_changes(
        self, rows: int, key_frame: bytes, value_frame: bytes
    ) -> Iterator[Record]:
        draw = random_bits(10)
        for shipment, choice, order, _ in zip(draw, draw, draw, range(rows), strict=False):
            shipment = shipment * self.keys >> 31
            key, known = encode_long(shipment), self._shipments.get(shipment)
            if known is not None and choice < _GO_BELOW:
                del self._shipments[shipment]
                yield shipment % PARTITIONS, key_frame + key, None
                continue
            carrier = choice % len(CARRIERS)
            moves = known is None or order & 1
            order = order * self.keys >> 31 if moves or known is None else known[0]
            self._shipments[shipment] = (order, CARRIERS[carrier])
            value = key + encode_long(order) + ENCODED_CARRIERS[carrier]
            yield shipment % PARTITIONS, key_frame + key, value_frame + value
