"""The WITH options of the connectors: values, defaults, what is refused by name."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from typing import Literal as OneOf
from typing import TypeAlias

from spark_jobs.options.declared import group, read_options, table_of
from spark_jobs.options.formats import (
    FORMATS,
    KEY_FORMATS,
    REGISTRY_TIMEOUT_MS,
    SCHEMA_ID,
    Format,
)
from spark_jobs.options.jdbc import CACHE_OPTIONS, JDBC, JdbcOptions
from spark_jobs.options.kinds import (
    choice,
    duration,
    flag,
    integer,
    names,
    offsets,
    refused,
    text,
    topic_pattern,
)

SchemaIds: TypeAlias = OneOf["prefix", "apicurio-8-byte", "apicurio-headers", "confluent-headers"]
OnError: TypeAlias = OneOf["fail", "dead-letter", "skip"]

REGISTRY_TIMEOUT = "rejoin.registry.timeout"
TOPIC_PATTERN = "topic-pattern"
DISCOVERY = "scan.topic-partition-discovery.interval"
REGISTRY_OPTIONS = (SCHEMA_ID, REGISTRY_TIMEOUT)


@dataclass(frozen=True, slots=True, kw_only=True)
class Startup:
    """Where reading starts."""

    mode: OneOf[
        "earliest-offset", "latest-offset", "group-offsets", "timestamp", "specific-offsets"
    ] = choice("scan.startup.mode", "where reading starts", "group-offsets")
    offsets: dict[int, int] | None = offsets(
        "scan.startup.specific-offsets", "the first offsets to read"
    )
    timestamp_ms: int | None = integer(
        "scan.startup.timestamp-millis", "reading starts here, epoch milliseconds"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class Bounded:
    """Where reading ends."""

    mode: OneOf["unbounded", "latest-offset", "group-offsets", "timestamp", "specific-offsets"] = (
        choice("scan.bounded.mode", "where reading ends", "unbounded")
    )
    offsets: dict[int, int] | None = offsets(
        "scan.bounded.specific-offsets", "the first offsets not to read"
    )
    timestamp_ms: int | None = integer(
        "scan.bounded.timestamp-millis", "reading ends at this time, epoch milliseconds"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumOptions:
    """How the records of a table are read that Debezium has written."""

    truncate: OneOf["reject", "retract"] = choice(
        "rejoin.debezium.truncate",
        "a TRUNCATE is refused as a bad record, or retracts all rows of the table",
        "reject",
    )
    unavailable: OneOf["heal", "reject"] = choice(
        "rejoin.debezium.unavailable",
        "a value that the database left out of an event is taken from the row in state, or the"
        " event is a bad record",
        "heal",
    )
    key_changes: OneOf["reject", "heal"] = choice(
        "rejoin.debezium.key-changes",
        "an event that changes the primary key and leaves a value out is a bad record, or the value"
        " is taken from the row under the old key",
        "reject",
    )
    key_change_wait_ms: int = duration(
        "rejoin.debezium.key-change-wait",
        "how long the event under one key waits for the one under the other, with"
        " 'rejoin.debezium.key-changes' = 'heal'",
        "10 min",
    )
    unwrapped: bool = flag(
        "rejoin.debezium.unwrapped",
        "values are rows that Debezium's ExtractNewRecordState made of its events",
    )
    replica_identity: OneOf["default", "full"] = choice(
        "rejoin.debezium.replica-identity",
        "whether the row before a change is complete (full) and is trusted",
        "default",
    )
    timestamp_unit: OneOf["millis", "micros", "nanos"] | None = choice(
        "rejoin.debezium.timestamp-unit",
        "what a bare number in a TIMESTAMP or TIME column counts, where no schema says it",
    )
    decimals: OneOf["text", "base64"] = choice(
        "rejoin.debezium.decimals",
        "what a text in a DECIMAL column is, where no schema says it: digits, or the unscaled"
        " number in base64",
        "text",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class KafkaOptions:
    """A table's topic, the records there, and how they are read and written."""

    topics: tuple[str, ...] | None = names(
        "topic", "topics; several with semicolons, one for a sink"
    )
    topic_pattern: str | None = topic_pattern(
        TOPIC_PATTERN, "instead of 'topic', for sources: every topic whose whole name it matches"
    )
    discovery_ms: int = duration(
        DISCOVERY,
        "how often topics that 'topic-pattern' matches are looked for; 0: at starts only",
        "5 min",
    )
    key_format: str | None = choice("key.format", "format of record keys", values=KEY_FORMATS)
    key_prefix: str | None = text(
        "key.fields-prefix", "prefix of the columns that stand in the key"
    )
    value_fields: OneOf["ALL", "EXCEPT_KEY"] = choice(
        "value.fields-include", "whether key columns stand in the value too", "ALL"
    )
    guarantee: OneOf["exactly-once", "at-least-once", "none"] = choice(
        "sink.delivery-guarantee", "how often a result row is written", "exactly-once"
    )
    transactional_id_prefix: str | None = text(
        "sink.transactional-id-prefix", "prefix of the producers' transactional ids"
    )
    on_error: OnError | None = choice(
        "rejoin.on-error",
        "what becomes of a record that cannot be decoded, or of a result too large for the topic",
    )
    debezium: DebeziumOptions = group(DebeziumOptions)
    schema_ids: SchemaIds = choice(
        SCHEMA_ID, "where records say which schema they are written with", "prefix"
    )
    registry_timeout_ms: int = duration(
        REGISTRY_TIMEOUT, "how long to wait for a registry that does not answer", "5 min"
    )
    dead_letter_topic: str | None = text(
        "rejoin.dead-letter.topic", "topic for dead-letter records: docs/dead-letters.md"
    )
    bounded: Bounded = group(Bounded)
    idle_timeout_ms: int | None = duration(
        "scan.watermark.idle-timeout",
        "a partition without records for this long holds no watermark back",
    )
    alignment_group: str | None = text(
        "scan.watermark.alignment.group", "tables of one group wait for each other's event time"
    )
    alignment_drift_ms: int | None = duration(
        "scan.watermark.alignment.max-drift",
        "how far a table may be ahead of the slowest one of its group",
    )
    format: str | None = choice("format", "format of record values", values=FORMATS)
    value_format: str | None = choice("value.format", "format of record values", values=FORMATS)
    key_fields: tuple[str, ...] | None = names(
        "key.fields", "columns in the record key; several with semicolons"
    )
    startup: Startup = group(Startup)
    partitioner: OneOf["default"] = choice(
        "sink.partitioner", "which partition a record goes to", "default"
    )


