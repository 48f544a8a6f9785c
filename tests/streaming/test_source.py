"""The rows of the Kafka source: those of Spark's own, which reads the same records."""

import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.operators.kafka_scan import SOURCE

RECORDS: list[tuple[bytes | None, bytes | None, list[tuple[str, bytes | None]] | None, int]] = [
    (b"k", b"v", None, 1),
    (None, b"v", [], 1_700_000_000_123),
    (b"k", None, [("trace", b"\x00\xff")], 1_700_000_000_456),
    (None, None, [("trace", b"1"), ("trace", None), ("", b"")], 1_700_000_000_789),
    (b"", b"", None, 4_102_444_800_000),
    (b"k" * 5_000, b"v" * 50_000, None, 1_700_000_001_000),
]
WAIT_S = 60.0


@pytest.mark.parametrize("timestamps", ["CreateTime", "LogAppendTime"])
@pytest.mark.parametrize("headers", ["true", "false"])
def test_rows_are_those_of_sparks_source(
    broker: Broker, spark: SparkSession, tmp_path: Path, timestamps: str, headers: str
) -> None:
    topic = f"source-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    config = {"message.timestamp.type": timestamps}
    created = admin.create_topics([NewTopic(topic, num_partitions=2, config=config)])
    created[topic].result(WAIT_S)
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for n, (key, value, given, at_ms) in enumerate(RECORDS * 3):
        producer.produce(topic, value, key, partition=n % 2, headers=given, timestamp=at_ms)
    assert producer.flush(WAIT_S) == 0

    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "includeHeaders": headers,
    }
    sparks = spark.read.format("kafka").options(**options).load()
    named = {"rejoin.query": topic, "rejoin.table": topic}
    reading = spark.readStream.format(SOURCE).options(**options, **named).load()
    assert reading.schema == sparks.schema
    rows = str(tmp_path / "rows")
    writer = reading.writeStream.format("parquet").option("checkpointLocation", str(tmp_path / "c"))
    query = writer.trigger(availableNow=True).start(rows)
    try:
        assert query.awaitTermination(WAIT_S)
    finally:
        query.stop()
    order = ["partition", "offset"]
    found = spark.read.parquet(rows).orderBy(order).collect()
    assert len(found) == 3 * len(RECORDS)
    assert found == sparks.orderBy(order).collect()
