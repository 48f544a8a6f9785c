"""Where reading starts and ends, asked of the broker, and the options of Spark's Kafka source.

Tables carry the properties of Java's client; `admin_config` renders them for librdkafka.
"""

import dataclasses
import json
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

from spark_jobs.access.librdkafka import admin_config as admin_config
from spark_jobs.errors import ConfigError, KafkaError
from spark_jobs.settings import resolve_all, resolve_references
from spark_jobs.streaming.acls import Need, acl_missing, raise_failed_login, topic_missing

Offsets: TypeAlias = dict[str, dict[int, int]]
OffsetMode: TypeAlias = Literal[
    "earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"
]

EARLIEST = -2  # Spark's word for the first record there is when the query starts
_TIMEOUT_S = 15.0
_MOST_HEARD = 50
# Spark decides these itself
_NOT_FOR_SPARK = ("group.id", "auto.offset.reset", "enable.auto.commit")


@dataclass(frozen=True, slots=True)
class Limit:
    """A start or an end of reading, as the table declares it."""

    mode: OffsetMode
    timestamp_ms: int | None = None
    offsets: Mapping[int, int] | None = None

    @classmethod
    def read(cls, mode: str, timestamp_ms: int | None, offsets: Mapping[int, int]) -> Self:
        """Of a mode that the table's options allow."""
        for known in get_args(OffsetMode):
            if mode == known:
                return cls(known, timestamp_ms, offsets)
        raise ConfigError("OFFSET_MODE_UNKNOWN", f"'{mode}' is no place in a topic")


