"""The formats that WITH can name, their options and defaults, and what is refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

from spark_jobs.options.kinds import Option, choice, flag, refused

DeclaredMode: TypeAlias = Literal["append", "retract", "debezium"]


@dataclass(frozen=True, slots=True)
class Format:
    """A format as one table uses it: its name and its options, defaults included."""

    name: str
    options: dict[str, str]


@dataclass(frozen=True, slots=True)
class FormatKind:
    """A format that WITH can name.

    `changelog` is what its records mean when read, `registry` whether one has their schemas.
    """

    name: str
    changelog: DeclaredMode = "append"
    options: Mapping[str, Option] = field(default_factory=dict)
    required: tuple[str, ...] = ()
    registry: bool = False

    def read(self, given: Mapping[str, str], prefix: str) -> Format:
        """The options below `<prefix><name>.`, completed by the defaults."""
        start = f"{prefix}{self.name}."
        found = {n: o.default for n, o in self.options.items() if o.default is not None}
        found |= {k[len(start) :]: v for k, v in given.items() if k.startswith(start)}
        return Format(self.name, found)


_TIMESTAMP_FORMAT = choice("text form of timestamps", "SQL", "ISO-8601", default="SQL")
_JSON_READ = {
    "ignore-parse-errors": flag("a field that cannot be parsed is NULL, a broken record skipped"),
    "timestamp-format.standard": _TIMESTAMP_FORMAT,
}
_JSON_WRITE = {
    "map-null-key.mode": choice(
        "a map key that is NULL", "FAIL", "DROP", "LITERAL", default="FAIL"
    ),
    "map-null-key.literal": Option("the text of a NULL map key", default="null"),
    "encode.decimal-as-plain-number": flag("write 0.00000001 instead of 1E-8"),
    "encode.ignore-null-fields": flag("leave out fields that are NULL"),
}
_REGISTRY = {
    "url": Option("address of the schema registry; several with commas", "a URL"),
    "subject": Option("subject to register the written schema under"),
    "schema": Option("the schema to read or write with", "an Avro schema"),
    "basic-auth.credentials-source": choice("where credentials come from", "URL", "USER_INFO"),
    "basic-auth.user-info": Option("user:password", "a ${env:...} or ${file:...} reference"),
    "bearer-auth.credentials-source": choice("where the token comes from", "STATIC_TOKEN"),
    "bearer-auth.token": Option("the token", "a ${env:...} or ${file:...} reference"),
    "ssl.keystore.location": Option("client certificate", "a path"),
    "ssl.keystore.password": Option("its password", "a ${env:...} or ${file:...} reference"),
    "ssl.truststore.location": Option("trusted certificates", "a path"),
    "ssl.truststore.password": Option("their password", "a ${env:...} or ${file:...} reference"),
    "properties": refused("more client properties", "the registry client has no other properties"),
    "schema-registry.url": refused("the older name of 'url'", "use 'url'"),
    "schema-registry.subject": refused("the older name of 'subject'", "use 'subject'"),
    "schema-registry.schema": refused("the older name of 'schema'", "use 'schema'"),
}
_AVRO = {
    "encoding": choice("how values are written", "binary", default="binary"),
    "timestamp_mapping.legacy": flag(
        "TIMESTAMP is written as Avro's timestamp, not as its local-timestamp, and TIMESTAMP_LTZ"
        " not at all",
        "true",
    ),
}

FORMATS: dict[str, FormatKind] = {
    kind.name: kind
    for kind in (
        FormatKind(
            "json",
            options={
                "fail-on-missing-field": flag("a field that is not there is an error"),
                **_JSON_READ,
                **_JSON_WRITE,
            },
        ),
        FormatKind(
            "debezium-json",
            "debezium",
            {
                "schema-include": flag("records carry Kafka Connect's schema around the payload"),
                **_JSON_READ,
                **_JSON_WRITE,
            },
        ),
        FormatKind("changelog-json", "retract", {**_JSON_READ}),
        FormatKind("avro", options=_AVRO),
        FormatKind("avro-confluent", options=_REGISTRY, required=("url",), registry=True),
        FormatKind("debezium-avro-confluent", "debezium", _REGISTRY, ("url",), registry=True),
        FormatKind(
            "raw",
            options={
                "charset": choice("encoding of a STRING", "UTF-8", default="UTF-8"),
                "endianness": choice(
                    "byte order of numbers", "big-endian", "little-endian", default="big-endian"
                ),
            },
        ),
    )
}
KEY_FORMATS = ("json", "avro", "avro-confluent", "raw")
# formats that Flink has and rejoin has not
KNOWN_FORMATS = ("csv", "canal-json", "maxwell-json", "ogg-json", "protobuf", "parquet", "orc")
