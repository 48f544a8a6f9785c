"""Which error of ours a chain of Java's exceptions becomes."""

import pytest

from spark_jobs.streaming.failure import JavaError, java_text, query_failure


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


class Thrown:
    """A Java exception, as far as its text needs it."""

    _target_id = "o1"

    def __init__(self, name: str, message: str | None, cause: "Thrown | None" = None) -> None:
        self.name, self.message, self.cause = name, message, cause

    def getClass(self) -> "Thrown":
        return self

    def getName(self) -> str:
        return self.name

    def getMessage(self) -> str | None:
        return self.message

    def getCause(self) -> "Thrown | None":
        return self.cause


@pytest.mark.parametrize(
    ("thrown", "told"),
    [
        (Thrown("java.lang.NullPointerException", None), "NullPointerException"),
        (
            Thrown("a.IOException", "no upload\n at x", Thrown("b.ConnectException", "refused")),
            "IOException: no upload (ConnectException: refused)",
        ),
        (
            Thrown("a.Outer", "b.Inner: no bucket", Thrown("b.Inner", "no bucket")),
            "Outer: b.Inner: no bucket",
        ),
    ],
)
def test_what_java_threw_is_told_in_a_line(thrown: Thrown, told: str) -> None:
    assert java_text(JavaError("call failed", thrown)) == told