class KafkaEdge:
    """Asks the broker of one table about its topics."""

    def __init__(self, table: str, topics: Sequence[str], properties: Mapping[str, str]) -> None:
        self._table = table
        self._topics = tuple(topics)
        self._properties = resolve_all(properties)
        self._heard: list[Refusal] = []
        self._client = Consumer(
            {
                **admin_config(properties),
                "group.id": self._properties.get("group.id", f"rejoin-{table}"),
                "isolation.level": self._properties.get("isolation.level", "read_committed"),
                "enable.auto.commit": False,  # whoever looks moves nobody's offsets
                "enable.partition.eof": True,
                "log_level": 2,
                "error_cb": self._heard.append,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def partition_counts(self) -> dict[str, int]:
        """Of each topic; raises KafkaError for a topic that is not there."""
        counts = self._counts()
        if missing := [topic for topic, count in counts.items() if not count]:
            names = ", ".join(missing)
            raise topic_missing(f"table {self._table}: no topic {names} at {self._servers}")
        return counts

    def missing_topics(self) -> list[str]:
        """Those of the table that the broker does not have."""
        return [topic for topic, count in self._counts().items() if not count]

    def _counts(self) -> dict[str, int]:
        with self._reporting():
            known = self._client.list_topics(timeout=_TIMEOUT_S).topics
        return {t: len(known[t].partitions) if t in known else 0 for t in self._topics}

    def starts(self, limit: Limit) -> Offsets:
        """Where each partition begins; `EARLIEST` where the broker is to decide."""
        if limit.mode == "earliest-offset":
            counts = self.partition_counts()
            return {topic: dict.fromkeys(range(n), EARLIEST) for topic, n in counts.items()}
        if limit.mode == "specific-offsets":
            return self._specific(limit.offsets or {}, {t: {} for t in self._topics})
        return self._resolve(limit)

    def exact_starts(self, limit: Limit) -> Offsets:
        """As numbers: whoever wants to know how much is left has to subtract them."""
        earliest = self._watermarks(0)
        return {
            topic: {p: earliest[topic][p] if at == EARLIEST else at for p, at in offsets.items()}
            for topic, offsets in self.starts(limit).items()
        }

    def ends(self, limit: Limit) -> Offsets:
        """The offset after the last record to read, of each partition."""
        if limit.mode == "specific-offsets":
            return self._specific(limit.offsets or {}, self.latest())
        return self._resolve(limit)

    def latest(self) -> Offsets:
        """The offset after the last record that may be read, of each partition."""
        return self._watermarks(1)

    def to_load(self, start: Limit, ends: Offsets | None) -> Offsets:
        """The present ends, or `ends` where they come first, of partitions with records before."""
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
        """Of each partition the first record that there is."""
        starts, found = self._watermarks(0), list[Message]()
        for topic, ends in self.latest().items():
            for partition, end in ends.items():
                start = TopicPartition(topic, partition, starts[topic][partition])
                found += self._read(start, end, most=1)
        return found

    def newest(self, most: int) -> list[Message]:
        """Of each partition its last records, up to `most`, however long ago they came."""
        starts = self._watermarks(0)
        found: list[Message] = []
        for topic, ends in self.latest().items():
            for partition, end in ends.items():
                start = max(starts[topic][partition], end - most)
                if start < end:
                    found += self._read(TopicPartition(topic, partition, start), end)
        return found

    def _read(self, start: TopicPartition, end: int, most: int | None = None) -> list[Message]:
        """Up to `end`; markers of transactions fill offsets that no record has."""
        found: list[Message] = []
        with self._reporting():
            self._client.assign([start])
            while len(found) != most and (message := self._client.poll(_TIMEOUT_S)) is not None:
                if (error := message.error()) is None:
                    found.append(message)
                    if (message.offset() or 0) >= end - 1:
                        break
                elif error.code() == Refusal._PARTITION_EOF:
                    break
                elif error.code() != Refusal.GROUP_AUTHORIZATION_FAILED:  # no group is needed here
                    raise self._unreachable(str(error))
        return found

    def topic_settings(self) -> dict[str, dict[str, str | None]]:
        """The effective configuration of each topic; empty for one that we may not see."""
        admin = AdminClient({**admin_config(self._properties), "log_level": 2})
        asked = [ConfigResource(ResourceType.TOPIC, topic) for topic in self._topics]
        with self._reporting():
            answers = admin.describe_configs(asked, request_timeout=_TIMEOUT_S)
            return {
                resource.name: {name: entry.value for name, entry in _allowed(answer).items()}
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
                f"table {self._table}: specific offsets fit one topic, not {len(counts)}",
            )
        (topic, count), *_ = counts.items()
        if wrong := [p for p in given if p >= count]:
            raise ConfigError(
                "SPECIFIC_OFFSETS_PARTITION",
                f"table {self._table}: topic {topic} has {count} partitions, none numbered "
                f"{', '.join(map(str, wrong))}",
            )
        others = default[topic]
        return {topic: {p: given.get(p, others.get(p, EARLIEST)) for p in range(count)}}

    def _watermarks(self, side: Literal[0, 1]) -> Offsets:
        found: Offsets = {}
        for partition in self._partitions():
            with self._reporting():
                ends = self._client.get_watermark_offsets(
                    partition, timeout=_TIMEOUT_S, cached=False
                )
            if ends is None:
                raise self._unreachable("timed out")
            found.setdefault(partition.topic, {})[partition.partition] = ends[side]
        return found

    def _at(self, timestamp_ms: int) -> Offsets:
        """Of the first record at or after the time; where there is none, after the last record."""
        asked = [TopicPartition(p.topic, p.partition, timestamp_ms) for p in self._partitions()]
        with self._reporting():
            answered = self._client.offsets_for_times(asked, timeout=_TIMEOUT_S)
        return _by_topic(answered, self.latest())

    def _committed(self) -> Offsets:
        if "group.id" not in self._properties:
            raise ConfigError(
                "GROUP_ID_MISSING",
                f"table {self._table}: 'group-offsets' needs 'properties.group.id'",
                hint="set it, or another 'scan.startup.mode' such as 'earliest-offset'",
            )
        with self._reporting():
            answered = self._client.committed(self._partitions(), timeout=_TIMEOUT_S)
        unknown = any(p.offset < 0 for p in answered)
        return _by_topic(answered, self._reset_offsets() if unknown else {})

    def _reset_offsets(self) -> Offsets:
        """For partitions without a committed offset, what `auto.offset.reset` says."""
        match self._properties.get("auto.offset.reset", "none"):
            case "earliest":
                return self._watermarks(0)
            case "latest":
                return self.latest()
            case _:
                raise ConfigError(
                    "GROUP_OFFSETS_MISSING",
                    f"table {self._table}: group '{self._properties['group.id']}' has no committed "
                    f"offset for some partition of {', '.join(self._topics)}",
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
            self._listen()
            raise_failed_login(self._heard)
            if Refusal.GROUP_AUTHORIZATION_FAILED in {e.code() for e in self._heard}:
                why = f"'group-offsets' of table {self._table}"
                need = Need("Read", "group", self._properties["group.id"], why)
                raise acl_missing([need], self._properties) from cause
            raise self._unreachable(str(cause.args[0])) from cause

    def _listen(self) -> None:
        """Hear why a request timed out: the client tells only when it is asked for records."""
        for _ in range(_MOST_HEARD):
            told = self._client.poll(0)
            if told is None:
                return
            if (error := told.error()) is not None:
                self._heard.append(error)

    @property
    def _servers(self) -> str:
        return self._properties["bootstrap.servers"]

    def _unreachable(self, reason: str) -> KafkaError:
        return KafkaError(
            "KAFKA_UNREACHABLE",
            f"table {self._table}: {self._servers} did not answer: {reason}",
            hint="is the broker running, and is 'properties.bootstrap.servers' its address?",
        )


def _by_topic(partitions: Sequence[TopicPartition], default: Offsets) -> Offsets:
    found: Offsets = {}
    for at in partitions:
        offset = at.offset if at.offset >= 0 else default[at.topic][at.partition]
        found.setdefault(at.topic, {})[at.partition] = offset
    return found


@dataclass(frozen=True, slots=True)
class Subscription:
    """What one scan reads: everything its Spark source needs to know.

    `loaded`: a partition that is read to its offset here is called loaded. `alignment`: JSON of
    the kernel's Alignment, where the table waits for others.
    """

    query: str
    table: str
    topics: tuple[str, ...]
    starts: Offsets
    ends: Offsets | None
    properties: Mapping[str, str]
    max_offsets: int
    headers: bool
    loaded: Offsets | None = None
    alignment: str | None = None
    topic_ids: Mapping[str, str] = dataclasses.field(default_factory=dict)
    fails_on_data_loss: bool = True

    def options(self) -> dict[str, str]:
        """Options of the kernel's Kafka source, which itself looks up what they refer to."""
        properties = self.properties
        options = {
            "subscribe": ",".join(self.topics),
            "startingOffsets": offsets_json(self.starts),
            "maxOffsetsPerTrigger": str(self.max_offsets),
            "includeHeaders": str(self.headers).lower(),
            # the default of 500 ms stalls the end of every batch
            "kafka.fetch.max.wait.ms": "10",
            "kafka.max.partition.fetch.bytes": str(4 << 20),
            "kafka.max.poll.records": "5000",
            "kafka.isolation.level": "read_committed",
            **{f"kafka.{k}": v for k, v in properties.items() if k not in _NOT_FOR_SPARK},
            "failOnDataLoss": str(self.fails_on_data_loss).lower(),
            "rejoin.query": self.query,
            "rejoin.table": self.table,
            "rejoin.topic-ids": json.dumps(dict(self.topic_ids)),
        }
        if "group.id" in properties:
            options["groupIdPrefix"] = resolved(properties["group.id"])
        if self.loaded:
            options["rejoin.loaded"] = offsets_json(self.loaded)
        if self.alignment is not None:
            options["rejoin.alignment"] = self.alignment
        if self.ends is not None:
            options["rejoin.ends"] = offsets_json(self.ends)
        return options


def offsets_json(offsets: Offsets) -> str:
    """Spark's text of offsets.

    >>> offsets_json({"a": {1: 5, 0: 7}})
    '{"a": {"0": 7, "1": 5}}'
    """
    return json.dumps({t: {str(p): o for p, o in sorted(at.items())} for t, at in offsets.items()})


def read_offsets(text: str) -> Offsets:
    """The inverse of `offsets_json`, also for offsets in Spark's progress reports."""
    return {t: {int(p): o for p, o in at.items()} for t, at in json.loads(text).items()}


def _allowed(answer: Future[dict[str, ConfigEntry]]) -> dict[str, ConfigEntry]:
    try:
        return answer.result()
    except KafkaException as refused:
        if refused.args[0].code() == Refusal.TOPIC_AUTHORIZATION_FAILED:
            return {}
        raise


def resolved(value: str) -> str:
    return resolve_references(value).get_secret_value()
