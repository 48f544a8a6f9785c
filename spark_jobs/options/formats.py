"""The formats that WITH can name, their options and defaults, and what is refused by name."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal as OneOf
from typing import TypeAlias

from spark_jobs.options.declared import group, read_options, table_of
from spark_jobs.options.kinds import (
    Option,
    any_text,
    character,
    choice,
    flag,
    integer,
    pattern,
    refused,
    text,
)

DeclaredMode: TypeAlias = OneOf["append", "retract", "debezium"]

SCHEMA_ID = "rejoin.schema-id"
REGISTRY_TIMEOUT_MS = "rejoin.registry.timeout-ms"
_REFERENCE = "a ${env:...} or ${file:...} reference"


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonReading:
    """How JSON is read."""

    ignore_parse_errors: bool = flag(
        "ignore-parse-errors", "a field that cannot be parsed is NULL, a broken record skipped"
    )
    timestamp_format: OneOf["SQL", "ISO-8601"] = choice(
        "timestamp-format.standard", "text form of timestamps", "SQL"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonWriting:
    """How JSON is written."""

    map_null_key: OneOf["FAIL", "DROP", "LITERAL"] = choice(
        "map-null-key.mode", "a map key that is NULL", "FAIL"
    )
    map_null_key_literal: str = text(
        "map-null-key.literal", "the text of a NULL map key", default="null"
    )
    plain_decimals: bool = flag(
        "encode.decimal-as-plain-number", "write 0.00000001 instead of 1E-8"
    )
    leaves_nulls_out: bool = flag("encode.ignore-null-fields", "leave out fields that are NULL")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonOptions:
    fail_on_missing_field: bool = flag(
        "fail-on-missing-field", "a field that is not there is an error"
    )
    reading: JsonReading = group(JsonReading)
    writing: JsonWriting = group(JsonWriting)


@dataclass(frozen=True, slots=True, kw_only=True)
class DebeziumJsonOptions:
    schema_include: bool = flag(
        "schema-include", "records carry Kafka Connect's schema around the payload"
    )
    reading: JsonReading = group(JsonReading)
    writing: JsonWriting = group(JsonWriting)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangelogJsonOptions:
    reading: JsonReading = group(JsonReading)


@dataclass(frozen=True, slots=True, kw_only=True)
class MaxwellJsonOptions:
    reading: JsonReading = group(JsonReading)
    writing: JsonWriting = group(JsonWriting)


@dataclass(frozen=True, slots=True, kw_only=True)
class CanalJsonOptions:
    databases: str | None = pattern(
        "database.include", "matches whole names; records of other databases are skipped"
    )
    tables: str | None = pattern(
        "table.include", "matches whole names; records of other tables are skipped"
    )
    reading: JsonReading = group(JsonReading)
    writing: JsonWriting = group(JsonWriting)


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvReading:
    """How CSV is read."""

    allow_comments: bool = flag("allow-comments", "lines that begin with # are skipped")
    ignore_parse_errors: bool = flag(
        "ignore-parse-errors",
        "a field that cannot be parsed or is not there is NULL, a broken record skipped",
    )
    trim_spaces: bool = flag("trim-spaces", "spaces around fields without quotes are left out")
    ignore_trailing: bool = flag(
        "ignore-trailing-unmappable", "more fields than columns are no error"
    )
    allow_trailing_comma: bool = flag(
        "allow-trailing-comma", "a blank field may follow the last column", "true"
    )
    fail_on_missing: bool = flag(
        "fail-on-missing-columns", "fewer fields than columns are an error, ignored or not"
    )
    empty_is_null: bool = flag("empty-string-as-null", "an empty field is NULL")


@dataclass(frozen=True, slots=True, kw_only=True)
class CsvOptions:
    delimiter: str = character(
        "field-delimiter",
        "what separates fields; \\t and \\u0001 are understood",
        ",",
        escapes=True,
    )
    disable_quotes: bool = flag("disable-quote-character", "no field is in quotes")
    quote: str = character("quote-character", "what encloses fields", '"')
    escape: str | None = character("escape-character", "takes the meaning from the next character")
    array_delimiter: str = character(
        "array-element-delimiter", "what separates the elements of an ARRAY or ROW", ";"
    )
    null_literal: str | None = any_text("null-literal", "the text of NULL, empty if not set")
    scientific: bool = flag(
        "write-bigdecimal-in-scientific-notation",
        "write 1E+2 instead of 100.00; Flink names true as the default and acts as with false",
    )
    reading: CsvReading = group(CsvReading)


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroOptions:
    encoding: OneOf["binary"] = choice("encoding", "how values are written", "binary")
    legacy_timestamps: bool = flag(
        "timestamp_mapping.legacy",
        "TIMESTAMP is written as Avro's timestamp, not as its local-timestamp, and TIMESTAMP_LTZ"
        " not at all",
        "true",
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class RegistryOptions:
    """A schema registry; the last one is an option of the table, for all its formats."""

    url: str | None = text("url", "address of the schema registry; several with commas", "a URL")
    subject: str | None = text("subject", "subject of the written schema")
    registers: bool = flag(
        "auto-register-schemas",
        "a sink registers its schema; without it the subject must have the schema already",
        "true",
    )
    credentials_source: OneOf["URL", "USER_INFO"] | None = choice(
        "basic-auth.credentials-source", "where credentials come from"
    )
    user_info: str | None = text("basic-auth.user-info", "user:password", _REFERENCE)
    token_source: OneOf["STATIC_TOKEN"] | None = choice(
        "bearer-auth.credentials-source", "where the token comes from"
    )
    token: str | None = text("bearer-auth.token", "the token", _REFERENCE)
    keystore: str | None = text("ssl.keystore.location", "client certificate", "a path")
    keystore_password: str | None = text("ssl.keystore.password", "its password", _REFERENCE)
    truststore: str | None = text("ssl.truststore.location", "trusted certificates", "a path")
    truststore_password: str | None = text("ssl.truststore.password", "their password", _REFERENCE)
    timeout_ms: int | None = integer(REGISTRY_TIMEOUT_MS, "the table's own")


@dataclass(frozen=True, slots=True, kw_only=True)
class AvroRegistryOptions:
    """Avro behind the id of its schema; where the id is, is an option of the table."""

    registry: RegistryOptions = group(RegistryOptions)
    schema: str | None = text("schema", "the schema to read or write with", "an Avro schema")
    schema_ids: str = text(SCHEMA_ID, "the table's own", default="prefix")


@dataclass(frozen=True, slots=True, kw_only=True)
class JsonRegistryOptions:
    """JSON behind the id of its schema. Only writing needs the registry."""

    fail_on_missing_field: bool = flag(
        "fail-on-missing-field", "a field that is not there is an error"
    )
    reading: JsonReading = group(JsonReading)
    writing: JsonWriting = group(JsonWriting)
    registry: RegistryOptions = group(RegistryOptions)
    schema_ids: str = text(SCHEMA_ID, "the table's own", default="prefix")


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufOptions:
    descriptor_file: str | None = text(
        "descriptor-file", "what protoc --include_imports --descriptor_set_out wrote", "a path"
    )
    message_name: str | None = text("message-name", "the message of a record, with its package")
    ignore_parse_errors: bool = flag("ignore-parse-errors", "a broken record is skipped")
    read_default_values: bool = flag(
        "read-default-values",
        "a field that is not there has its default, not NULL; others of proto3 always have it",
    )
    null_text: str | None = any_text(
        "write-null-string-literal", "what is written of a NULL in an ARRAY or MAP of texts"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class ProtobufRegistryOptions:
    """Protobuf behind the id of its schema. Only writing needs the registry."""

    message: ProtobufOptions = group(ProtobufOptions)
    registry: RegistryOptions = group(RegistryOptions)


@dataclass(frozen=True, slots=True, kw_only=True)
class RawOptions:
    charset: OneOf["UTF-8"] = choice("charset", "encoding of a STRING", "UTF-8")
    endianness: OneOf["big-endian", "little-endian"] = choice(
        "endianness", "byte order of numbers", "big-endian"
    )


FormatOptions: TypeAlias = (
    JsonOptions
    | JsonRegistryOptions
    | DebeziumJsonOptions
    | ChangelogJsonOptions
    | MaxwellJsonOptions
    | CanalJsonOptions
    | CsvOptions
    | AvroOptions
    | AvroRegistryOptions
    | ProtobufOptions
    | ProtobufRegistryOptions
    | RawOptions
)


@dataclass(frozen=True, slots=True)
class Format:
    """A format as one table uses it.

    `texts` are its options with the defaults, as the kernel reads them, and `options` what they
    mean.
    """

    name: str
    texts: Mapping[str, str]
    options: FormatOptions

    @property
    def changelog(self) -> DeclaredMode:
        return FORMATS[self.name].changelog

    @property
    def registry(self) -> RegistryOptions | None:
        """The registry that has the schemas of its records."""
        match self.options:
            case (
                AvroRegistryOptions(registry=found)
                | JsonRegistryOptions(registry=found)
                | ProtobufRegistryOptions(registry=found)
            ):
                return found
            case _:
                return None

    @property
    def message(self) -> ProtobufOptions | None:
        """The message that a record is."""
        match self.options:
            case (ProtobufOptions() as found) | ProtobufRegistryOptions(message=found):
                return found
            case _:
                return None


@dataclass(frozen=True, slots=True)
class FormatKind:
    """A format that WITH can name. `changelog` is what its records mean when read."""

    name: str
    kind: type[FormatOptions]
    changelog: DeclaredMode = "append"
    required: tuple[str, ...] = ()

    @property
    def registry(self) -> bool:
        """Whether a registry has the schemas of its records."""
        return REGISTRY_TIMEOUT_MS in table_of(self.kind)

    @property
    def names_schemas(self) -> bool:
        """Whether its records have the id of a schema, which a table's option looks for."""
        return SCHEMA_ID in table_of(self.kind)

    @property
    def options(self) -> dict[str, Option]:
        """The options of the format by name, refused ones too."""
        found = {n: o for n, o in table_of(self.kind).items() if not n.startswith("rejoin.")}
        return found | _REFUSED.get(self.kind, {})

    def read(self, given: Mapping[str, str], prefix: str) -> Format:
        """The options below `<prefix><name>.`, completed by the defaults."""
        start = f"{prefix}{self.name}."
        found = {n: o.default for n, o in self.options.items() if o.default is not None}
        found |= {k[len(start) :]: v for k, v in given.items() if k.startswith(start)}
        return format_of(self.name, found)