_KAFKA = table_of(KafkaOptions)
_ANY_REFUSED = {
    "sink.parallelism": refused("writers", "SET 'rejoin.parallelism' sets it for the query"),
    "scan.parallelism": refused("readers", "SET 'rejoin.parallelism' sets it for the query"),
    "scan.watermark.alignment.update-interval": refused(
        "how often the tables of a group compare their watermarks", "each micro-batch compares"
    ),
}
# options of the kafka connector that upsert-kafka does not have
_KAFKA_ONLY = {
    "format",
    "key.fields",
    "sink.partitioner",
    *table_of(Startup),
    "rejoin.debezium.unwrapped",
    "rejoin.debezium.replica-identity",
    "rejoin.debezium.timestamp-unit",
    "rejoin.debezium.decimals",
}
_ORDER_BY_KEY = "records go to the partition of their key, which keeps a row's changes in order"
_BUFFERING = refused("buffering", "a micro-batch is the buffer")
CONNECTORS = {
    "kafka": {
        **_KAFKA,
        **_ANY_REFUSED,
        "sink.semantic": refused("delivery", "use 'sink.delivery-guarantee'"),
    },
    "upsert-kafka": {
        **{name: known for name, known in _KAFKA.items() if name not in _KAFKA_ONLY},
        "value.format": replace(_KAFKA["key.format"], help="format of record values"),
        **_ANY_REFUSED,
        "sink.buffer-flush.max-rows": _BUFFERING,
        "sink.buffer-flush.interval": _BUFFERING,
    },
    "jdbc": JDBC,
}
REQUIRED: dict[str, tuple[str, ...]] = {
    "kafka": ("properties.bootstrap.servers",),
    "upsert-kafka": ("properties.bootstrap.servers", "key.format", "value.format"),
    "jdbc": ("url", "table-name"),
}
# an option, that value of it or "" for any, and the option that it needs
NEEDS = (
    ("key.format", "", "key.fields"),
    ("key.fields", "", "key.format"),
    ("scan.startup.mode", "timestamp", "scan.startup.timestamp-millis"),
    ("scan.startup.mode", "specific-offsets", "scan.startup.specific-offsets"),
    ("scan.bounded.mode", "timestamp", "scan.bounded.timestamp-millis"),
    ("scan.bounded.mode", "specific-offsets", "scan.bounded.specific-offsets"),
    ("scan.watermark.alignment.group", "", "scan.watermark.alignment.max-drift"),
    ("scan.watermark.alignment.max-drift", "", "scan.watermark.alignment.group"),
    ("rejoin.on-error", "dead-letter", "rejoin.dead-letter.topic"),
    ("username", "", "password"),
    ("password", "", "username"),
)
KNOWN_CONNECTORS = ("filesystem", "datagen", "print", "blackhole", "hbase-2.2", "kinesis")

