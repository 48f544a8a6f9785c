"""The SELECT list, the encoding and the writer at the end of a query."""

import json
from collections.abc import Sequence
from functools import reduce
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql.functions import expr
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.formats.sink_schema import encodable
from spark_jobs.operators.running import Running, resolve_public
from spark_jobs.options.formats import Format, format_of
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink, Project
from spark_jobs.plan.nodes.plan_json import Json, to_json
from spark_jobs.sql.types.data_types import RowField


def build_sink(
    sink: KafkaSink, described: str, records: DataFrame, running: Running
) -> DataStreamWriter:
    """Records to the topic; not started yet."""
    if sink.exchange:
        # dead letters keep the order of their source partitions in one task
        key = expr("CASE WHEN exists(headers, h -> h.key = 'rejoin.reason') THEN NULL ELSE key END")
        records = records.repartition(running.manifest.parallelism, key)
    writer = records.writeStream
    # PySpark has no foreach for a writer that lives in the JVM
    writer._jwrite = running.kernel.foreachWriter(records._jdf, described)
    return writer


def build_records(described: str, changes: Sequence[DataFrame], running: Running) -> DataFrame:
    """The changes of the sink's inputs as records."""
    encoded = [
        running.frame(running.kernel.emit(rows._jdf, described, number))
        for number, rows in enumerate(changes)
    ]
    return reduce(DataFrame.unionAll, encoded)


def build_changes(project: Project, rows: DataFrame) -> DataFrame:
    """A scan's rows as changes; those of operators are changes already.

    Rows without a join key keep the order of their source partition.
    """
    if not isinstance(project.input, KafkaScan):
        return rows
    hashed = "`group`" if project.input.key else "source"
    return rows.where("kind < 16 OR kind = 32").selectExpr(
        "kind", f"{hashed} AS hash", "`row` AS `left`", "CAST(NULL AS BINARY) AS `right`"
    )


def describe(sink: KafkaSink, running: Running) -> str:
    """The sink's JSON with what the encoder and the writer must know of this run."""
    known: dict[str, Json] = {
        **to_json(sink),  # with its inputs: their schemas are what the SELECT list is bound to
        "properties": dict(sink.properties),
        "keyFormat": _format(sink, sink.key_format, "key"),
        "valueFormat": _format(sink, sink.value_format, "value"),
        "transactionalIdPrefix": sink.transactional_id_prefix or running.manifest.ledgers,
        "checkpoint": running.manifest.checkpoint,
        "generation": running.generation,
        "dense": is_dense(sink),
        "partitions": running.manifest.sink_partitions,
        "heartbeatMs": running.heartbeat_ms,
        "deletesFirst": sink.exchange,
    }
    return json.dumps(known)


def is_dense(sink: KafkaSink) -> bool:
    """Whether each epoch writes with every writer.

    State has the same partitions in every epoch, a bare scan only those with new records.
    """
    return sink.exchange or not any(isinstance(i.input, KafkaScan) for i in sink.inputs)


def _format(sink: KafkaSink, declared: Format | None, part: Literal["key", "value"]) -> Json:
    if declared is None:
        return None
    known = format_of(declared.name, resolve_public(declared.texts))
    complete = encodable(known, sink.topic, part, record_columns(sink, part))
    return {"name": complete.name, "options": dict(complete.texts)}


def record_columns(sink: KafkaSink, part: Literal["key", "value"]) -> list[RowField]:
    """Of the record's key or value, as the table declares them."""
    by_name = {field.name: field for field in sink.schema.fields}
    if part == "key":
        prefix = len(sink.key_prefix)
        return [RowField(name[prefix:], by_name[name].type) for name in sink.key_fields]
    kept = set() if sink.value_includes_key else set(sink.key_fields)
    return [field for name, field in by_name.items() if name not in kept]
