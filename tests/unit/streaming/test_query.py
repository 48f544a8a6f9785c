"""The life of a query, and the error a person gets out of Java's, without Spark."""

from typing import Any

import pytest

from spark_jobs.errors import KafkaError, RejoinError, StateError
from spark_jobs.streaming import query as module
from spark_jobs.streaming.query import QueryLife, query_failure


class FakeQuery:
    """Active for one poll."""

    def __init__(self, failure: Exception | None = None) -> None:
        self.polls = 0
        self._failure = failure

    @property
    def isActive(self) -> bool:
        self.polls += 1
        return self.polls == 1

    def exception(self) -> Exception | None:
        return self._failure


class Throwable:
    """A Java exception as py4j shows it."""

    def __init__(self, name: str, message: str, cause: "Throwable | None" = None) -> None:
        self._name, self._message, self._cause = name, message, cause

    def getClass(self) -> "Throwable":
        return self

    def getName(self) -> str:
        return self._name

    def getMessage(self) -> str:
        return self._message

    def getCause(self) -> "Throwable | None":
        return self._cause


class Failure(Exception):
    def __init__(self, origin: Throwable) -> None:
        self._origin = origin


def life(left: list[int] | None, flushes: bool, started: list[bool], **fields: Any) -> QueryLife:
    def start(ending: bool) -> Any:
        started.append(ending)
        return FakeQuery(**fields)

    remaining = None if left is None else lambda: left.pop(0)
    return QueryLife("q", start, remaining, flushes)


def run(found: QueryLife, polls: int = 20) -> None:
    for _ in range(polls):
        found.poll()


def test_bounded_query_drains_and_then_flushes() -> None:
    started: list[bool] = []
    found = life([0], True, started)
    run(found)
    assert started == [False, True]
    assert found.phase == "finished"


def test_bounded_query_without_anything_to_flush() -> None:
    started: list[bool] = []
    found = life([0], False, started)
    run(found)
    assert started == [False]
    assert found.phase == "finished"


def test_end_that_lies_ahead_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_DRAIN_S", 0.0)
    started: list[bool] = []
    found = life([5, 2, 0], True, started)
    run(found, 40)
    assert started == [False, False, False, True]
    assert found.phase == "finished"


def test_unbounded_query_must_not_end() -> None:
    with pytest.raises(RejoinError, match="QUERY_ENDED"):
        run(life(None, False, []))


def test_kernel_errors_keep_their_code() -> None:
    ledger = Throwable(
        "org.apache.spark.sql.rejoin.LedgerException", "[SINK_LEDGER_GAP] epoch 7 is missing"
    )
    error = query_failure("q", Failure(Throwable("java.lang.RuntimeException", "task", ledger)))
    assert isinstance(error, StateError)
    assert str(error) == "SINK_LEDGER_GAP query q: epoch 7 is missing"


def test_kafka_errors_are_external() -> None:
    fenced = Throwable("org.apache.kafka.common.errors.ProducerFencedException", "old epoch")
    assert query_failure("q", Failure(fenced)).code == "SINK_FENCED"
    rejected = Throwable("org.apache.spark.sql.rejoin.RejectedRecordException", "orders[1]@7")
    assert query_failure("q", Failure(rejected)).code == "RECORD_REJECTED"
    timeout = Throwable("org.apache.kafka.common.errors.TimeoutException", "60000 ms")
    error = query_failure("q", Failure(Throwable("java.lang.RuntimeException", "x", timeout)))
    assert isinstance(error, KafkaError)
    assert error.retryable


def test_other_errors_name_the_innermost_cause() -> None:
    cause = Throwable("java.lang.ArithmeticException", "/ by zero")
    error = query_failure("q", Failure(Throwable("java.lang.RuntimeException", "x", cause)))
    assert str(error) == "QUERY_FAILED query q: ArithmeticException: / by zero"
