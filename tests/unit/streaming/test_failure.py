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


def test_a_failed_function_says_what_it_was_given() -> None:
    traceback = (
        "[UDF_USER_CODE_ERROR] An exception was thrown from the Python worker:\n"
        "Traceback (most recent call last):\n"
        '  File "shares.py", line 4, in share\n'
        "ValueError: a part is negative\n\n"
        "The above exception was the direct cause of the following exception:\n\n"
        "spark_jobs.functions.computing.FunctionFailure: shares.share(-5, 8) raised ValueError: a"
        " part is negative\n"
    )
    chain = [
        ("org.apache.spark.SparkException", "Job aborted due to stage failure"),
        ("org.apache.spark.api.python.PythonException", traceback),
    ]
    error = query_failure("q", chain)
    assert (error.code, error.exit_code) == ("FUNCTION_FAILED", 2)
    expected = "query q: shares.share(-5, 8) raised ValueError: a part is negative"
    assert error.message == expected


def test_an_epoch_that_was_over_before_its_clock_began_is_run_again() -> None:
    message = "operator interval-join: the clock did not tick in this epoch"
    error = query_failure("q", [("java.lang.IllegalStateException", message)])
    assert (error.code, error.retryable) == ("REAL_TIME_OVERLOAD", True)
