"""The encoders of the rows that pass between tasks."""

from tests.harness.gateway import jvm


def test_they_are_those_that_spark_finds_by_reflection() -> None:
    assert jvm().org.apache.spark.sql.rejoin.run.EncodersRun.differing() == ""
