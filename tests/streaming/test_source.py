"""The rows of the Kafka source: those of Spark's own, which reads the same records."""

import uuid
from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic
from pyspark.sql import Row, SparkSession

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
    topic = created_topic(broker, {"message.timestamp.type": timestamps})
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
    found = both(spark, options, tmp_path)
    assert len(found) == 3 * len(RECORDS)


def test_records_between_gaps_are_those_of_sparks_source(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    """Transactions leave out offsets: those of their ends, and those of aborted records."""
    topic = created_topic(broker, {})
    servers = {"bootstrap.servers": broker.bootstrap_servers}
    producer = Producer({**servers, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    kept = 0
    for n, is_kept in enumerate((True, False, True, True, False, False, True, False)):
        producer.begin_transaction()
        for m in range(n + 1):
            producer.produce(topic, f"{n}-{m}", partition=m % 2)
        assert producer.flush(WAIT_S) == 0
        if is_kept:
            producer.commit_transaction(WAIT_S)
            kept += n + 1
        else:
            producer.abort_transaction(WAIT_S)
    options = {
        "subscribe": topic,
        "startingOffsets": "earliest",
        "kafka.bootstrap.servers": broker.bootstrap_servers,
        "kafka.isolation.level": "read_committed",
        "maxOffsetsPerTrigger": "5",
    }
    assert len(both(spark, options, tmp_path)) == kept


def created_topic(broker: Broker, config: dict[str, str]) -> str:
    topic = f"source-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    created = admin.create_topics([NewTopic(topic, num_partitions=2, config=config)])
    created[topic].result(WAIT_S)
    return topic


def both(spark: SparkSession, options: dict[str, str], folder: Path) -> list[Row]:
    """What the source reads, which is what Spark's reads."""
    sparks = spark.read.format("kafka").options(**options).load()
    named = {"rejoin.query": options["subscribe"], "rejoin.table": options["subscribe"]}
    reading = spark.readStream.format(SOURCE).options(**options, **named).load()
    assert reading.schema == sparks.schema
    rows = str(folder / "rows")
    writer = reading.writeStream.format("parquet").option("checkpointLocation", str(folder / "c"))
    query = writer.trigger(availableNow=True).start(rows)
    try:
        assert query.awaitTermination(WAIT_S)
    finally:
        query.stop()
    order = ["partition", "offset"]
    found = spark.read.parquet(rows).orderBy(order).collect()
    assert found == sparks.orderBy(order).collect()
    return found
