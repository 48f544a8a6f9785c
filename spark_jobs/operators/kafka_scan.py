"""KafkaScan: Kafka topics to keyed changelog rows."""

import json

from pyspark.sql import DataFrame

from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import Running, Scan, spec
from spark_jobs.plan.nodes.physical import KafkaScan
from spark_jobs.streaming.sources import Subscription

SOURCE = "org.apache.spark.sql.rejoin.ingest.GatedKafka"


def build_scan(scan: Scan, running: Running, *, chunked: bool) -> DataFrame:
    """The envelopes of one table: rows, rejects and, for joins that need them, marks.

    `chunked`: many rows per envelope, as stateful operators expect them.
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
    """The envelopes of Kafka's records."""
    kernel = Kernel.of(running.spark)
    return kernel.ingest(records, spec(scan.node), running.query, chunked=chunked)


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
    """Headers are read only for dead-letter records, schema ids and key changes that need them."""
    wanted = any(c.origin == "metadata" and c.field == "headers" for c in scan.columns)
    formats = [f for f in (scan.key_format, scan.value_format) if f is not None]
    ids = any(f.options.get("rejoin.schema-id", "").endswith("-headers") for f in formats)
    moves = scan.debezium is not None and scan.debezium.follows_keys
    return wanted or ids or moves or scan.on_error == "dead-letter"
