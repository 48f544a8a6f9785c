"""The description of a sink for the kernel's encoder and writer."""

from typing import Literal

from spark_jobs.formats.sink_schema import encodable
from spark_jobs.kernel.calls import Message
from spark_jobs.operators.running import Running, resolve_public
from spark_jobs.options.formats import Format, format_of
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink
from spark_jobs.plan.nodes.plan_json import Json, to_json
from spark_jobs.sql.types.data_types import RowField


def describe(sink: KafkaSink, running: Running) -> Message:
    """The sink's JSON, with what the encoder and the writer need to know about this start."""
    return {
        **to_json(sink),  # keeps `inputs`: the SELECT list refers to their columns
        "properties": dict(sink.properties),
        "keyFormat": _format(sink, sink.key_format, "key"),
        "valueFormat": _format(sink, sink.value_format, "value"),
        "transactionalIdPrefix": sink.transactional_id_prefix or running.manifest.ledgers,
        "checkpoint": running.manifest.checkpoint,
        "generation": running.generation,
        "dense": is_dense(sink),
        "ledgers": running.ledgers,
        "partitions": running.manifest.sink_partitions,
        "heartbeatMs": running.heartbeat_ms,
        "deletesFirst": sink.exchange,
        "realTime": running.real_time,
        "folder": running.folder,
    }


def is_dense(sink: KafkaSink) -> bool:
    """Whether every writer takes part in each epoch.

    State has the same partitions in every epoch; a scan without state only those with new records.
    Beside such a scan in a UNION ALL the writers of an operator have another number in each epoch.
    """
    return sink.exchange or not any(isinstance(i.input, KafkaScan) for i in sink.inputs)


def _format(sink: KafkaSink, declared: Format | None, part: Literal["key", "value"]) -> Json:
    if declared is None:
        return None
    given = format_of(declared.name, resolve_public(declared.texts))
    complete = encodable(given, sink.topic, part, record_columns(sink, part))
    return {"name": complete.name, "options": dict(complete.texts)}


def record_columns(sink: KafkaSink, part: Literal["key", "value"]) -> list[RowField]:
    """The columns of the record's key or value, in the order of the table's declaration."""
    by_name = {field.name: field for field in sink.schema.fields}
    if part == "key":
        prefix = len(sink.key_prefix)
        return [RowField(name[prefix:], by_name[name].type) for name in sink.key_fields]
    apart = {column.column for column in sink.metadata}
    if not sink.value_includes_key:
        apart |= set(sink.key_fields)
    return [field for name, field in by_name.items() if name not in apart]
