"""Kafka topics to keyed changelog rows."""

import json

from pyspark.sql import DataFrame

from spark_jobs.operators.running import Running, Scan, spec
from spark_jobs.options.formats import RegistryOptions
from spark_jobs.plan.nodes.physical import KafkaScan
from spark_jobs.streaming.kafka import Subscription

SOURCE = "org.apache.spark.sql.rejoin.GatedKafka"


def build_scan(scan: Scan, running: Running, *, chunked: bool) -> DataFrame:
    """The envelopes of one table: rows, rejects and, where a join needs them, marks.

    `chunked`: many rows in one envelope, as stateful operators take them.
    """
    start = running.manifest.scans[scan.id]
    subscription = Subscription(
        query=running.query,
        table=scan.id,
        topics=tuple(topic.name for topic in scan.node.topics),
        starts=start.starts,
        ends=start.ends,
        properties=scan.node.properties,
        max_offsets=running.max_offsets,
        headers=_reads_headers(scan.node),
        loaded=start.loaded,
        alignment=_alignment(scan.node, running),
        topic_ids={t.name: running.manifest.topic_ids[t.name] for t in scan.node.topics},
        fails_on_data_loss=not running.goes_on_after_data_loss,
    )
    records = running.spark.readStream.format(SOURCE).options(**subscription.options()).load()
    return envelopes(scan, records, running, chunked=chunked)


def envelopes(scan: Scan, records: DataFrame, running: Running, *, chunked: bool) -> DataFrame:
    """What becomes of Kafka's records."""
    described = {**spec(scan.node), "chunked": chunked}
    kernel = running.kernel
    return running.frame(kernel.ingest(records._jdf, json.dumps(described), running.query))


def _alignment(scan: KafkaScan, running: Running) -> str | None:
    if scan.alignment is None:
        return None
    return json.dumps(
        {
            "group": scan.alignment.group,
            "maxDriftMs": scan.alignment.max_drift_ms,
            "query": running.query,
            "topics": [topic.index for topic in scan.topics],
        }
    )


def _reads_headers(scan: KafkaScan) -> bool:
    """Dead letters keep theirs; schema ids and changes of keys may stand there. Else a waste."""
    wanted = any(c.origin == "metadata" and c.field == "headers" for c in scan.columns)
    formats = [f.options for f in (scan.key_format, scan.value_format) if f is not None]
    registries = [options for options in formats if isinstance(options, RegistryOptions)]
    ids = any(options.schema_ids.endswith("-headers") for options in registries)
    moves = scan.debezium is not None and scan.debezium.follows_keys
    return wanted or ids or moves or scan.on_error == "dead-letter"
