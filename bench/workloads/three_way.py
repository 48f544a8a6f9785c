"""`three-way`: two left joins of three upsert topics on one key.

Only bookings, the left table, are deleted: FLINK-40681 (see `regular`).
"""

from collections.abc import Iterator

from bench.avro import encode_long, encode_string, frame
from bench.workloads.records import (
    CARRIERS,
    DOUBLE,
    ENCODED_CARRIERS,
    PARTITIONS,
    Expected,
    InputTopic,
    Record,
    random_bits,
)

_METHODS = ("card", "transfer", "invoice", "cash on delivery")
_ENCODED_METHODS = tuple(encode_string(text) for text in _METHODS)
_DELETE_BELOW = (1 << 31) // 100

BOOKINGS = InputTopic("bookings", (("id", "long"),), (("id", "long"), ("amount", "double")))
PAYMENTS = InputTopic(
    "payments", (("id", "long"),), (("id", "long"), ("method", "string"), ("paid", "double"))
)
PARCELS = InputTopic("parcels", (("id", "long"),), (("id", "long"), ("carrier", "string")))
SQL = """\
CREATE TABLE bookings (
  id BIGINT,
  amount DOUBLE,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'bookings');

CREATE TABLE payments (
  id BIGINT,
  `method` STRING,
  paid DOUBLE,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'payments');

CREATE TABLE parcels (
  id BIGINT,
  carrier STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'parcels');

CREATE TABLE settled (
  id BIGINT,
  amount DOUBLE,
  `method` STRING,
  paid DOUBLE,
  carrier STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_sink);

INSERT INTO settled
SELECT b.id, b.amount, p.`method`, p.paid, s.carrier
FROM bookings AS b
LEFT JOIN payments AS p ON b.id = p.id
LEFT JOIN parcels AS s ON b.id = s.id;
"""


class ThreeWayData:
    """A third of `rows` in each topic, of random keys."""

    topics = (BOOKINGS, PAYMENTS, PARCELS)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = keys
        self.text_bytes: dict[str, float] = {}
        self._bookings: dict[int, float] = {}
        self._payments: dict[int, tuple[str, float]] = {}
        self._parcels: dict[int, str] = {}

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        third = self.rows // 3
        rows = self.rows - 2 * third if topic is BOOKINGS else third
        seed = 13 + self.topics.index(topic)
        draw = random_bits(seed)
        key_frame, value_frame = frame(key_id), frame(value_id)
        for key, choice, _ in zip(draw, draw, range(rows), strict=False):
            key = key * self.keys >> 31
            encoded = encode_long(key)
            rest = self._change(topic, key, choice)
            value = None if rest is None else value_frame + encoded + rest
            yield key % PARTITIONS, key_frame + encoded, value

    def expected(self) -> Expected:
        """Expected rows by id: (id, amount, method, paid, carrier)."""
        unpaid = (None, None)
        return {
            key: (key, amount, *self._payments.get(key, unpaid), self._parcels.get(key))
            for key, amount in self._bookings.items()
        }

    def _change(self, topic: InputTopic, key: int, choice: int) -> bytes | None:
        """Change the row of this key; its columns behind the key, None if it is deleted."""
        amount = choice % 100_000 / 100
        if topic is BOOKINGS:
            if choice < _DELETE_BELOW and key in self._bookings:
                del self._bookings[key]
                return None
            self._bookings[key] = amount
            return DOUBLE.pack(amount)
        if topic is PAYMENTS:
            method = choice % len(_METHODS)
            self._payments[key] = (_METHODS[method], amount)
            return _ENCODED_METHODS[method] + DOUBLE.pack(amount)
        carrier = choice % len(CARRIERS)
        self._parcels[key] = CARRIERS[carrier]
        return ENCODED_CARRIERS[carrier]
