"""Every WITH option of a connector and every SET key: values, defaults, what is refused by name."""

import re
from collections.abc import Mapping
from zoneinfo import available_timezones

from spark_jobs.sql.format_options import FORMATS, KEY_FORMATS
from spark_jobs.sql.option import (
    Option,
    choice,
    duration,
    enum,
    flag,
    integer,
    number,
    offsets,
    refused,
    share,
)

_ZONE_OFFSET = re.compile(r"(GMT|UTC)?[+-]\d{1,2}(:\d{2})?")

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

SETTINGS: dict[str, Option] = {
    "pipeline.name": Option(
        "name of the job, by default its file's; the one at the first start begins the names of "
        "ledgers and transactional ids"
    ),
    "table.local-time-zone": Option(
        "time zone in which TIMESTAMP and TIMESTAMP_LTZ meet",
        "a zone such as 'UTC' or 'Europe/Berlin'",
        "UTC",
        lambda text: text in available_timezones() or bool(_ZONE_OFFSET.fullmatch(text)),
    ),
    "table.exec.source.idle-timeout": duration(
        "a partition without records for this long holds no watermark back; 0 is never", "0 ms"
    ),
    "table.exec.source.cdc-events-duplicate": flag(
        "change events may come twice: rows of a PRIMARY KEY are compared with the last one"
    ),
    "table.exec.state.ttl": duration(
        "rows that nothing has written for this long are forgotten; 0 is never", "0 ms"
    ),
    "table.exec.interval-join.min-cleanup-interval": duration(
        "how much later than it could an interval join forgets rows and pads outer ones", "0 ms"
    ),
    "table.exec.sink.upsert-materialize": enum(
        "a list of rows per sink key: where keys differ, never, always", "auto", "none", "force"
    ),
    "table.exec.sink.require-on-conflict": flag(
        "an INSERT whose query has another key than the sink must say ON CONFLICT"
    ),
    "table.exec.mini-batch.enabled": flag(
        "ROW_NUMBER() = 1 by event time emits at once and corrects itself, as in Flink's mini-batch"
    ),
    "rejoin.multi-join": flag(
        "three or more inputs that are joined by one key are joined by one operator", "true"
    ),
    "rejoin.input-faults": choice(
        "changes that no changelog can hold, such as a second +I of a primary key: repaired, or"
        " trusted as Flink does",
        "repair",
        "trust",
        default="repair",
    ),
    "rejoin.interval-join.min-cleanup-rule": choice(
        "least cleanup interval of an interval join: none, or half of its window",
        "zero",
        "half",
        default="zero",
    ),
    "rejoin.bootstrap.timeout": duration(
        "how long the rows of a processing-time join wait for the other side's first content"
    ),
    "rejoin.bootstrap.on-timeout": choice(
        "what then: the job fails, or goes on with what is there", "fail", "go", default="fail"
    ),
    "rejoin.temporal.late-probe": choice(
        "a late row at a temporal join: dropped as in Flink 2.4, or joined as in older releases",
        "drop",
        "join",
        default="drop",
    ),
    "rejoin.late.topic": Option("topic for late probe rows that an event-time temporal join drops"),
    "rejoin.dead-letter.max-share": share(
        "the job stops when more of a table's last records cannot be decoded; 1 is never", "0.5"
    ),
    "rejoin.dead-letter.window": integer("of so many records", "10000", 1),
    "rejoin.checkpoint": Option("folder of the checkpoint", "a path"),
    "rejoin.trigger-interval": duration("least time between two micro-batches", "200 ms"),
    "rejoin.max-offsets-per-trigger": integer("most records of one micro-batch", least=1),
    "rejoin.parallelism": integer("tasks of a stateful operator", least=1),
    "rejoin.key-groups": integer("parts of the key space, fixed for a checkpoint", "128", 1),
    "rejoin.watermark.policy": choice(
        "watermark of a join: the lower or the higher of its inputs", "min", "max", default="min"
    ),
    "rejoin.mode": choice("how Spark runs the query", "micro-batch", default="micro-batch"),
    "rejoin.on-data-loss": choice(
        "records that are deleted before they are read, or a source topic that is created anew: the"
        " job fails, or counts them and goes on",
        "fail",
        "continue",
        default="fail",
    ),
    "rejoin.ledger.heartbeat-interval": duration(
        "an idle exactly-once sink commits its ledger again so often; less than the broker's"
        " offsets.retention.minutes",
        "10 min",
    ),
    "restart-strategy.type": choice(
        "when a query that failed for a passing reason starts again",
        "none",
        "off",
        "disable",
        "fixed-delay",
        "exponential-delay",
        default="exponential-delay",
    ),
    "restart-strategy.fixed-delay.attempts": integer("most restarts of a query", "10"),
    "restart-strategy.fixed-delay.delay": duration("wait before each restart", "1 s"),
    "restart-strategy.exponential-delay.attempts-before-reset-backoff": integer(
        "most restarts in a row", "20"
    ),
    "restart-strategy.exponential-delay.initial-backoff": duration(
        "wait before the first restart", "1 s"
    ),
    "restart-strategy.exponential-delay.max-backoff": duration("longest wait", "1 min"),
    "restart-strategy.exponential-delay.backoff-multiplier": number(
        "how much longer each wait is than the one before", "1.5", least=1
    ),
    "restart-strategy.exponential-delay.jitter-factor": number(
        "by which part of itself a wait is longer or shorter at random", "0.1", most=1
    ),
    "restart-strategy.exponential-delay.reset-backoff-threshold": duration(
        "after so long without a failure restarts count anew", "10 min"
    ),
}
# settings that Flink has: what to do instead
REFUSED_SETTINGS: dict[str, str] = {
    "table.exec.mini-batch.allow-latency": "SET 'rejoin.trigger-interval'",
    "table.exec.mini-batch.size": "SET 'rejoin.max-offsets-per-trigger'",
    "table.optimizer.multi-join.enabled": "SET 'rejoin.multi-join'",
    "table.exec.resource.default-parallelism": "SET 'rejoin.parallelism'",
    "table.exec.sink.not-null-enforcer": "leave it out",
    "parallelism.default": "SET 'rejoin.parallelism'",
    "pipeline.max-parallelism": "SET 'rejoin.key-groups'",
    "execution.checkpointing.interval": "SET 'rejoin.trigger-interval': every batch is committed",
    "execution.checkpointing.mode": "set 'sink.delivery-guarantee' in the sink's WITH",
    "execution.checkpointing.dir": "SET 'rejoin.checkpoint'",
    "execution.runtime-mode": "set 'scan.bounded.mode' in the sources' WITH to read up to an end",
    "state.checkpoints.dir": "SET 'rejoin.checkpoint'",
    "state.backend": "state is kept in RocksDB: leave it out",
    "state.backend.type": "state is kept in RocksDB: leave it out",
    "restart-strategy": "SET 'restart-strategy.type'",
}


def given_or_default(connector: str, name: str, given: Mapping[str, str]) -> str | None:
    """What a table says for an option of its connector, or the option's default."""
    if name in given:
        return given[name]
    option = CONNECTORS.get(connector, {}).get(name)
    return option.default if option else None
