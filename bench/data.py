"""Generates the benchmark's input and the expected result, the same in every run.

It has its own random generator, because the numbers of Python's may change between versions.
"""

import struct
from array import array
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from bench.avro import (
    TIMESTAMP_MS,
    AvroField,
    encode_instant,
    encode_long,
    encode_string,
    frame,
    record_schema,
)

PARTITIONS = 2
START_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
SPAN_MS = 3_600_000  # range of event time in a topic
DISORDER_MS = 4_000  # less than the 5 s delay of the watermarks, so that no row is late
WINDOW_MS = 600_000  # of the interval join
_DELAYS = (5 / 60, 15 / 60)  # of parcels, as shares of the span: within the window and behind it

Record: TypeAlias = tuple[int, bytes | None, bytes | None]  # partition, key, value
Row: TypeAlias = tuple[object, ...]
Expected: TypeAlias = dict[int, Row]  # the sink's row (times in epoch milliseconds) by its key

_DOUBLE = struct.Struct("<d")
_NOTES = tuple(f"note {n:04d}, please leave at the door" for n in range(997))
_CARRIERS = ("swift", "northern", "parcel & sons", "by hand", "harbour line")
_ENCODED_CARRIERS = tuple(encode_string(text) for text in _CARRIERS)
_DELETE_BELOW = (1 << 31) // 100
_INTERLEAVE = 0x9E3779B97F4A7C15


def _mean(texts: Sequence[str]) -> float:
    return sum(map(len, texts)) / len(texts)


def _random(seed: int) -> Iterator[int]:
    """31 random bits each: the upper half of Knuth's 64-bit linear congruential generator."""
    state = (seed + 1) * _INTERLEAVE & 0xFFFFFFFFFFFFFFFF
    while True:
        state = state * 6364136223846793005 + 1442695040888963407 & 0xFFFFFFFFFFFFFFFF
        yield state >> 33


@dataclass(frozen=True, slots=True)
class InputTopic:
    """A topic and the Avro fields of its records; `key` is None if records have no key."""

    name: str
    key: tuple[AvroField, ...] | None
    value: tuple[AvroField, ...]

    def schemas(self) -> dict[str, str]:
        """The schemas by registry subject."""
        found = {f"{self.name}-value": record_schema(f"{self.name}_value", self.value)}
        if self.key is not None:
            found[f"{self.name}-key"] = record_schema(f"{self.name}_key", self.key)
        return found


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
PRICES = InputTopic(
    "prices",
    (("product_id", "long"),),
    (("product_id", "long"), ("price", "double"), ("changed_at", TIMESTAMP_MS)),
)


class RegularData:
    """Two upsert topics with the same keys and half of `rows` each; 1 % of left rows are deletes.

    There are no deletes on the right: Flink 2.3.0 loses the left row when an updated right row is
    deleted (FLINK-40681), or when a tombstone arrives for a right row that never existed.
    """

    topics = (ORDERS_A, ORDERS_B)

    def __init__(self, rows: int, keys: int, note_bytes: int = 0) -> None:
        """`note_bytes`: how long each note is, 0 for the short ones."""
        self.rows = rows
        self.keys = keys
        self._notes = tuple((text * (note_bytes // len(text) + 1))[:note_bytes] for text in _NOTES)
        if not note_bytes:
            self._notes = _NOTES
        self.text_bytes = {ORDERS_A.name: _mean(self._notes), ORDERS_B.name: _mean(_CARRIERS)}
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
        draw = _random(1)
        for key, choice, number in zip(draw, draw, range(rows), strict=False):
            key = key * self.keys >> 31
            if choice < _DELETE_BELOW and self._left[key] is not None:
                self._left[key] = None
                yield key % PARTITIONS, key_frame + encoded[key], None
                continue
            amount, note, at = choice % 100_000 / 100, choice % len(notes), START_MS + number
            self._left[key] = (amount, notes[note], at)
            value = encoded[key] + _DOUBLE.pack(amount) + encoded_notes[note] + encode_instant(at)
            yield key % PARTITIONS, key_frame + encoded[key], value_frame + value

    def _orders_b(self, rows: int, key_frame: bytes, value_frame: bytes) -> Iterator[Record]:
        encoded = [encode_long(key) for key in range(self.keys)]
        weights = [encode_long(weight) for weight in range(5_000)]
        draw = _random(2)
        for key, choice, _ in zip(draw, draw, range(rows), strict=False):
            key = key * self.keys >> 31
            carrier, weight = choice % len(_CARRIERS), choice % len(weights)
            self._right[key] = (_CARRIERS[carrier], weight)
            value = encoded[key] + _ENCODED_CARRIERS[carrier] + weights[weight]
            yield key % PARTITIONS, key_frame + encoded[key], value_frame + value


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
        draw = _random(3)
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
        draw = _random(4)
        for number, product, choice in zip(range(rows), draw, draw, strict=False):
            product = product * self.keys >> 31
            price = choice % 100_000 / 100
            at = START_MS + number * SPAN_MS // rows + (choice >> 4) % DISORDER_MS
            history = self._versions[product]
            while any(at == time for time, _ in history[-8:]):
                at += 1
            history.append((at, price))
            value = encoded[product] + _DOUBLE.pack(price) + encode_instant(at)
            yield product % PARTITIONS, key_frame + encoded[product], value_frame + value


class IntervalData:
    """Two append topics: purchases, each with an id of its own, and parcels; both unordered.

    A parcel of every other purchase is sent after five minutes, one of the others after fifteen. If
    there are more parcels than `keys` purchases, the rest are of purchases that never come.
    """

    topics = (PURCHASES, PARCELS)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = min(keys, rows // 2)
        self.text_bytes = {PARCELS.name: _mean(_CARRIERS)}
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
        draw = _random(5)
        for order, choice in zip(range(self.keys), draw, strict=False):
            amount = choice % 100_000 / 100
            at = START_MS + order * SPAN_MS // self.keys + (choice >> 4) % DISORDER_MS
            self._purchases.append((amount, at))
            value = encode_long(order) + _DOUBLE.pack(amount) + encode_instant(at)
            yield order % PARTITIONS, None, value_frame + value

    def _append_parcels(self, rows: int, value_frame: bytes) -> Iterator[Record]:
        soon, late = (2 * round(self.keys * share / 2) for share in _DELAYS)
        draw = _random(6)
        for number, choice in zip(range(rows), draw, strict=False):
            placed, rest = divmod(number * self.keys, rows)
            order = placed - (late if placed % 2 else soon)
            if order < 0 or rest >= self.keys:  # the first parcel of a purchase is its only one
                order = self.keys + number
            carrier = choice % len(_CARRIERS)
            at = START_MS + number * SPAN_MS // rows + (choice >> 4) % DISORDER_MS
            self._parcels.append((order, _CARRIERS[carrier], at))
            value = encode_long(order) + _ENCODED_CARRIERS[carrier] + encode_instant(at)
            yield number % PARTITIONS, None, value_frame + value
