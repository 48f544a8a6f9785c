"""The topics of one table at the broker: partitions, offsets, records, configuration."""

import re
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias, get_args

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as Refusal
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._config import ConfigEntry, ConfigResource
from confluent_kafka.admin._resource import ResourceType

from spark_jobs.access.acls import Need, acl_missing, raise_failed_login, topic_missing
from spark_jobs.access.librdkafka import admin_config
from spark_jobs.errors import ConfigError, KafkaError
from spark_jobs.settings import resolve_all, resolve_references

Offsets: TypeAlias = dict[str, dict[int, int]]
OffsetMode: TypeAlias = Literal[
    "earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"
]

EARLIEST = -2  # Spark's number for "the first record that exists when the query starts"
_TIMEOUT_S = 15.0
_MAX_CLIENT_ERRORS = 50
_INTERNAL = ("__consumer_offsets", "__transaction_state")


@dataclass(frozen=True, slots=True)
class Limit:
    """Where a table declares that reading starts or ends."""

    mode: OffsetMode
    timestamp_ms: int | None = None
    offsets: Mapping[int, int] | None = None

    @classmethod
    def read(cls, mode: str, timestamp_ms: int | None, offsets: Mapping[int, int]) -> Self:
        for known in get_args(OffsetMode):
            if mode == known:
                return cls(known, timestamp_ms, offsets)
        raise ValueError(f"'{mode}' is no place to start or end reading")


@contextmanager
def open_topics(
    table: str, topics: Sequence[str], properties: Mapping[str, str]
) -> Iterator["TableTopics"]:
    """Connect to the broker of a table; `properties` are those of Java's client."""
    resolved_properties, errors = resolve_all(properties), list[Refusal]()
    client = Consumer(
        {
            **admin_config(properties),
            "group.id": resolved_properties.get("group.id", f"rejoin-{table}"),
            "isolation.level": resolved_properties.get("isolation.level", "read_committed"),
            "enable.auto.commit": False,  # the group's committed offsets stay as they are
            "enable.partition.eof": True,
            "log_level": 2,
            "error_cb": errors.append,
        }
    )
    try:
        yield TableTopics(table, topics, resolved_properties, client, errors)
    finally:
        client.close()


