"""The SELECT list, the encoding and the writer at the end of a query."""

import json
from collections.abc import Sequence
from functools import reduce
from typing import Literal

from pyspark.sql import DataFrame
from pyspark.sql.streaming.readwriter import DataStreamWriter

from spark_jobs.formats.sink_schema import AVRO, with_schema_id
from spark_jobs.operators.running import Running
from spark_jobs.plan.physical import KafkaScan, KafkaSink, Project
from spark_jobs.plan.plan_json import Json, to_json
from spark_jobs.sql.format_options import Format
from spark_jobs.sql.types import RowField
from spark_jobs.streaming.kafka import resolved


def build_sink(
    sink: KafkaSink, described: str, records: DataFrame, running: Running
) -> DataStreamWriter:
    """Records to the topic; not started yet."""
    if sink.exchange:
        records = records.repartition(running.manifest.parallelism, "key")
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
        "properties": {name: resolved(value) for name, value in sink.properties.items()},
        "keyFormat": _format(sink, sink.key_format, "key"),
        "valueFormat": _format(sink, sink.value_format, "value"),
        "transactionalIdPrefix": sink.transactional_id_prefix or running.job,
        "checkpoint": running.manifest.checkpoint,
        "repeated": running.repeated_epoch,
        # state has the same partitions in every epoch, a bare scan only those with new records
        "dense": sink.exchange or not any(isinstance(i.input, KafkaScan) for i in sink.inputs),
        "deletesFirst": sink.exchange,
    }
    return json.dumps(known)


def _format(sink: KafkaSink, declared: Format | None, part: Literal["key", "value"]) -> Json:
    if declared is None:
        return None
    options = {name: resolved(value) for name, value in declared.options.items()}
    if declared.name == AVRO:
        options = with_schema_id(options, sink.topic, part, _columns(sink, part))
    return {"name": declared.name, "options": dict(options)}


def _columns(sink: KafkaSink, part: Literal["key", "value"]) -> list[RowField]:
    """Of the record's key or value, as the table declares them."""
    by_name = {field.name: field for field in sink.schema.fields}
    if part == "key":
        prefix = len(sink.key_prefix)
        return [RowField(name[prefix:], by_name[name].type) for name in sink.key_fields]
    kept = set() if sink.value_includes_key else set(sink.key_fields)
    return [field for name, field in by_name.items() if name not in kept]
