"""Where reading starts and ends, asked of the broker, and the options of Spark's Kafka source.

Only here and in the kernel's sink is Kafka's client configuration known. Tables carry the Java
client's property names; `admin_config` gives librdkafka's.
"""

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Literal, Self, TypeAlias, get_args

from confluent_kafka import Consumer, KafkaException, TopicPartition

from spark_jobs.errors import ConfigError, KafkaError
from spark_jobs.settings import resolve_references

Offsets: TypeAlias = dict[str, dict[int, int]]
OffsetMode: TypeAlias = Literal[
    "earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"
]

EARLIEST = -2  # Spark's word for the first record there is when the query starts
_TIMEOUT_S = 15.0
_SAME_IN_LIBRDKAFKA = (
    "bootstrap.servers", "security.protocol", "sasl.mechanism", "sasl.kerberos.service.name",
    "ssl.endpoint.identification.algorithm", "ssl.key.password", "client.dns.lookup",
    "request.timeout.ms", "reconnect.backoff.ms", "reconnect.backoff.max.ms",
)  # fmt: skip
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
        self._properties = {k: resolved(v) for k, v in properties.items()}
        self._client = Consumer(
            {
                **admin_config(self._properties),
                "group.id": self._properties.get("group.id", f"rejoin-{table}"),
                "isolation.level": self._properties.get("isolation.level", "read_committed"),
                "log_level": 2,
            }
        )

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()

    def partition_counts(self) -> dict[str, int]:
        """Of each topic; raises KafkaError for a topic that is not there."""
        with self._reporting():
            known = self._client.list_topics(timeout=_TIMEOUT_S).topics
        missing = [t for t in self._topics if t not in known or not known[t].partitions]
        if missing:
            raise KafkaError(
                "TOPIC_MISSING",
                f"table {self._table}: no topic {', '.join(missing)} at {self._servers}",
                hint="create the topic, or correct 'topic' in the table's WITH clause",
            )
        return {topic: len(known[topic].partitions) for topic in self._topics}

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
            raise self._unreachable(str(cause.args[0])) from cause

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

    table: str
    topics: tuple[str, ...]
    starts: Offsets
    ends: Offsets | None
    properties: Mapping[str, str]
    max_offsets: int
    headers: bool
    loaded: Offsets | None = None
    alignment: str | None = None

    def options(self) -> dict[str, str]:
        """Options of the kernel's Kafka source."""
        properties = {k: resolved(v) for k, v in self.properties.items()}
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
            "rejoin.table": self.table,
        }
        if "group.id" in properties:
            options["groupIdPrefix"] = properties["group.id"]
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


def resolved(value: str) -> str:
    return resolve_references(value).get_secret_value()


def admin_config(properties: Mapping[str, str]) -> dict[str, str]:
    """librdkafka's names for the connection settings of Java's client.

    >>> jaas = 'x.ScramLoginModule required username="u" password="p";'
    >>> admin_config({"bootstrap.servers": "b:1", "sasl.jaas.config": jaas, "acks": "all"})
    {'bootstrap.servers': 'b:1', 'sasl.username': 'u', 'sasl.password': 'p'}
    """
    config = {name: properties[name] for name in _SAME_IN_LIBRDKAFKA if name in properties}
    if "bootstrap.servers" not in config:
        raise ConfigError("BOOTSTRAP_MISSING", "'properties.bootstrap.servers' is not set")
    for field in ("username", "password"):
        match = re.search(rf'\b{field}\s*=\s*"([^"]*)"', properties.get("sasl.jaas.config", ""))
        if match is not None:
            config[f"sasl.{field}"] = match[1]
    for store, name in (("truststore", "ssl.ca.location"), ("keystore", "ssl.keystore.location")):
        if location := properties.get(f"ssl.{store}.location"):
            config[name] = location
    if config.get("ssl.keystore.location") and "ssl.keystore.password" in properties:
        config["ssl.keystore.password"] = properties["ssl.keystore.password"]
    return config
