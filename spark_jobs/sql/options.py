"""Every WITH option and SET key: what it may hold, its default, and what is refused by name."""

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias
from zoneinfo import available_timezones

DeclaredMode: TypeAlias = Literal["append", "retract", "debezium"]

# a secret is named in SQL and resolved by the driver just before use
REFERENCE = re.compile(r"\$\{(?:env|file):[^}]*\}")

_ZONE_OFFSET = re.compile(r"(GMT|UTC)?[+-]\d{1,2}(:\d{2})?")
_DURATION = re.compile(r"\s*(\d+)\s*([a-zµ]*)\s*")
_UNIT_MS = {
    **dict.fromkeys(("", "ms", "milli", "millis", "millisecond", "milliseconds"), 1),
    **dict.fromkeys(("s", "sec", "secs", "second", "seconds"), 1_000),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60_000),
    **dict.fromkeys(("h", "hour", "hours"), 3_600_000),
    **dict.fromkeys(("d", "day", "days"), 86_400_000),
}


def parse_duration_ms(text: str) -> int | None:
    """Flink's durations in milliseconds; None if the text is not one.

    >>> parse_duration_ms("5 min")
    300000
    """
    match = _DURATION.fullmatch(text.lower())
    if match is None or match[2] not in _UNIT_MS:
        return None
    return int(match[1]) * _UNIT_MS[match[2]]


def parse_offsets(text: str) -> dict[int, int] | None:
    """Flink's `partition:0,offset:42;partition:1,offset:300` as {partition: offset}, or None."""
    parts = [p for p in text.split(";") if p.strip()]
    found = [re.fullmatch(r"\s*partition:(\d+),\s*offset:(\d+)\s*", p) for p in parts]
    if not found or not all(found):
        return None
    return {int(m[1]): int(m[2]) for m in found if m}


@dataclass(frozen=True, slots=True)
class Option:
    """One option. `expected` says what a value looks like and `accepts` decides.

    `refused` says why a valid Flink option cannot be used here.
    """

    help: str
    expected: str = "text"
    default: str | None = None
    accepts: Callable[[str], bool] = lambda text: bool(text.strip())
    refused: str | None = None


@dataclass(frozen=True, slots=True)
class Format:
    """A format as one table uses it: its name and its options, defaults included."""

    name: str
    options: dict[str, str]


@dataclass(frozen=True, slots=True)
class FormatKind:
    """A format that WITH can name; `changelog` is what its records mean when read."""

    name: str
    changelog: DeclaredMode = "append"
    options: Mapping[str, Option] = field(default_factory=dict)
    required: tuple[str, ...] = ()

    def read(self, given: Mapping[str, str], prefix: str) -> Format:
        """The options below `<prefix><name>.`, completed by the defaults."""
        start = f"{prefix}{self.name}."
        found = {n: o.default for n, o in self.options.items() if o.default is not None}
        found |= {k[len(start) :]: v for k, v in given.items() if k.startswith(start)}
        return Format(self.name, found)


def _choice(help_: str, *values: str, default: str | None = None) -> Option:
    return Option(help_, " | ".join(values), default, lambda text: text in values)


def _enum(help_: str, *values: str) -> Option:
    """An enumeration of Flink's, which takes either case; the first value is the default."""
    return Option(help_, " | ".join(values), values[0], lambda text: text.lower() in values)


def _flag(help_: str, default: str = "false") -> Option:
    return Option(help_, "true | false", default, lambda text: text.lower() in ("true", "false"))


def _integer(help_: str, default: str | None = None, least: int = 0) -> Option:
    return Option(
        help_,
        f"a whole number of at least {least}",
        default,
        lambda text: text.strip().isdigit() and int(text) >= least,
    )


def _duration(help_: str, default: str | None = None) -> Option:
    return Option(
        help_,
        "a duration such as '10 s'",
        default,
        lambda text: parse_duration_ms(text) is not None,
    )


def _offsets(help_: str) -> Option:
    return Option(
        help_,
        "'partition:0,offset:42;partition:1,offset:300'",
        accepts=lambda text: parse_offsets(text) is not None,
    )


def _refused(help_: str, why: str) -> Option:
    return Option(help_, refused=why)


