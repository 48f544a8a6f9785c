"""Which error of ours a chain of Java's exceptions becomes."""

from spark_jobs.streaming.failure import query_failure


def test_a_row_that_the_sink_does_not_admit_is_the_users_to_mend() -> None:
    chain = [
        ("org.apache.spark.SparkException", "Job aborted due to stage failure"),
        (
            "org.apache.spark.sql.rejoin.NullValueException",
            "sink s: a row has NULL in the NOT NULL column id",
        ),
    ]
    error = query_failure("q", chain)
    assert (error.code, error.exit_code) == ("NULL_IN_NOT_NULL_COLUMN", 2)
    assert "column id" in str(error)
    assert "COALESCE" in str(error.hint)
