"""What the kernel has to know of a record's columns where the record itself does not name them."""

import json
from collections.abc import Sequence
from dataclasses import replace

from spark_jobs.formats.avro import avro_schema, correct, legacy
from spark_jobs.formats.protobuf import layout, refuse_unwritable
from spark_jobs.options.formats import AvroOptions, CsvOptions, Format, ProtobufOptions
from spark_jobs.sql.types.data_types import RowField


def check_written(declared: Format | None, fields: Sequence[RowField]) -> None:
    """Refuse columns of a sink that a Protobuf message cannot hold. Raises FormatError."""
    match declared and declared.options:
        case ProtobufOptions(descriptor_file=path, message_name=message):
            refuse_unwritable(path or "", message or "", fields)
        case _:
            pass


def with_columns(declared: Format, fields: Sequence[RowField]) -> Format:
    """The format with all columns of its key or value; as it is where records name them.

    Plain Avro gets the schema of the columns, CSV their names, Protobuf their field numbers.
    """
    match declared.options:
        case AvroOptions(legacy_timestamps=is_legacy):
            schema = avro_schema(fields, legacy if is_legacy else correct)
            return replace(declared, texts={**declared.texts, "schema": schema})
        case CsvOptions():
            names = json.dumps([field.name for field in fields])
            return replace(declared, texts={**declared.texts, "columns": names})
        case ProtobufOptions(descriptor_file=path, message_name=message):
            text = layout(path or "", message or "", fields)
            return replace(declared, texts={**declared.texts, "layout": text})
        case _:
            return declared