_TIMESTAMP_FORMAT = _choice("text form of timestamps", "SQL", "ISO-8601", default="SQL")
_JSON_READ = {
    "ignore-parse-errors": _flag("a field that cannot be parsed is NULL, a broken record skipped"),
    "timestamp-format.standard": _TIMESTAMP_FORMAT,
}
_JSON_WRITE = {
    "map-null-key.mode": _choice(
        "a map key that is NULL", "FAIL", "DROP", "LITERAL", default="FAIL"
    ),
    "map-null-key.literal": Option("the text of a NULL map key", default="null"),
    "encode.decimal-as-plain-number": _flag("write 0.00000001 instead of 1E-8"),
    "encode.ignore-null-fields": _flag("leave out fields that are NULL"),
}
_REGISTRY = {
    "url": Option("address of the schema registry; several with commas", "a URL"),
    "subject": Option("subject to register the written schema under"),
    "schema": Option("the schema to read or write with", "an Avro schema"),
    "basic-auth.credentials-source": _choice("where credentials come from", "URL", "USER_INFO"),
    "basic-auth.user-info": Option("user:password", "a ${env:...} or ${file:...} reference"),
    "bearer-auth.credentials-source": _choice("where the token comes from", "STATIC_TOKEN"),
    "bearer-auth.token": Option("the token", "a ${env:...} or ${file:...} reference"),
    "ssl.keystore.location": Option("client certificate", "a path"),
    "ssl.keystore.password": Option("its password", "a ${env:...} or ${file:...} reference"),
    "ssl.truststore.location": Option("trusted certificates", "a path"),
    "ssl.truststore.password": Option("their password", "a ${env:...} or ${file:...} reference"),
    "properties": _refused("more client properties", "the registry client has no other properties"),
}

FORMATS: dict[str, FormatKind] = {
    kind.name: kind
    for kind in (
        FormatKind(
            "json",
            options={
                "fail-on-missing-field": _flag("a field that is not there is an error"),
                **_JSON_READ,
                **_JSON_WRITE,
            },
        ),
        FormatKind(
            "debezium-json",
            "debezium",
            {
                "schema-include": _flag("records carry Kafka Connect's schema around the payload"),
                **_JSON_READ,
                **_JSON_WRITE,
            },
        ),
        FormatKind("changelog-json", "retract", {**_JSON_READ}),
        FormatKind("avro-confluent", options=_REGISTRY, required=("url",)),
        FormatKind(
            "raw",
            options={
                "charset": _choice("encoding of a STRING", "UTF-8", default="UTF-8"),
                "endianness": _choice(
                    "byte order of numbers", "big-endian", "little-endian", default="big-endian"
                ),
            },
        ),
    )
}
KEY_FORMATS = ("json", "avro-confluent", "raw")
# formats that Flink has and rejoin has not
_FOREIGN = "avro debezium-avro-confluent csv canal-json maxwell-json ogg-json protobuf parquet orc"
KNOWN_FORMATS = tuple(_FOREIGN.split())

