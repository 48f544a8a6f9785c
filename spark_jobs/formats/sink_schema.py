"""What a sink with a registry needs before its first record: its schemas, and their ids."""

from collections.abc import Sequence
from dataclasses import replace

from spark_jobs.errors import FormatError
from spark_jobs.formats.avro import avro_schema, envelope_schema
from spark_jobs.formats.columns import with_columns
from spark_jobs.formats.json_schema import json_schema
from spark_jobs.formats.proto_text import registered_file
from spark_jobs.formats.written_schema import WrittenSchema
from spark_jobs.options.formats import (
    AvroRegistryOptions,
    Format,
    JsonRegistryOptions,
    ProtobufRegistryOptions,
    RegistryOptions,
)
from spark_jobs.sql.types.data_types import RowField


def encodable(declared: Format, topic: str, part: str, columns: Sequence[RowField]) -> Format:
    """The format with what it writes; with a registry, the schema's id is found there."""
    complete = with_columns(declared, columns)
    registry = declared.registry
    if registry is None:
        return complete
    schema = written_schema(declared, columns)
    found = _id(registry, subject_of(registry, topic, part), schema)
    texts = {**complete.texts, "schema-id": str(found)}
    if isinstance(declared.options, AvroRegistryOptions):
        texts["schema"] = schema.text
    return replace(complete, texts=texts)


def subject_of(registry: RegistryOptions, topic: str, part: str) -> str:
    """The subject of a sink's keys or values."""
    return registry.subject or f"{topic}-{part}"


def written_schema(declared: Format, columns: Sequence[RowField]) -> WrittenSchema:
    """The schema of records with these columns, in a format that has a registry."""
    match declared.options:
        case AvroRegistryOptions(schema=given):
            is_envelope = declared.changelog == "debezium"
            own = envelope_schema(columns) if is_envelope else avro_schema(columns)
            return WrittenSchema(given or own)
        case JsonRegistryOptions() as options:
            return WrittenSchema(json_schema(columns, options.reading.timestamp_format), "JSON")
        case ProtobufRegistryOptions(message=message):
            return registered_file(message.descriptor_file or "", message.message_name or "")
        case _:
            raise TypeError(f"format {declared.name} has no registry")


def _id(registry: RegistryOptions, subject: str, schema: WrittenSchema) -> int:
    # a client of HTTP and a reader of certificates, which jobs without a registry do without
    from spark_jobs.formats.registry import PATIENCE_S, RegistryClient

    patience_ms = registry.timeout_ms
    client = RegistryClient(registry, PATIENCE_S if patience_ms is None else patience_ms / 1000)
    try:
        if registry.registers:
            return client.register(subject, schema)
        found = client.lookup(subject, schema)
    finally:
        client.close()
    if found is None:
        raise unregistered(subject)
    return found.id


def unregistered(subject: str) -> FormatError:
    """The error of a sink that may not register a schema which the registry lacks."""
    return FormatError(
        "SCHEMA_UNREGISTERED",
        f"subject {subject} does not have the schema of the sink's columns",
        "register it, or set the format's 'auto-register-schemas' = 'true'",
    )
