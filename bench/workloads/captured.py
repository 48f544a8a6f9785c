"""`debezium-avro`: two tables as Debezium captures them, Avro through the registry, left join.

Only the left table has deletes: FLINK-40681 (see `regular`).
"""

from collections.abc import Iterator
from typing import Any

from bench.avro import AvroField, encode_instant, encode_long, encode_string, frame
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
    random_bits,
)

_DELETE_BELOW = (1 << 31) // 100
_NOTES = tuple(f"note {n:03d}, ring twice" for n in range(499))
_ENCODED_NOTES = tuple(encode_string(text) for text in _NOTES)
_NULL, _PRESENT = b"\x00", b"\x02"  # branches of a union
_OPERATIONS = {kind: encode_string(kind) for kind in "cud"}
_SOURCE: tuple[AvroField, ...] = (
    ("version", "string"),
    ("connector", "string"),
    ("name", "string"),
    ("ts_ms", "long"),
    ("snapshot", "string"),
    ("db", "string"),
    ("schema", "string"),
    ("table", "string"),
    ("txId", "long"),
    ("lsn", "long"),
)


def _record(name: str, fields: tuple[AvroField, ...]) -> dict[str, Any]:
    described = [{"name": field, "type": kind} for field, kind in fields]
    return {"type": "record", "name": name, "fields": described}


def _captured(table: str, columns: tuple[AvroField, ...]) -> InputTopic:
    """The topic of a table: its key, and Debezium's envelope."""
    envelope: tuple[AvroField, ...] = (
        ("before", ["null", _record(f"{table}_row", columns)]),
        ("after", ["null", f"{table}_row"]),
        ("source", _record(f"{table}_source", _SOURCE)),
        ("op", "string"),
        ("ts_ms", ["null", "long"]),
    )
    return InputTopic(f"shop.public.{table}", columns[:1], envelope)


ORDERS = _captured("orders", (("id", "long"), ("amount", "double"), ("note", "string")))
SHIPMENTS = _captured("shipments", (("id", "long"), ("carrier", "string"), ("weight", "int")))
SQL = """\
CREATE TABLE orders (
  id BIGINT,
  amount DOUBLE,
  note STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($debezium_source, 'topic' = 'shop.public.orders');

CREATE TABLE shipments (
  id BIGINT,
  carrier STRING,
  weight INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($debezium_source, 'topic' = 'shop.public.shipments');

CREATE TABLE shipped (
  id BIGINT,
  amount DOUBLE,
  note STRING,
  carrier STRING,
  weight INT,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_sink);

INSERT INTO shipped
SELECT o.id, o.amount, o.note, s.carrier, s.weight
FROM orders AS o
LEFT JOIN shipments AS s ON o.id = s.id;
"""


class CapturedData:
    """Half of `rows` in each topic. A delete is two records: its event, then a tombstone."""

    topics = (ORDERS, SHIPMENTS)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = keys
        self.text_bytes: dict[str, float] = {}
        self._tables: dict[str, dict[int, tuple[Row, bytes]]] = {t.name: {} for t in self.topics}

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        rows = self.rows - self.rows // 2 if topic is ORDERS else self.rows // 2
        draw = random_bits(16 if topic is ORDERS else 17)
        key_frame, value_frame = frame(key_id), frame(value_id)
        table, origin = self._tables[topic.name], _Origin(topic.name.rpartition(".")[2])
        written = 0
        while written < rows:
            key, choice = next(draw) * self.keys >> 31, next(draw)
            known = table.get(key)
            home, framed = key % PARTITIONS, key_frame + encode_long(key)
            before = _NULL if known is None else _PRESENT + known[1]
            if topic is ORDERS and known is not None and choice < _DELETE_BELOW:
                del table[key]
                yield home, framed, value_frame + before + _NULL + origin.rest("d", written)
                written += 1
                if written < rows:
                    yield home, framed, None
                    written += 1
                continue
            row, encoded = _columns(topic, key, choice)
            table[key] = row, encoded
            operation = "c" if known is None else "u"
            value = before + _PRESENT + encoded + origin.rest(operation, written)
            yield home, framed, value_frame + value
            written += 1

    def expected(self) -> Expected:
        """Expected rows by id: (id, amount, note, carrier, weight)."""
        orders, shipments = (self._tables[topic.name] for topic in self.topics)
        none = ((None, None, None), b"")
        return {key: (*row, *shipments.get(key, none)[0][1:]) for key, (row, _) in orders.items()}


def _columns(topic: InputTopic, key: int, choice: int) -> tuple[Row, bytes]:
    """The row, and its Avro encoding."""
    if topic is ORDERS:
        amount, note = choice % 100_000 / 100, choice % len(_NOTES)
        encoded = encode_long(key) + DOUBLE.pack(amount) + _ENCODED_NOTES[note]
        return (key, amount, _NOTES[note]), encoded
    carrier, weight = choice % len(CARRIERS), choice % 5_000
    encoded = encode_long(key) + ENCODED_CARRIERS[carrier] + encode_long(weight)
    return (key, CARRIERS[carrier], weight), encoded


class _Origin:
    """What Debezium says of a change beside the row: its place in the log, kind and time."""

    def __init__(self, table: str) -> None:
        self._head = b"".join(map(encode_string, ("3.3.1.Final", "postgresql", "shop")))
        self._middle = b"".join(map(encode_string, ("false", "shop", "public", table)))

    def rest(self, operation: str, number: int) -> bytes:
        at = encode_instant(START_MS + number)
        where = self._middle + encode_long(750 + number) + encode_long(24_000_000 + 96 * number)
        return self._head + at + where + _OPERATIONS[operation] + _PRESENT + at
