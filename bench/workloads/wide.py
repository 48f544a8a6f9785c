"""`wide-rows`: readings of a hundred columns, of which a left join reads six."""

from collections.abc import Iterator
from itertools import pairwise

from bench.avro import TIMESTAMP_MS, AvroField, encode_instant, encode_long, encode_string, frame
from bench.workloads.records import (
    DOUBLE,
    PARTITIONS,
    START_MS,
    Expected,
    InputTopic,
    Record,
    Row,
    random_bits,
)

COLUMNS = 100
_USED = (0, 17, 33, 58, 76, 99)  # places of the columns that are read: id, long, text, ...
_KINDS: tuple[tuple[str, str], ...] = (
    ("long", "BIGINT"), ("double", "DOUBLE"), ("string", "STRING"), ("int", "INT"),
)  # fmt: skip
_VARIANTS = 101  # of what stands between two columns that are read
_STATES = tuple(f"state {n:02d} of the valve" for n in range(64))
_ENCODED_STATES = tuple(encode_string(text) for text in _STATES)


def _columns() -> Iterator[tuple[str, AvroField, str]]:
    """Name, Avro field and SQL type of each column."""
    used: dict[int, tuple[str, AvroField | str, str]] = {
        0: ("id", "long", "BIGINT"),
        17: ("c17", "long", "BIGINT"),
        33: ("c33", "string", "STRING"),
        58: ("c58", "double", "DOUBLE"),
        76: ("c76", "int", "INT"),
    }
    for place in range(COLUMNS - 1):
        name, kind, sql = used.get(place, (f"c{place}", *_KINDS[place % len(_KINDS)]))
        yield name, (name, str(kind)), sql
    yield "c99", ("c99", TIMESTAMP_MS), "TIMESTAMP(3)"


READINGS = InputTopic("readings", (("id", "long"),), tuple(field for _, field, _ in _columns()))
DEVICES = InputTopic("devices", (("id", "long"),), (("id", "long"), ("name", "string")))
SQL = """\
CREATE TABLE readings (
  COLUMNS,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'readings');

CREATE TABLE devices (
  id BIGINT,
  name STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_source, 'topic' = 'devices');

CREATE TABLE named (
  id BIGINT,
  c17 BIGINT,
  c33 STRING,
  c58 DOUBLE,
  c76 INT,
  c99 TIMESTAMP(3),
  name STRING,
  PRIMARY KEY (id) NOT ENFORCED
) WITH ($upsert_sink);

INSERT INTO named
SELECT r.id, r.c17, r.c33, r.c58, r.c76, r.c99, d.name
FROM readings AS r
LEFT JOIN devices AS d ON r.id = d.id;
""".replace("COLUMNS", ", ".join(f"{name} {sql}" for name, _, sql in _columns()))


def _fillers() -> tuple[tuple[bytes, ...], ...]:
    """What may stand in each gap between two columns that are read, encoded."""
    fields = [field for _, field, _ in _columns()]
    return tuple(
        tuple(
            b"".join(_filler(str(fields[place][1]), place, n) for place in range(one + 1, other))
            for n in range(_VARIANTS)
        )
        for one, other in pairwise(_USED)
    )


def _filler(kind: str, place: int, number: int) -> bytes:
    if kind == "double":
        return DOUBLE.pack(number / (place + 1))
    if kind == "string":
        return encode_string(f"{place} {number}")
    return encode_long(place * 1_000 + number)


class WideData:
    """Half of `rows` are readings, half are names of devices, of random devices."""

    topics = (READINGS, DEVICES)

    def __init__(self, rows: int, keys: int) -> None:
        self.rows = rows
        self.keys = keys
        self.text_bytes: dict[str, float] = {}
        self._readings: dict[int, Row] = {}
        self._names: dict[int, str] = {}

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterator[Record]:
        """The records of one topic in order; once all topics are read, `expected` is complete."""
        if topic is READINGS:
            return self._measured(self.rows - self.rows // 2, frame(key_id), frame(value_id))
        return self._named(self.rows // 2, frame(key_id), frame(value_id))

    def expected(self) -> Expected:
        """Expected rows by id: (id, c17, c33, c58, c76, c99, name)."""
        return {key: (key, *row, self._names.get(key)) for key, row in self._readings.items()}

    def _measured(self, rows: int, key_frame: bytes, value_frame: bytes) -> Iterator[Record]:
        fillers = _fillers()
        draw = random_bits(18)
        for key, choice, number in zip(draw, draw, range(rows), strict=False):
            key = key * self.keys >> 31
            count, state, level = choice % 90_000, choice % len(_STATES), choice % 10_000 / 8
            grade, at = choice % 11, START_MS + number
            self._readings[key] = (count, _STATES[state], level, grade, at)
            encoded = encode_long(key)
            used = (
                encoded, encode_long(count), _ENCODED_STATES[state], DOUBLE.pack(level),
                encode_long(grade),
            )  # fmt: skip
            filled = (
                part + gap[(choice >> 3 * n) % _VARIANTS]
                for n, (part, gap) in enumerate(zip(used, fillers, strict=True))
            )
            value = b"".join(filled) + encode_instant(at)
            yield key % PARTITIONS, key_frame + encoded, value_frame + value

    def _named(self, rows: int, key_frame: bytes, value_frame: bytes) -> Iterator[Record]:
        draw = random_bits(19)
        for key, choice, _ in zip(draw, draw, range(rows), strict=False):
            key = key * self.keys >> 31
            name = self._names[key] = f"device {choice % 1_000} of {key}"
            encoded = encode_long(key)
            value = encoded + encode_string(name)
            yield key % PARTITIONS, key_frame + encoded, value_frame + value
