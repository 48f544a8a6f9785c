"""`regular-upsert`: two upsert topics joined on their common primary key."""

from collections.abc import Iterator

from bench.avro import TIMESTAMP_MS, AvroField, encode_instant, encode_long, encode_string, frame
from bench.workloads.records import (
    CARRIERS,
    DOUBLE,
    ENCODED_CARRIERS,
    PARTITIONS,
    START_MS,
    Expected,
    InputTopic,
    Record,
    Row,
    mean_length,
    random_bits,
)

NOTES = tuple(f"note {n:04d}, please leave at the door" for n in range(997))
_LETTERS = "abcdefghijklmnopqrstuvwxyz"

ORDERS_A = InputTopic(
    "orders_a",
    (("id", "long"),),
    (("id", "long"), ("amount", "double"), ("note", "string"), ("placed_at", TIMESTAMP_MS)),
)
ORDERS_B = InputTopic(
    "orders_b",
    (("id", "long"),),
    (("id", "long"), ("carrier", "string"), ("weight", "int")),
)
# of the result, for engines that do not derive it from SQL
SHIPPED: tuple[AvroField, ...] = (
    *ORDERS_A.value,
    *((name, ["null", kind]) for name, kind in ORDERS_B.value[1:]),
)
SQL = """\
CREATE TABLE orders_a (
  id BIGINT,
  amount DOUBLE,
  note STRING,
  placed_at TIMESTAMP(3),
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'orders_a');

CREATE TABLE orders_b (
  id BIGINT,
  carrier STRING,
  weight INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'orders_b');

CREATE TABLE shipped (
  id BIGINT,
  amount DOUBLE,
  note STRING,
  placed_at TIMESTAMP(3),
  carrier STRING,
  weight INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_sink);

INSERT INTO shipped
SELECT a.id, a.amount, a.note, a.placed_at, b.carrier, b.weight
FROM orders_a AS a
LEFT JOIN orders_b AS b ON a.id = b.id;
"""


def orders_a(rows: int, keys: int, notes: int) -> Iterator[tuple[int, float, int, int]]:
    """Key, amount, number of the note and time of each left record, in order."""
    draw = random_bits(1)
    for key, choice, number in zip(draw, draw, range(rows), strict=False):
        yield key * keys >> 31, choice % 100_000 / 100, choice % notes, START_MS + number


class RegularData:
    """Two upsert topics with the same keys and half of `rows` each.

    There are no deletes, so that each setting of Flink can count (FLINK-40681). On the right, Flink
    2.3.0 loses the left row when an updated right row is deleted, or when a tombstone arrives for a
    right row that never existed. On either side, mini-batches lose a delete that follows an update.
    """

    topics = (ORDERS_A, ORDERS_B)

    def __init__(self, rows: int, keys: int, note_bytes: int = 0) -> None:
        """`note_bytes`: the length of each note, then of random letters, which hardly compress."""
        self.rows = rows
        self.keys = keys
        self._notes = NOTES
        if note_bytes:
            bits = random_bits(note_bytes)
            letters = "".join(_LETTERS[next(bits) % 26] for _ in range(note_bytes * len(NOTES)))
            starts = range(0, len(letters), note_bytes)
            self._notes = tuple(letters[start : start + note_bytes] for start in starts)
        self.text_bytes = {
            ORDERS_A.name: mean_length(self._notes),
            ORDERS_B.name: mean_length(CARRIERS),
        }
        self._left: list[Row | None] = [None] * keys
        self._right: list[Row] = [(None, None)] * keys

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        if topic is ORDERS_A:
            return self._orders_a(self.rows - self.rows // 2, frame(key_id), frame(value_id))
        return self._orders_b(self.rows // 2, frame(key_id), frame(value_id))

    def expected(self) -> Expected:
        """Expected rows by id: (id, amount, note, placed_at, carrier, weight)."""
        pairs = enumerate(zip(self._left, self._right, strict=True))
        return {key: (key, *left, *right) for key, (left, right) in pairs if left is not None}

    def _orders_a(self, rows: int, key_frame: bytes, value_frame: bytes) -> Iterator[Record]:
        encoded = [encode_long(key) for key in range(self.keys)]
        notes, encoded_notes = self._notes, tuple(encode_string(text) for text in self._notes)
        for key, amount, note, at in orders_a(rows, self.keys, len(notes)):
            self._left[key] = (amount, notes[note], at)
            value = encoded[key] + DOUBLE.pack(amount) + encoded_notes[note] + encode_instant(at)
            yield key % PARTITIONS, key_frame + encoded[key], value_frame + value

    def _orders_b(self, rows: int, key_frame: bytes, value_frame: bytes) -> Iterator[Record]:
        encoded = [encode_long(key) for key in range(self.keys)]
        weights = [encode_long(weight) for weight in range(5_000)]
        draw = random_bits(2)
        for key, choice, _ in zip(draw, draw, range(rows), strict=False):
            key = key * self.keys >> 31
            carrier, weight = choice % len(CARRIERS), choice % len(weights)
            self._right[key] = (CARRIERS[carrier], weight)
            value = encoded[key] + ENCODED_CARRIERS[carrier] + weights[weight]
            yield key % PARTITIONS, key_frame + encoded[key], value_frame + value
