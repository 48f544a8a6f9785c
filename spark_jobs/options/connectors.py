"""The WITH options of each connector: values, defaults, what is refused by name."""

from collections.abc import Mapping

from spark_jobs.options.formats import FORMATS, KEY_FORMATS
from spark_jobs.options.kinds import (
    Option,
    choice,
    duration,
    flag,
    integer,
    offsets,
    refused,
)

_BOUNDED = {
    "scan.bounded.mode": choice(
        "where reading ends",
        "unbounded",
        "latest-offset",
        "group-offsets",
        "timestamp",
        "specific-offsets",
        default="unbounded",
    ),
    "scan.bounded.specific-offsets": offsets("the first offsets not to read"),
    "scan.bounded.timestamp-millis": integer("reading ends at this time, epoch milliseconds"),
}
_WATERMARKS = {
    "scan.watermark.idle-timeout": duration(
        "a partition without records for this long holds no watermark back"
    ),
    "scan.watermark.alignment.group": Option(
        "tables of one group wait for each other's event time"
    ),
    "scan.watermark.alignment.max-drift": duration(
        "how far a table may be ahead of the slowest one of its group"
    ),
    "scan.watermark.alignment.update-interval": refused(
        "how often the tables of a group compare their watermarks", "each micro-batch compares"
    ),
}
_KAFKA = {
    "topic": Option("topics; several with semicolons, one for a sink"),
    "topic-pattern": refused("topics by a regular expression", "list the topics in 'topic'"),
    "key.format": choice("format of record keys", *KEY_FORMATS),
    "key.fields-prefix": Option("prefix of the columns that stand in the key", default=""),
    "value.fields-include": choice(
        "whether key columns stand in the value too", "ALL", "EXCEPT_KEY", default="ALL"
    ),
    "sink.delivery-guarantee": choice(
        "how often a result row is written",
        "exactly-once",
        "at-least-once",
        "none",
        default="exactly-once",
    ),
    "sink.transactional-id-prefix": Option("start of the producers' transactional ids"),
    "sink.parallelism": refused("writers", "SET 'rejoin.parallelism' sets it for the query"),
    "scan.parallelism": refused("readers", "SET 'rejoin.parallelism' sets it for the query"),
    "rejoin.on-error": choice(
        "what a record does that cannot be decoded, or a result that is too large for the topic",
        "fail",
        "dead-letter",
        "skip",
    ),
    "rejoin.debezium.truncate": choice(
        "a TRUNCATE is refused as a bad record, or retracts all rows of the table",
        "reject",
        "retract",
        default="reject",
    ),
    "rejoin.debezium.unavailable": choice(
        "a value that the database left out of an event is taken from the row in state, or the"
        " event is a bad record",
        "heal",
        "reject",
        default="heal",
    ),
    "rejoin.debezium.key-changes": choice(
        "an event that changes the primary key and leaves a value out is a bad record, or the value"
        " is taken from the row under the old key",
        "reject",
        "heal",
        default="reject",
    ),
    "rejoin.debezium.key-change-wait": duration(
        "how long the event under one key waits for the one under the other, with"
        " 'rejoin.debezium.key-changes' = 'heal'",
        "10 min",
    ),
    "rejoin.schema-id": choice(
        "where records say which schema they are written with",
        "prefix",
        "apicurio-8-byte",
        "apicurio-headers",
        "confluent-headers",
        default="prefix",
    ),
    "rejoin.registry.timeout": duration(
        "how long a registry that does not answer is waited for", "5 min"
    ),
    "rejoin.dead-letter.topic": Option("topic for such records: docs/dead-letters.md"),
    **_BOUNDED,
    **_WATERMARKS,
}
_DEBEZIUM = {
    "rejoin.debezium.unwrapped": flag(
        "values are rows that Debezium's ExtractNewRecordState made of its events"
    ),
    "rejoin.debezium.replica-identity": choice(
        "whether the row before a change is complete (full) and is trusted",
        "default",
        "full",
        default="default",
    ),
    "rejoin.debezium.timestamp-unit": choice(
        "what a bare number in a TIMESTAMP or TIME column counts, where no schema says it",
        "millis",
        "micros",
        "nanos",
    ),
    "rejoin.debezium.decimals": choice(
        "what a text in a DECIMAL column is, where no schema says it: digits, or the unscaled"
        " number in base64",
        "text",
        "base64",
        default="text",
    ),
}
_BY_TRIGGER = "every micro-batch looks for new partitions"
_ORDER_BY_KEY = "records go to the partition of their key, which keeps a row's changes in order"
CONNECTORS: dict[str, dict[str, Option]] = {
    "kafka": {
        **_KAFKA,
        **_DEBEZIUM,
        "format": choice("format of record values", *FORMATS),
        "value.format": choice("format of record values", *FORMATS),
        "key.fields": Option("columns in the record key; several with semicolons"),
        "scan.startup.mode": choice(
            "where reading starts",
            "earliest-offset",
            "latest-offset",
            "group-offsets",
            "timestamp",
            "specific-offsets",
            default="group-offsets",
        ),
        "scan.startup.specific-offsets": offsets("the first offsets to read"),
        "scan.startup.timestamp-millis": integer("reading starts here, epoch milliseconds"),
        "scan.topic-partition-discovery.interval": refused("look for partitions", _BY_TRIGGER),
        "sink.partitioner": Option(
            "which partition a record goes to",
            "default",
            "default",
            lambda text: text == "default",
        ),
        "sink.semantic": refused("delivery", "use 'sink.delivery-guarantee'"),
    },
    "upsert-kafka": {
        **_KAFKA,
        "value.format": choice("format of record values", *KEY_FORMATS),
        "sink.buffer-flush.max-rows": refused("buffering", "a micro-batch is the buffer"),
        "sink.buffer-flush.interval": refused("buffering", "a micro-batch is the buffer"),
    },
}
REQUIRED: dict[str, tuple[str, ...]] = {
    "kafka": ("topic", "properties.bootstrap.servers"),
    "upsert-kafka": ("topic", "properties.bootstrap.servers", "key.format", "value.format"),
}
KNOWN_CONNECTORS = ("jdbc", "filesystem", "datagen", "print", "blackhole", "hbase-2.2", "kinesis")

# what a table says of the registries of its formats
REGISTRY_OPTIONS = ("rejoin.schema-id", "rejoin.registry.timeout")

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


def given_or_default(connector: str, name: str, given: Mapping[str, str]) -> str | None:
    """What a table says for an option of its connector, or the option's default."""
    if name in given:
        return given[name]
    option = CONNECTORS.get(connector, {}).get(name)
    return option.default if option else None
