"""What an Avro sink needs before its first record: the schema of each part, and its id."""

from collections.abc import Sequence
from dataclasses import replace

from spark_jobs.formats.avro import avro_schema, envelope_schema
from spark_jobs.formats.columns import with_columns
from spark_jobs.formats.registry import PATIENCE_S, RegistryClient
from spark_jobs.options.formats import Format, RegistryOptions
from spark_jobs.sql.types.data_types import RowField


def encodable(declared: Format, topic: str, part: str, columns: Sequence[RowField]) -> Format:
    """The format with its schema; with a registry the schema is registered first."""
    options = declared.options
    if not isinstance(options, RegistryOptions):
        return with_columns(declared, columns)
    subject, schema = registered_schema(declared, options, topic, part, columns)
    patience_ms = options.timeout_ms
    client = RegistryClient(options, PATIENCE_S if patience_ms is None else patience_ms / 1000)
    try:
        schema_id = client.register(subject, schema)
    finally:
        client.close()
    texts = {**declared.texts, "schema": schema, "schema-id": str(schema_id)}
    return replace(declared, texts=texts)


def registered_schema(
    declared: Format, options: RegistryOptions, topic: str, part: str, columns: Sequence[RowField]
) -> tuple[str, str]:
    """The subject of the key or value, and the schema to register there."""
    is_envelope = declared.changelog == "debezium"
    own = envelope_schema(columns) if is_envelope else avro_schema(columns)
    return options.subject or f"{topic}-{part}", options.schema or own