@dataclass(frozen=True, slots=True)
class TableTopics:
    """The topics of one table, as its broker has them. `errors`: those that the client reports."""

    table: str
    topics: Sequence[str]
    properties: Mapping[str, str]
    client: Consumer
    errors: list[Refusal]

    def partition_counts(self) -> dict[str, int]:
        """Partitions per topic. Raises KafkaError for a topic that does not exist."""
        counts = self._counts()
        if missing := [topic for topic, count in counts.items() if not count]:
            names = ", ".join(missing)
            raise topic_missing(f"table {self.table}: no topic {names} at {self._servers}")
        return counts

    def matching(self, pattern: str) -> tuple[str, ...]:
        """The topics that this client may see and whose whole names match; never Kafka's own."""
        with self._reporting():
            known = self.client.list_topics(timeout=_TIMEOUT_S).topics
        found = (name for name in known if re.fullmatch(pattern, name) is not None)
        return tuple(sorted(name for name in found if name not in _INTERNAL))

    def missing_topics(self) -> list[str]:
        return [topic for topic, count in self._counts().items() if not count]

    def _counts(self) -> dict[str, int]:
        with self._reporting():
            known = self.client.list_topics(timeout=_TIMEOUT_S).topics
        return {t: len(known[t].partitions) if t in known else 0 for t in self.topics}

    def starts(self, limit: Limit) -> Offsets:
        """The first offset per partition; `EARLIEST` where the broker decides at the start."""
        if limit.mode == "earliest-offset":
            counts = self.partition_counts()
            return {topic: dict.fromkeys(range(n), EARLIEST) for topic, n in counts.items()}
        if limit.mode == "specific-offsets":
            return self._specific(limit.offsets or {}, {t: {} for t in self.topics})
        return self._resolve(limit)

    def exact_starts(self, limit: Limit) -> Offsets:
        """As `starts`, with the present offset in place of `EARLIEST`."""
        earliest = self._watermarks(0)
        return {
            topic: {p: earliest[topic][p] if at == EARLIEST else at for p, at in offsets.items()}
            for topic, offsets in self.starts(limit).items()
        }

    def ends(self, limit: Limit) -> Offsets:
        """Per partition, the offset after the last record to read."""
        if limit.mode == "specific-offsets":
            return self._specific(limit.offsets or {}, self.latest())
        return self._resolve(limit)

    def latest(self) -> Offsets:
        """Per partition, the offset after the last record that exists."""
        return self._watermarks(1)

    def to_load(self, start: Limit, ends: Offsets | None) -> Offsets:
        """The initial content: `latest`, at most `ends`, of partitions with records before it."""
        starts = self.exact_starts(start)
        return {
            topic: {
                p: end
                for p, at in offsets.items()
                if (end := min(at, (ends or {}).get(topic, {}).get(p, at))) > starts[topic][p]
            }
            for topic, offsets in self.latest().items()
        }

    def oldest(self) -> list[Message]:
        """The first record of each partition."""
        return [m for start, end in self._ranges() for m in self._read(start, end, most=1)]

    def newest(self, most: int) -> list[Message]:
        """The last records of each partition, at most `most` of each."""
        found: list[Message] = []
        for start, end in self._ranges():
            start.offset = max(start.offset, end - most)
            found += self._read(start, end)
        return found

    def run(self, topic: str, partition: int, start: int, end: int) -> list[Message]:
        """The records of a partition from `start` to before `end`, fewer where some are gone."""
        found = self._read(TopicPartition(topic, partition, start), end)
        return [m for m in found if (m.offset() or 0) < end]

    def _ranges(self) -> list[tuple[TopicPartition, int]]:
        """The first offset and the end of each partition that is not empty."""
        starts, ends = self._watermarks(0), self.latest()
        return [
            (TopicPartition(topic, p, starts[topic][p]), end)
            for topic, partitions in ends.items()
            for p, end in partitions.items()
            if starts[topic][p] < end
        ]

    def _read(self, start: TopicPartition, end: int, most: int | None = None) -> list[Message]:
        """Records before `end`; its last offsets may hold transaction markers, not records."""
        found: list[Message] = []
        with self._reporting():
            self.client.assign([start])
            while len(found) != most and (message := self.client.poll(_TIMEOUT_S)) is not None:
                if (error := message.error()) is None:
                    found.append(message)
                    if (message.offset() or 0) >= end - 1:
                        break
                elif error.code() == Refusal._PARTITION_EOF:
                    break
                elif error.code() != Refusal.GROUP_AUTHORIZATION_FAILED:  # assign() needs none
                    raise self._unreachable(str(error))
        return found

    def topic_settings(self) -> dict[str, dict[str, str | None]]:
        """The effective configuration of each topic; empty without the right to see it."""
        admin = AdminClient({**admin_config(self.properties), "log_level": 2})
        topics = [ConfigResource(ResourceType.TOPIC, topic) for topic in self.topics]
        with self._reporting():
            answers = admin.describe_configs(topics, request_timeout=_TIMEOUT_S)
            return {
                resource.name: {name: entry.value for name, entry in _visible(answer).items()}
                for resource, answer in answers.items()
            }

    def _resolve(self, limit: Limit) -> Offsets:
        match limit.mode:
            case "earliest-offset":
                return self._watermarks(0)
            case "timestamp":
                return self._at(limit.timestamp_ms or 0)
            case "group-offsets":
                return self._committed()
            case _:
                return self.latest()

    def _specific(self, given: Mapping[int, int], default: Offsets) -> Offsets:
        counts = self.partition_counts()
        if len(counts) > 1:
            raise ConfigError(
                "SPECIFIC_OFFSETS_TOPICS",
                f"table {self.table}: specific offsets need one topic, not {len(counts)}",
            )
        (topic, count), *_ = counts.items()
        if wrong := [p for p in given if p >= count]:
            raise ConfigError(
                "SPECIFIC_OFFSETS_PARTITION",
                f"table {self.table}: topic {topic} has {count} partitions, none numbered "
                f"{', '.join(map(str, wrong))}",
            )
        others = default[topic]
        return {topic: {p: given.get(p, others.get(p, EARLIEST)) for p in range(count)}}

    def _watermarks(self, side: Literal[0, 1]) -> Offsets:
        found: Offsets = {}
        for partition in self._partitions():
            with self._reporting():
                ends = self.client.get_watermark_offsets(
                    partition, timeout=_TIMEOUT_S, cached=False
                )
            if ends is None:
                raise self._unreachable("timed out")
            found.setdefault(partition.topic, {})[partition.partition] = ends[side]
        return found

    def _at(self, timestamp_ms: int) -> Offsets:
        """Offsets of the first record at or after the time, else the end of the partition."""
        times = [TopicPartition(p.topic, p.partition, timestamp_ms) for p in self._partitions()]
        with self._reporting():
            found = self.client.offsets_for_times(times, timeout=_TIMEOUT_S)
        return _by_topic(found, self.latest())

    def _committed(self) -> Offsets:
        if "group.id" not in self.properties:
            raise ConfigError(
                "GROUP_ID_MISSING",
                f"table {self.table}: 'group-offsets' needs 'properties.group.id'",
                hint="set it, or another 'scan.startup.mode' such as 'earliest-offset'",
            )
        with self._reporting():
            found = self.client.committed(self._partitions(), timeout=_TIMEOUT_S)
        unknown = any(p.offset < 0 for p in found)
        return _by_topic(found, self._reset_offsets() if unknown else {})

    def _reset_offsets(self) -> Offsets:
        """Offsets for partitions without a committed one, by `auto.offset.reset`."""
        match self.properties.get("auto.offset.reset", "none"):
            case "earliest":
                return self._watermarks(0)
            case "latest":
                return self.latest()
            case _:
                raise ConfigError(
                    "GROUP_OFFSETS_MISSING",
                    f"table {self.table}: group '{self.properties['group.id']}' has no committed "
                    f"offset for some partition of {', '.join(self.topics)}",
                    hint="set 'properties.auto.offset.reset', or another 'scan.startup.mode'",
                )

    def _partitions(self) -> list[TopicPartition]:
        counts = self.partition_counts()
        return [TopicPartition(topic, p) for topic, n in counts.items() for p in range(n)]

    @contextmanager
    def _reporting(self) -> Iterator[None]:
        try:
            yield
        except KafkaException as cause:
            self._collect_errors()
            raise_failed_login(self.errors)
            if Refusal.GROUP_AUTHORIZATION_FAILED in {e.code() for e in self.errors}:
                why = f"'group-offsets' of table {self.table}"
                need = Need("Read", "group", self.properties["group.id"], why)
                raise acl_missing([need], self.properties) from cause
            raise self._unreachable(str(cause.args[0])) from cause

    def _collect_errors(self) -> None:
        """Find out why a request timed out: the client reports errors only while it is polled."""
        for _ in range(_MAX_CLIENT_ERRORS):
            message = self.client.poll(0)
            if message is None:
                return
            if (error := message.error()) is not None:
                self.errors.append(error)

    @property
    def _servers(self) -> str:
        return self.properties["bootstrap.servers"]

    def _unreachable(self, reason: str) -> KafkaError:
        return KafkaError(
            "KAFKA_UNREACHABLE",
            f"table {self.table}: {self._servers} did not answer: {reason}",
            hint="is the broker running, and is 'properties.bootstrap.servers' its address?",
        )


def _by_topic(partitions: Sequence[TopicPartition], default: Offsets) -> Offsets:
    found: Offsets = {}
    for at in partitions:
        offset = at.offset if at.offset >= 0 else default[at.topic][at.partition]
        found.setdefault(at.topic, {})[at.partition] = offset
    return found


def _visible(answer: Future[dict[str, ConfigEntry]]) -> dict[str, ConfigEntry]:
    try:
        return answer.result()
    except KafkaException as refused:
        if refused.args[0].code() == Refusal.TOPIC_AUTHORIZATION_FAILED:
            return {}
        raise


def resolved(value: str) -> str:
    """The value with its `${env:...}` and `${file:...}` references replaced; never print it."""
    return resolve_references(value).get_secret_value()