_BOUNDED = {
    "scan.bounded.mode": _choice(
        "where reading ends",
        "unbounded",
        "latest-offset",
        "group-offsets",
        "timestamp",
        "specific-offsets",
        default="unbounded",
    ),
    "scan.bounded.specific-offsets": _offsets("the first offsets not to read"),
    "scan.bounded.timestamp-millis": _integer("reading ends at this time, epoch milliseconds"),
}
_WATERMARKS = {
    "scan.watermark.idle-timeout": _duration(
        "a partition without records for this long holds no watermark back"
    ),
    "scan.watermark.alignment.group": Option(
        "tables of one group wait for each other's event time"
    ),
    "scan.watermark.alignment.max-drift": _duration(
        "how far a table may be ahead of the slowest one of its group"
    ),
    "scan.watermark.alignment.update-interval": _refused(
        "how often the tables of a group compare their watermarks", "each micro-batch compares"
    ),
}
_KAFKA = {
    "topic": Option("topics; several with semicolons, one for a sink"),
    "topic-pattern": _refused("topics by a regular expression", "list the topics in 'topic'"),
    "key.format": _choice("format of record keys", *KEY_FORMATS),
    "key.fields-prefix": Option("prefix of the columns that stand in the key", default=""),
    "value.fields-include": _choice(
        "whether key columns stand in the value too", "ALL", "EXCEPT_KEY", default="ALL"
    ),
    "sink.delivery-guarantee": _choice(
        "how often a result row is written",
        "exactly-once",
        "at-least-once",
        "none",
        default="exactly-once",
    ),
    "sink.transactional-id-prefix": Option("start of the producers' transactional ids"),
    "sink.parallelism": _refused("writers", "SET 'rejoin.parallelism' sets it for the query"),
    "scan.parallelism": _refused("readers", "SET 'rejoin.parallelism' sets it for the query"),
    "rejoin.on-error": _choice(
        "what a record that cannot be decoded does", "fail", "dead-letter", "skip"
    ),
    "rejoin.dead-letter.topic": Option("topic for records that cannot be decoded"),
    **_BOUNDED,
    **_WATERMARKS,
}
_BY_TRIGGER = "every micro-batch looks for new partitions"
_ORDER_BY_KEY = "records go to the partition of their key, which keeps a row's changes in order"
CONNECTORS: dict[str, dict[str, Option]] = {
    "kafka": {
        **_KAFKA,
        "format": _choice("format of record values", *FORMATS),
        "value.format": _choice("format of record values", *FORMATS),
        "key.fields": Option("columns in the record key; several with semicolons"),
        "scan.startup.mode": _choice(
            "where reading starts",
            "earliest-offset",
            "latest-offset",
            "group-offsets",
            "timestamp",
            "specific-offsets",
            default="group-offsets",
        ),
        "scan.startup.specific-offsets": _offsets("the first offsets to read"),
        "scan.startup.timestamp-millis": _integer("reading starts here, epoch milliseconds"),
        "scan.topic-partition-discovery.interval": _refused("look for partitions", _BY_TRIGGER),
        "sink.partitioner": Option(
            "which partition a record goes to",
            "default",
            "default",
            lambda text: text == "default",
        ),
        "sink.semantic": _refused("delivery", "use 'sink.delivery-guarantee'"),
    },
    "upsert-kafka": {
        **_KAFKA,
        "value.format": _choice("format of record values", *KEY_FORMATS),
        "sink.buffer-flush.max-rows": _refused("buffering", "a micro-batch is the buffer"),
        "sink.buffer-flush.interval": _refused("buffering", "a micro-batch is the buffer"),
    },
}
REQUIRED: dict[str, tuple[str, ...]] = {
    "kafka": ("topic", "properties.bootstrap.servers"),
    "upsert-kafka": ("topic", "properties.bootstrap.servers", "key.format", "value.format"),
}
KNOWN_CONNECTORS = ("jdbc", "filesystem", "datagen", "print", "blackhole", "hbase-2.2", "kinesis")

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
    "pipeline.name": Option("name of the job"),
    "table.local-time-zone": Option(
        "time zone in which TIMESTAMP and TIMESTAMP_LTZ meet",
        "a zone such as 'UTC' or 'Europe/Berlin'",
        "UTC",
        lambda text: text in available_timezones() or bool(_ZONE_OFFSET.fullmatch(text)),
    ),
    "table.exec.source.idle-timeout": _duration(
        "a partition without records for this long holds no watermark back; 0 is never", "0 ms"
    ),
    "table.exec.source.cdc-events-duplicate": _flag(
        "change events may come twice: rows of a PRIMARY KEY are compared with the last one"
    ),
    "table.exec.state.ttl": _duration(
        "rows that nothing has written for this long are forgotten; 0 is never", "0 ms"
    ),
    "table.exec.interval-join.min-cleanup-interval": _duration(
        "how much later than it could an interval join forgets rows and pads outer ones", "0 ms"
    ),
    "table.exec.sink.upsert-materialize": _enum(
        "a list of rows per sink key: where keys differ, never, always", "auto", "none", "force"
    ),
    "table.exec.sink.require-on-conflict": _flag(
        "an INSERT whose query has another key than the sink must say ON CONFLICT"
    ),
    "table.exec.mini-batch.enabled": _flag(
        "ROW_NUMBER() = 1 by event time emits at once and corrects itself, as in Flink's mini-batch"
    ),
    "rejoin.multi-join": _flag(
        "three or more inputs that are joined by one key are joined by one operator", "true"
    ),
    "rejoin.input-faults": _choice(
        "changes that no changelog can hold, such as a second +I of a primary key: repaired, or"
        " trusted as Flink does",
        "repair",
        "trust",
        default="repair",
    ),
    "rejoin.interval-join.min-cleanup-rule": _choice(
        "least cleanup interval of an interval join: none, or half of its window",
        "zero",
        "half",
        default="zero",
    ),
    "rejoin.bootstrap.timeout": _duration(
        "how long the rows of a processing-time join wait for the other side's first content"
    ),
    "rejoin.bootstrap.on-timeout": _choice(
        "what then: the job fails, or goes on with what is there", "fail", "go", default="fail"
    ),
    "rejoin.temporal.late-probe": _choice(
        "a late row at a temporal join: dropped as in Flink 2.4, or joined as in older releases",
        "drop",
        "join",
        default="drop",
    ),
    "rejoin.late.topic": Option("topic for late probe rows that an event-time temporal join drops"),
    "rejoin.checkpoint": Option("folder of the checkpoint", "a path"),
    "rejoin.trigger-interval": _duration("least time between two micro-batches", "200 ms"),
    "rejoin.max-offsets-per-trigger": _integer("most records of one micro-batch", least=1),
    "rejoin.parallelism": _integer("tasks of a stateful operator", least=1),
    "rejoin.key-groups": _integer("parts of the key space, fixed for a checkpoint", "128", 1),
    "rejoin.watermark.policy": _choice(
        "watermark of a join: the lower or the higher of its inputs", "min", "max", default="min"
    ),
    "rejoin.mode": _choice("how Spark runs the query", "micro-batch", default="micro-batch"),
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
}


def given_or_default(connector: str, name: str, given: Mapping[str, str]) -> str | None:
    """What a table says for an option of its connector, or the option's default."""
    if name in given:
        return given[name]
    option = CONNECTORS.get(connector, {}).get(name)
    return option.default if option else None


def is_reference(text: str) -> bool:
    """Whether a value holds a `${env:...}` or `${file:...}`, so that it cannot be checked yet."""
    return REFERENCE.search(text) is not None
