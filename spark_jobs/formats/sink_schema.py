"""What an Avro sink needs before its first record: the schema of each part, and its id."""

from spark_jobs.formats.avro import avro_schema
from spark_jobs.formats.registry import RegistryClient
from spark_jobs.sql.types import RowField

AVRO = "avro-confluent"


def with_schema_id(
    options: dict[str, str], topic: str, part: str, columns: list[RowField]
) -> dict[str, str]:
    """The format's options with `schema` and `schema-id`; registers the schema if need be."""
    schema = options.get("schema") or avro_schema(columns)
    client = RegistryClient(options)
    try:
        schema_id = client.register(options.get("subject") or f"{topic}-{part}", schema)
    finally:
        client.close()
    return {**options, "schema": schema, "schema-id": str(schema_id)}
