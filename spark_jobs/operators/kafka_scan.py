"""KafkaScan: Kafka topics to keyed changelog rows."""

import json

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running, spec
from spark_jobs.options.formats import AvroRegistryOptions, JsonRegistryOptions
from spark_jobs.plan.nodes.physical import KafkaScan
from spark_jobs.streaming.sources import known_starts, offsets_json, source_options

SOURCE = "org.apache.spark.sql.rejoin.ingest.GatedKafka"
# what a task reads and decodes in about the time that Spark takes to start and end it
_RECORDS_PER_TASK = 5_000


def live_readers(parallelism: int) -> int:
    """How many tasks read a table in real-time mode, at most.

    Half as many as the tasks of an operator: a join has two tables, and each task asks the broker
    once for all of its partitions.

    >>> live_readers(1), live_readers(2), live_readers(3), live_readers(8)
    (1, 1, 2, 4)
    """
    return (parallelism + 1) // 2


def build_scan(
    running: Running, scan: KafkaScan, chunked: bool, *, shares_tasks: bool = True
) -> DataFrame:
    """The envelopes of one table: rows, rejects and, for joins that need them, marks.

    `chunked`: many rows per envelope, as stateful operators expect them. `shares_tasks`: one task
    may read several partitions if they have few records; never where rows are not exchanged, since
    the sink's writers are known by the number of their task.
    """
    topic_ids = {topic.name: running.manifest.topic_ids[topic.name] for topic in scan.topics}
    options = {
        **source_options(running.manifest.scans[scan.id], topic_ids, scan.properties),
        **_pace(scan, running),
        "includeHeaders": str(_reads_headers(scan)).lower(),
        "failOnDataLoss": str(not running.goes_on_after_data_loss).lower(),
        "rejoin.query": running.query,
        "rejoin.table": scan.id,
        "rejoin.records-per-task": str(_RECORDS_PER_TASK if chunked and shares_tasks else 0),
    }
    if scan.pattern is not None:
        starts = running.manifest.scans[scan.id].starts
        options["rejoin.starts"] = offsets_json(known_starts(starts))
    if scan.alignment is not None:
        aligned = {
            "group": scan.alignment.group,
            "maxDriftMs": scan.alignment.max_drift_ms,
            "query": running.query,
            "topics": [topic.index for topic in scan.topics],
        }
        options["rejoin.alignment"] = json.dumps(aligned)
    records = running.spark.readStream.format(SOURCE).options(**options).load()
    return envelopes(scan, records, running, chunked=chunked)


def envelopes(scan: KafkaScan, records: DataFrame, running: Running, *, chunked: bool) -> DataFrame:
    """The envelopes of Kafka's records."""
    return Kernel.of(running.spark).ingest(
        records,
        spec(scan),
        running.query,
        chunked=chunked,
        real_time=running.real_time,
        steps=running.has_steps,
    )


def _pace(scan: KafkaScan, running: Running) -> dict[str, str]:
    """How much an epoch reads; in real-time mode its readers, its length, and the pace of marks."""
    live = running.live
    if live is None:
        return {"maxOffsetsPerTrigger": str(running.max_offsets)}
    given = scan.properties
    # a record ends the wait of a fetch: the length matters only to a broker without records
    wait_ms = given.get("fetch.max.wait.ms", "100")
    # a task reads several partitions: none waits long for a backlog of another one
    at_once = given.get("max.partition.fetch.bytes", str(128 << 10))
    return {
        "rejoin.readers": str(live_readers(running.manifest.parallelism)),
        "rejoin.marks-ms": str(live.marks_ms if scan.marks else 0),
        "rejoin.checkpoint": running.folder,
        "rejoin.epoch-ms": str(live.epoch_ms),
        "rejoin.warm-up-epochs": str(live.warm_up_epochs),
        "rejoin.barriers-ms": str(live.commit_ms),
        "kafka.fetch.max.wait.ms": wait_ms,
        "kafka.max.partition.fetch.bytes": at_once,
    }


def _reads_headers(scan: KafkaScan) -> bool:
    """Headers are read only for dead-letter records, schema ids and key changes that need them."""
    wanted = any(c.origin == "metadata" and c.field == "headers" for c in scan.columns)
    formats = [f.options for f in (scan.key_format, scan.value_format) if f is not None]
    named = [o for o in formats if isinstance(o, AvroRegistryOptions | JsonRegistryOptions)]
    ids = any(options.schema_ids.endswith("-headers") for options in named)
    moves = scan.debezium is not None and scan.debezium.follows_keys
    return wanted or ids or moves or scan.on_error == "dead-letter"
