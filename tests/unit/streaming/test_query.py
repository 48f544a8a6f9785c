"""The life of a query, and the error a person gets out of Java's, without Spark."""

from typing import Any

import pytest

from spark_jobs.errors import FormatError, KafkaError, RejoinError, StateError
from spark_jobs.streaming import query as module
from spark_jobs.streaming.query import QueryLife


class FakeQuery:
    """Active for one poll. `failure`: the chain of exceptions that ended it, outermost first."""

    def __init__(self, *failure: tuple[str, str]) -> None:
        self.polls = 0
        self._failure = failure
        self._jsq = self

    @property
    def isActive(self) -> bool:
        self.polls += 1
        return self.polls == 1

    def exception(self) -> "Throwable":
        return Throwable(self._failure)


class Throwable:
    """A Java exception, and the Option that holds it, as py4j shows them."""

    def __init__(self, chain: tuple[tuple[str, str], ...]) -> None:
        self._chain = chain

    def isDefined(self) -> bool:
        return bool(self._chain)

    def get(self) -> "Throwable":
        return self

    def getClass(self) -> "Throwable":
        return self

    def getName(self) -> str:
        return self._chain[0][0]

    def getMessage(self) -> str:
        return self._chain[0][1]

    def getCause(self) -> "Throwable | None":
        return Throwable(self._chain[1:]) if len(self._chain) > 1 else None


OUTER = ("org.apache.spark.SparkException", "Job aborted due to stage failure: ...")


def life(left: list[int] | None, flushes: bool, started: list[bool]) -> QueryLife:
    def start(ending: bool) -> Any:
        started.append(ending)
        return FakeQuery()

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


def failed(*chain: tuple[str, str]) -> RejoinError:
    query: Any = FakeQuery(OUTER, *chain)
    found = QueryLife("q", lambda _: query, None, False)
    with pytest.raises(RejoinError) as raised:
        run(found)
    return raised.value


def test_kernel_errors_keep_their_code() -> None:
    ledger = "org.apache.spark.sql.rejoin.LedgerException"
    error = failed((ledger, "[SINK_LEDGER_GAP] epoch 7 is missing"))
    assert isinstance(error, StateError)
    assert str(error) == "SINK_LEDGER_GAP query q: epoch 7 is missing"
    rejected = failed(("org.apache.spark.sql.rejoin.RejectedRecordException", "orders[1]@7: bad"))
    assert isinstance(rejected, FormatError)
    assert str(rejected) == "RECORD_REJECTED query q: orders[1]@7: bad"


def test_kafka_errors_are_external() -> None:
    kafka = "org.apache.kafka.common.errors"
    assert failed((f"{kafka}.ProducerFencedException", "old epoch")).code == "SINK_FENCED"
    error = failed((f"{kafka}.TimeoutException", "60000 ms"))
    assert isinstance(error, KafkaError)
    assert error.retryable


def test_other_errors_name_the_innermost_cause_in_a_line() -> None:
    error = failed(("java.lang.ArithmeticException", "/ by zero\n\tat somewhere"))
    assert str(error) == "QUERY_FAILED query q: ArithmeticException: / by zero"
