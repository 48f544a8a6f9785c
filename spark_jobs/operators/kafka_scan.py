"""Kafka topics to keyed changelog rows."""

import json

from pyspark.sql import DataFrame

from spark_jobs.operators.running import Running, scan_id, spec
from spark_jobs.plan.physical import KafkaScan
from spark_jobs.streaming.kafka import Subscription

SOURCE = "org.apache.spark.sql.rejoin.GatedKafka"


def build_scan(scan: KafkaScan, running: Running, *, chunked: bool) -> DataFrame:
    """The envelopes of one table: rows, rejects and, where a join needs them, watermarks.

    `chunked`: many rows in one envelope, as stateful operators take them.
    """
    start = running.manifest.scans[scan_id(scan)]
    subscription = Subscription(
        table=scan_id(scan),
        topics=tuple(topic.name for topic in scan.topics),
        starts=start.starts,
        ends=start.ends,
        properties=scan.properties,
        max_offsets=running.max_offsets,
        headers=_reads_headers(scan),
    )
    records = running.spark.readStream.format(SOURCE).options(**subscription.options()).load()
    return running.frame(
        running.kernel.ingest(records._jdf, json.dumps({**spec(scan), "chunked": chunked}))
    )


def _reads_headers(scan: KafkaScan) -> bool:
    """Dead letters keep theirs; otherwise they cost and nobody reads them."""
    wanted = any(c.origin == "metadata" and c.field == "headers" for c in scan.columns)
    return wanted or scan.on_error == "dead-letter"
