"""A checkpoint where Spark can neither read nor write is refused before anything starts."""

import pytest
from pyspark.sql import SparkSession

from spark_jobs.errors import ConfigError
from spark_jobs.streaming.object_store import check_store


@pytest.mark.parametrize(
    ("place", "hint"),
    [
        ("gs://bucket/a", "hadoop-gcp"),
        ("abfss://box@account.dfs.core.windows.net/a", "hadoop-azure"),
        ("s3://bucket/a", "s3a://"),
        ("s4://bucket/a", "the connector's jars"),
    ],
)
def test_unknown_store_is_named_with_a_hint(spark: SparkSession, place: str, hint: str) -> None:
    with pytest.raises(ConfigError, match="CHECKPOINT_STORE_UNKNOWN") as refused:
        check_store(spark, place)
    assert hint in str(refused.value.hint)


@pytest.mark.parametrize("place", ["/data/a", "file:///data/a", "hdfs://name/a"])
def test_known_store_is_not_refused(spark: SparkSession, place: str) -> None:
    check_store(spark, place)
