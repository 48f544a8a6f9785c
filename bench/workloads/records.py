"""What the generators of the workloads share: records, rows, topics, and a random generator.

The generator is the benchmark's own, because the numbers of Python's may change between versions.
"""

import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeAlias

from bench.avro import AvroField, encode_string, record_schema

PARTITIONS = 2
START_MS = 1_704_067_200_000  # 2024-01-01T00:00:00Z
SPAN_MS = 3_600_000  # range of event time in a topic
DISORDER_MS = 4_000  # less than the 5 s delay of the watermarks, so that no row is late

Record: TypeAlias = tuple[int, bytes | None, bytes | None]  # partition, key, value
Row: TypeAlias = tuple[object, ...]
Key: TypeAlias = object  # the first column of a result row, or the tuple of its first columns
Expected: TypeAlias = dict[Key, Row]  # the sink's row (times in epoch milliseconds) by its key

DOUBLE = struct.Struct("<d")
CARRIERS = ("swift", "northern", "parcel & sons", "by hand", "harbour line")
ENCODED_CARRIERS = tuple(encode_string(text) for text in CARRIERS)
_INTERLEAVE = 0x9E3779B97F4A7C15


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


class BenchData(Protocol):
    """The input of a workload and its expected result."""

    @property
    def topics(self) -> tuple[InputTopic, ...]:
        """The topics, in the order in which they are loaded."""

    @property
    def rows(self) -> int:
        """Number of records in all topics."""

    @property
    def text_bytes(self) -> Mapping[str, float]:
        """Mean length of the texts in a topic's records, if they have any."""

    def records(self, topic: InputTopic, key_id: int, value_id: int) -> Iterable[Record]:
        """The records of one topic, in order."""

    def expected(self) -> Expected:
        """The result by key; complete once all records have been read."""


def random_bits(seed: int) -> Iterator[int]:
    """31 random bits each: the upper half of Knuth's 64-bit linear congruential generator."""
    state = (seed + 1) * _INTERLEAVE & 0xFFFFFFFFFFFFFFFF
    while True:
        state = state * 6364136223846793005 + 1442695040888963407 & 0xFFFFFFFFFFFFFFFF
        yield state >> 33


def mean_length(texts: Sequence[str]) -> float:
    return sum(map(len, texts)) / len(texts)