def format_of(name: str, texts: Mapping[str, str]) -> Format:
    """The format with these options, which need no defaults any more."""
    return Format(name, texts, read_options(FORMATS[name].kind, texts))


_OTHER_MESSAGES = {
    "message-class-name": refused(
        "the class that protoc has made",
        "compiled classes are not loaded: use 'descriptor-file' and 'message-name'",
    ),
}
_REFUSED: dict[type[FormatOptions], dict[str, Option]] = {
    AvroRegistryOptions: {
        "properties": refused("more client properties", "the registry client has no others"),
        "schema-registry.url": refused("the older name of 'url'", "use 'url'"),
        "schema-registry.subject": refused("the older name of 'subject'", "use 'subject'"),
        "schema-registry.schema": refused("the older name of 'schema'", "use 'schema'"),
    },
    ProtobufOptions: _OTHER_MESSAGES,
    ProtobufRegistryOptions: _OTHER_MESSAGES,
}
_MESSAGE = ("descriptor-file", "message-name")
FORMATS: dict[str, FormatKind] = {
    kind.name: kind
    for kind in (
        FormatKind("json", JsonOptions),
        FormatKind("json-registry", JsonRegistryOptions),
        FormatKind("debezium-json", DebeziumJsonOptions, "debezium"),
        FormatKind("changelog-json", ChangelogJsonOptions, "retract"),
        FormatKind("canal-json", CanalJsonOptions, "retract"),
        FormatKind("maxwell-json", MaxwellJsonOptions, "retract"),
        FormatKind("csv", CsvOptions),
        FormatKind("avro", AvroOptions),
        FormatKind("avro-confluent", AvroRegistryOptions, required=("url",)),
        FormatKind("debezium-avro-confluent", AvroRegistryOptions, "debezium", ("url",)),
        FormatKind("protobuf", ProtobufOptions, required=_MESSAGE),
        FormatKind("proto-registry", ProtobufRegistryOptions, required=_MESSAGE),
        FormatKind("raw", RawOptions),
    )
}
KEY_FORMATS = (
    *("json", "json-registry", "csv", "avro", "avro-confluent"),
    *("protobuf", "proto-registry", "raw"),
)
# formats of Flink that rejoin does not support
KNOWN_FORMATS = ("ogg-json", "parquet", "orc")