# Kafka client properties that the source or the sink sets itself
MANAGED_PROPERTIES = {
    "enable.auto.commit": "progress is kept in the checkpoint",
    "isolation.level": "sources read committed records",
    "key.deserializer": "use 'key.format'",
    "value.deserializer": "use 'value.format'",
    "key.serializer": "use 'key.format'",
    "value.serializer": "use 'value.format'",
    "transactional.id": "use 'sink.transactional-id-prefix'",
    "interceptor.classes": "interceptors are not loaded",
    "partitioner.class": _ORDER_BY_KEY,
}


def without_effect(given: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Options that need a value of another option: option, what is wrong, what to do."""
    pairs = [(needed, name, value) for name, value, needed in NEEDS if value]
    for needed, name, value in (
        *pairs,
        ("key.fields-prefix", "value.fields-include", "EXCEPT_KEY"),
        *((name, "lookup.cache", "PARTIAL") for name in CACHE_OPTIONS),
    ):
        # a dead-letter topic alone stands for that policy
        other = given.get(name, value if name == "rejoin.on-error" else None)
        if needed in given and other != value:
            problem = f"'{needed}' has no effect without '{name}' = '{value}'"
            yield needed, problem, f"set '{name}' = '{value}', or leave '{needed}' out"


@dataclass(frozen=True, slots=True)
class TableOptions:
    """What the WITH of one table means; `given` is what stands there.

    `kafka` has the defaults where the connector is `jdbc`, and `jdbc` where it is not.
    """

    connector: str
    kafka: KafkaOptions
    jdbc: JdbcOptions
    key_format: Format | None
    value_format: Format | None
    given: Mapping[str, str] = field(default_factory=dict)

    @property
    def debezium(self) -> DebeziumOptions:
        return self.kafka.debezium

    @property
    def properties(self) -> dict[str, str]:
        """Kafka client properties, without the `properties.` prefix."""
        prefix = "properties."
        return {k[len(prefix) :]: v for k, v in self.given.items() if k.startswith(prefix)}


def table_options(given: Mapping[str, str]) -> TableOptions:
    """What these options mean; the binder checks whether they are valid."""
    kafka = read_options(KafkaOptions, given)
    key = _format(kafka.key_format, "key.", given)
    value = _format(kafka.value_format, "value.", given) or _format(kafka.format, "", given)
    jdbc = read_options(JdbcOptions, given)
    return TableOptions(given.get("connector", ""), kafka, jdbc, key, value, given)


def _format(name: str | None, prefix: str, given: Mapping[str, str]) -> Format | None:
    """The format with the table's registry options, whose durations the kernel reads in ms."""
    if name is None:
        return None
    texts = dict(given)
    start = f"{prefix}{name}."
    if FORMATS[name].names_schemas and SCHEMA_ID in given:
        texts[start + SCHEMA_ID] = given[SCHEMA_ID]
    if FORMATS[name].registry and REGISTRY_TIMEOUT in given:
        kafka = read_options(KafkaOptions, given)
        texts[start + REGISTRY_TIMEOUT_MS] = str(kafka.registry_timeout_ms)
    return FORMATS[name].read(texts, prefix)
