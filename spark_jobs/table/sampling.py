"""Reads a few records of a topic, at several offsets of each partition."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Message

from spark_jobs.access.topics import Limit, TableTopics, open_topics

PLACES = 4  # offsets of a partition at which a run of records begins
_LEAST_RUN = 20

Progress = Callable[[str], None]


@dataclass(frozen=True, slots=True)
class SampledRecord:
    """A record of a topic; `run` numbers the stretch of neighbouring records that it is of."""

    partition: int
    offset: int
    timestamp_ms: int
    key: bytes | None
    value: bytes | None
    run: int

    @property
    def place(self) -> str:
        return f"partition {self.partition} offset {self.offset}"


@dataclass(frozen=True, slots=True)
class TopicSample:
    """Records of a topic in the order of their partitions and offsets.

    `offsets`: how many offsets are in use, over all partitions. `compacted`: whether the broker
    keeps the last record of each key; None without the right to see it.
    """

    topic: str
    partitions: int
    offsets: int
    compacted: bool | None
    records: Sequence[SampledRecord]

    @property
    def has_tombstones(self) -> bool:
        return any(r.value is None and r.key is not None for r in self.records)


def sample_topic(
    topic: str, properties: Mapping[str, str], most: int, progress: Progress
) -> TopicSample:
    """Read about `most` records, as many of each partition, from its first to its last offset.

    Raises KafkaError, and AccessError if the broker refuses the login.
    """
    with open_topics(topic, [topic], properties) as edge:
        partitions = edge.partition_counts()[topic]
        starts, ends = edge.exact_starts(Limit("earliest-offset"))[topic], edge.latest()[topic]
        settings = edge.topic_settings()[topic]
        records = _runs(edge, topic, starts, ends, most, progress)
    policy = settings.get("cleanup.policy")
    return TopicSample(
        topic=topic,
        partitions=partitions,
        offsets=sum(ends[p] - starts[p] for p in ends),
        compacted=None if policy is None else "compact" in policy,
        records=records,
    )


def _runs(
    edge: TableTopics,
    topic: str,
    starts: Mapping[int, int],
    ends: Mapping[int, int],
    most: int,
    progress: Progress,
) -> list[SampledRecord]:
    """Runs overlap in short partitions: a record counts once, in the run that reached it first."""
    found: list[SampledRecord] = []
    share = max(most // (len(ends) * PLACES), _LEAST_RUN)
    run = 0
    for partition, end in ends.items():
        done = starts[partition]
        for begin, until in run_offsets(done, end, share):
            progress(f"{topic}: partition {partition}, offset {begin} of {end}")
            if begin > done:  # a gap: what was behind there says nothing of the order here
                run += 1
            read = edge.run(topic, partition, begin, until)
            found += [_record(message, run) for message in read]
            done = until
        run += 1
    return found


def run_offsets(start: int, end: int, size: int) -> list[tuple[int, int]]:
    """The first and the end offset of each run of a partition, in order and without overlaps.

    >>> run_offsets(0, 1000, 50)
    [(0, 50), (316, 366), (633, 683), (950, 1000)]
    >>> run_offsets(10, 40, 20)
    [(10, 40)]
    """
    if end - start <= size * PLACES:
        return [(start, end)] if end > start else []
    step = (end - start - size) / (PLACES - 1)
    begins = [start + int(step * i) for i in range(PLACES)]
    return [(begin, begin + size) for begin in begins]


def _record(message: Message, run: int) -> SampledRecord:
    partition, offset = message.partition(), message.offset()
    if partition is None or offset is None:
        raise ValueError("a record of a broker has a partition and an offset")
    return SampledRecord(
        partition, offset, message.timestamp()[1], message.key(), message.value(), run
    )
