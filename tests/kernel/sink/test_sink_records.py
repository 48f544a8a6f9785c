"""Records on their way to the sink, in the rows that pass between tasks."""

from tests.harness.gateway import jvm


def test_they_are_read_from_rows_that_spark_has_made() -> None:
    assert jvm().org.apache.spark.sql.rejoin.sink.SinkRecordRun.differing() == ""
