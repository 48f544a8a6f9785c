"""`interval-left`: purchases joined with the parcel that is sent within ten minutes."""

from collections.abc import Iterator

from bench.avro import TIMESTAMP_MS, encode_instant, encode_long, frame
from bench.workloads.records import (
    CARRIERS,
    DISORDER_MS,
    DOUBLE,
    ENCODED_CARRIERS,
    PARTITIONS,
    SPAN_MS,
    START_MS,
    Expected,
    InputTopic,
    Record,
    mean_length,
    random_bits,
)

WINDOW_MS = 600_000  # of the join
_DELAYS = (5 / 60, 15 / 60)  # of parcels, as shares of the span: within the window and behind it

PURCHASES = InputTopic(
    "purchases",
    None,
    (("order_id", "long"), ("amount", "double"), ("placed_at", TIMESTAMP_MS)),
)
PARCELS = InputTopic(
    "parcels",
    None,
    (("order_id", "long"), ("carrier", "string"), ("sent_at", TIMESTAMP_MS)),
)
SQL = """\
CREATE TABLE purchases (
  order_id BIGINT,
  amount DOUBLE,
  placed_at TIMESTAMP(3),
  WATERMARK FOR placed_at AS placed_at - INTERVAL '5' SECOND
) WITH ($append_source, 'topic' = 'purchases');

CREATE TABLE parcels (
  order_id BIGINT,
  carrier STRING,
  sent_at TIMESTAMP(3),
  WATERMARK FOR sent_at AS sent_at - INTERVAL '5' SECOND
) WITH ($append_source, 'topic' = 'parcels');

CREATE TABLE sent (
  order_id BIGINT,
  amount DOUBLE,
  placed_at TIMESTAMP(3),
  carrier STRING
) WITH ($append_sink);

INSERT INTO sent
SELECT p.order_id, p.amount, p.placed_at, s.carrier
FROM purchases AS p
LEFT JOIN parcels AS s
ON p.order_id = s.order_id
AND s.sent_at BETWEEN p.placed_at AND p.placed_at + INTERVAL '10' MINUTE;
"""


class IntervalData:
    """Two append topics: purchases, each with an id of its own, and parcels; both unordered.

    A parcel of every other purchase is sent after five minutes, one of the others after fifteen. If
    there are more parcels than `keys` purchases, the rest are of purchases that never come.
    """

    topics = (PURCHASES, PARCELS)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = min(keys, rows // 2)
        self.text_bytes = {PARCELS.name: mean_length(CARRIERS)}
        self._purchases: list[tuple[float, int]] = []
        self._parcels: list[tuple[int, str, int]] = []

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        if topic is PURCHASES:
            return self._append_purchases(frame(value_id))
        return self._append_parcels(self.rows - self.keys, frame(value_id))

    def expected(self) -> Expected:
        """Expected rows by order: (order_id, amount, placed_at, carrier or None)."""
        rows: Expected = {
            order: (order, amount, at, None) for order, (amount, at) in enumerate(self._purchases)
        }
        for order, carrier, sent in self._parcels:
            if order < self.keys:
                amount, at = self._purchases[order]
                if at <= sent <= at + WINDOW_MS:
                    rows[order] = (order, amount, at, carrier)
        return rows

    def _append_purchases(self, value_frame: bytes) -> Iterator[Record]:
        draw = random_bits(5)
        for order, choice in zip(range(self.keys), draw, strict=False):
            amount = choice % 100_000 / 100
            at = START_MS + order * SPAN_MS // self.keys + (choice >> 4) % DISORDER_MS
            self._purchases.append((amount, at))
            value = encode_long(order) + DOUBLE.pack(amount) + encode_instant(at)
            yield order % PARTITIONS, None, value_frame + value

    def _append_parcels(self, rows: int, value_frame: bytes) -> Iterator[Record]:
        soon, late = (2 * round(self.keys * share / 2) for share in _DELAYS)
        draw = random_bits(6)
        for number, choice in zip(range(rows), draw, strict=False):
            placed, rest = divmod(number * self.keys, rows)
            order = placed - (late if placed % 2 else soon)
            if order < 0 or rest >= self.keys:  # the first parcel of a purchase is its only one
                order = self.keys + number
            carrier = choice % len(CARRIERS)
            at = START_MS + number * SPAN_MS // rows + (choice >> 4) % DISORDER_MS
            self._parcels.append((order, CARRIERS[carrier], at))
            value = encode_long(order) + ENCODED_CARRIERS[carrier] + encode_instant(at)
            yield number % PARTITIONS, None, value_frame + value
