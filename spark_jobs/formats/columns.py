"""What the kernel has to know of a record's columns where the record itself does not name them."""

import json
from collections.abc import Sequence
from dataclasses import replace

from spark_jobs.formats.avro import avro_schema, correct, legacy
from spark_jobs.formats.json_schema import json_schema
from spark_jobs.formats.proto_text import registered_file
from spark_jobs.formats.protobuf import layout, refuse_unwritable
from spark_jobs.options.formats import (
    AvroOptions,
    CsvOptions,
    Format,
    JsonRegistryOptions,
    ProtobufRegistryOptions,
)
from spark_jobs.sql.types.data_types import RowField


def check_written(declared: Format | None, fields: Sequence[RowField]) -> None:
    """Refuse columns of a sink that its message or schema cannot hold. Raises FormatError."""
    if declared is None:
        return
    if (message := declared.message) is not None:
        file, name = message.descriptor_file or "", message.message_name or ""
        refuse_unwritable(file, name, fields)
    match declared.options:
        case JsonRegistryOptions(reading=reading):
            json_schema(fields, reading.timestamp_format)
        case ProtobufRegistryOptions():
            registered_file(file, name)
        case _:
            pass


def with_columns(declared: Format, fields: Sequence[RowField]) -> Format:
    """The format with all columns of its key or value; as it is where records name them.

    Plain Avro gets the schema of the columns, CSV their names, Protobuf their field numbers.
    """
    if (message := declared.message) is not None:
        text = layout(message.descriptor_file or "", message.message_name or "", fields)
        return replace(declared, texts={**declared.texts, "layout": text})
    match declared.options:
        case AvroOptions(legacy_timestamps=is_legacy):
            schema = avro_schema(fields, legacy if is_legacy else correct)
            return replace(declared, texts={**declared.texts, "schema": schema})
        case CsvOptions():
            names = json.dumps([field.name for field in fields])
            return replace(declared, texts={**declared.texts, "columns": names})
        case _:
            return declared
