"""What an Avro sink needs before its first record: the schema of each part, and its id."""

from collections.abc import Sequence

from spark_jobs.formats.avro import avro_schema, envelope_schema, with_schema
from spark_jobs.formats.registry import PATIENCE_S, RegistryClient
from spark_jobs.options.formats import FORMATS, Format
from spark_jobs.sql.catalog import REGISTRY_TIMEOUT_MS
from spark_jobs.sql.types.data_types import RowField


def encodable(declared: Format, topic: str, part: str, columns: Sequence[RowField]) -> Format:
    """The format as its encoder takes it; with a registry, the schema is registered if need be."""
    if not FORMATS[declared.name].registry:
        return with_schema(declared, columns)
    subject, schema = registered_schema(declared, topic, part, columns)
    return Format(declared.name, _with_id(declared.options, subject, schema))


def registered_schema(
    declared: Format, topic: str, part: str, columns: Sequence[RowField]
) -> tuple[str, str]:
    """The subject of a part, and the schema that belongs there."""
    is_envelope = FORMATS[declared.name].changelog == "debezium"
    own = envelope_schema(columns) if is_envelope else avro_schema(columns)
    subject = declared.options.get("subject") or f"{topic}-{part}"
    return subject, declared.options.get("schema") or own


def _with_id(options: dict[str, str], subject: str, schema: str) -> dict[str, str]:
    patience_ms = options.get(REGISTRY_TIMEOUT_MS)
    client = RegistryClient(options, PATIENCE_S if patience_ms is None else int(patience_ms) / 1000)
    try:
        schema_id = client.register(subject, schema)
    finally:
        client.close()
    return {**options, "schema": schema, "schema-id": str(schema_id)}
