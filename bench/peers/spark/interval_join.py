"""The workload `interval-left` in PySpark. Usage: python interval_join.py JOB.json

It runs twice from one checkpoint: over the records, then over a row of the next day in each topic,
with which the watermark passes the rows that still wait.
"""

import json
import sys
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql.avro.functions import from_avro, to_avro
from pyspark.sql.functions import concat, expr, lit, struct

_DELAY = "5 seconds"
_WITHIN = """
    order_id = sent_order AND sent_at >= placed_at AND sent_at <= placed_at + INTERVAL 10 MINUTES
"""


def main() -> None:
    given = json.loads(Path(sys.argv[1]).read_text(encoding="utf-8"))
    builder = SparkSession.builder
    for name, value in given["spark"].items():
        builder = builder.config(name, value)
    spark = builder.getOrCreate()
    spark.sparkContext.setLogLevel("WARN")
    for with_ends in (False, True):
        results = joined(spark, given, with_ends)
        writer = results.writeStream.format("kafka").options(**given["sink"])
        writer = writer.option("checkpointLocation", given["checkpoint"])
        query = writer.trigger(availableNow=True).start()
        query.awaitTermination()
    spark.stop()


def joined(spark: SparkSession, given: dict[str, Any], with_ends: bool) -> DataFrame:
    purchases = table(spark, given, "purchases", with_ends).withWatermark("placed_at", _DELAY)
    parcels = table(spark, given, "parcels", with_ends).withWatermark("sent_at", _DELAY)
    parcels = parcels.withColumnRenamed("order_id", "sent_order")
    rows = purchases.join(parcels, expr(_WITHIN), "leftOuter")
    value = to_avro(struct("order_id", "amount", "placed_at", "carrier"), given["sink_schema"])
    return rows.select(concat(lit(bytes.fromhex(given["frame"])), value).alias("value"))


def table(spark: SparkSession, given: dict[str, Any], name: str, with_end: bool) -> DataFrame:
    """The rows of a topic, and of the topic with the row of the next day."""
    topics = [name, given["ends"][name]] if with_end else [name]
    records = (
        spark.readStream.format("kafka")
        .options(**given["source"])
        .option("subscribe", ",".join(topics))
        .option("startingOffsets", "earliest")
        .load()
    )
    body = expr("substring(value, 6, length(value) - 5)")  # behind the registry's frame
    row = from_avro(body, given["schemas"][name]).alias("row")
    return records.select(row).select("row.*")


if __name__ == "__main__":
    main()
