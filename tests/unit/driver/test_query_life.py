"""The life of a query, and the error a person gets out of Java's, without Spark."""

from types import SimpleNamespace
from typing import Any, cast

import pytest

from spark_jobs.driver import query_life as module
from spark_jobs.driver.query_life import QueryLife
from spark_jobs.driver.restarts import Restarts
from spark_jobs.errors import FormatError, KafkaError, RejoinError, StateError
from spark_jobs.settings import RestartStrategy


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


def life(left: list[int] | None, ended: bool, started: list[bool]) -> QueryLife:
    def start(ending: bool) -> Any:
        started.append(ending)
        return FakeQuery()

    remaining = None if left is None else lambda: left.pop(0)
    return QueryLife("q", start, remaining, lambda: ended, never())


def never() -> Restarts:
    return Restarts(RestartStrategy(attempts=0))


def run(found: QueryLife, polls: int = 20) -> None:
    for _ in range(polls):
        found.poll()


def test_bounded_query_that_found_nothing_to_read_is_ended_by_another_run() -> None:
    started: list[bool] = []
    found = life([0], False, started)
    run(found)
    assert started == [False, True]
    assert found.phase == "finished"


def test_bounded_query_ends_in_the_run_that_reads_its_last_record() -> None:
    started: list[bool] = []
    found = life([0], True, started)
    run(found)
    assert started == [False]
    assert found.phase == "finished"


def test_a_query_that_is_stopped_to_be_renewed_starts_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    stopped: list[list[QueryLife]] = []
    opened: list[bool] = []
    kernel = SimpleNamespace(open_gate=lambda: opened.append(True))
    monkeypatch.setattr(module, "stop_queries", lambda _, lives, __: stopped.append(lives))
    monkeypatch.setattr(module, "Kernel", SimpleNamespace(of=lambda _: kernel))
    started: list[bool] = []
    found = life(None, False, started)
    found.poll()
    found.renew(cast(Any, None))
    run(found, 2)
    assert (started, stopped, opened) == ([False, False], [[found]], [True])
    with pytest.raises(RejoinError, match="its inputs do not end"):
        run(found, 2)


class Observer:
    """In place of the kernel: a test says which epoch ended last, and what the query does."""

    def __init__(self) -> None:
        self.runs_records = True
        self.ended: int | None = None

    def observed(self, _query: object, known: str) -> dict[str, Any]:
        seen: dict[str, Any] = {"runsRecords": self.runs_records}
        if self.ended is not None and known != f"end of {self.ended}":
            seen["progress"] = {"batchId": self.ended, "timestamp": f"end of {self.ended}"}
        return seen


def observed_life() -> QueryLife:
    found = QueryLife("q", lambda _: cast(Any, None), None, lambda: True, never())
    found.query = cast(Any, object())
    return found


def test_how_long_an_epoch_has_run(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = SimpleNamespace(monotonic=lambda: clock.now, now=100.0)
    monkeypatch.setattr(module, "time", clock)
    kernel, found = Observer(), observed_life()

    def running_ms(after_s: float) -> int:
        clock.now += after_s
        found.observe(cast(Any, kernel))
        return found.running_ms

    assert (running_ms(1), running_ms(40), running_ms(1)) == (0, 40_000, 41_000)
    kernel.ended = 0
    assert (running_ms(1), running_ms(2)) == (0, 2_000)
    kernel.runs_records = False
    assert (running_ms(1), running_ms(1)) == (0, 0)
    kernel.runs_records = True
    assert (running_ms(1), running_ms(1)) == (0, 1_000)
    found.query = None  # it has failed, and waits for its restart
    assert running_ms(1) == 0


def test_a_report_of_an_epoch_is_returned_once() -> None:
    kernel, found = Observer(), observed_life()
    seen: list[object] = []
    for ended in (None, 0, 0, 1):
        kernel.ended = ended
        report = found.observe(cast(Any, kernel))
        seen.append(report and report["batchId"])
    assert seen == [None, 0, None, 1]
    found.query = None
    assert found.observe(cast(Any, kernel)) is None


def test_end_that_lies_ahead_is_waited_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "_RETRY_DRAIN_S", 0.0)
    started: list[bool] = []
    found = life([5, 2, 0], False, started)
    run(found, 40)
    assert started == [False, False, False, True]
    assert found.phase == "finished"


def test_unbounded_query_must_not_end() -> None:
    with pytest.raises(RejoinError, match="QUERY_ENDED"):
        run(life(None, False, []))


def failed(*chain: tuple[str, str]) -> RejoinError:
    query: Any = FakeQuery(OUTER, *chain)
    found = QueryLife("q", lambda _: query, None, lambda: True, never())
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


def test_errors_of_the_registry_keep_their_code_and_have_a_hint() -> None:
    registry = "org.apache.spark.sql.rejoin.RegistryException"
    for code in ("REGISTRY_UNREACHABLE", "REGISTRY_REFUSED", "REGISTRY_FAILED"):
        error = failed((registry, f"[{code}] schema id 7: no"))
        assert isinstance(error, KafkaError)
        assert str(error) == f"{code} query q: schema id 7: no"
        assert error.hint


def test_kafka_errors_are_external() -> None:
    kafka = "org.apache.kafka.common.errors"
    assert failed((f"{kafka}.ProducerFencedException", "old epoch")).code == "SINK_FENCED"
    error = failed((f"{kafka}.TimeoutException", "60000 ms"))
    assert isinstance(error, KafkaError)
    assert error.retryable


def test_other_errors_name_the_innermost_cause_in_a_line() -> None:
    error = failed(("java.lang.ArithmeticException", "/ by zero\n\tat somewhere"))
    assert str(error) == "QUERY_FAILED query q: ArithmeticException: / by zero"


KAFKA_TIMEOUT = ("org.apache.kafka.common.errors.TimeoutException", "60000 ms")
LEDGER_GAP = ("org.apache.spark.sql.rejoin.LedgerException", "[SINK_LEDGER_GAP] epoch 7")


def test_passing_failure_starts_the_query_again() -> None:
    runs: list[Any] = [
        FakeQuery(OUTER, KAFKA_TIMEOUT),
        FakeQuery(OUTER, KAFKA_TIMEOUT),
        FakeQuery(),
    ]
    found = QueryLife(
        "q", lambda _: runs.pop(0), lambda: 0, lambda: True, Restarts(RestartStrategy(attempts=2))
    )
    run(found)
    assert (found.phase, found.restarts.total) == ("finished", 2)
    assert found.failure is not None
    assert found.failure.code == "KAFKA_FAILED"


def test_start_that_fails_counts_too() -> None:
    outcomes: list[Any] = [KafkaError("KAFKA_UNREACHABLE", "no"), FakeQuery()]

    def start(_: bool) -> Any:
        outcome = outcomes.pop(0)
        if isinstance(outcome, RejoinError):
            raise outcome
        return outcome

    found = QueryLife("q", start, lambda: 0, lambda: True, Restarts(RestartStrategy(attempts=1)))
    run(found)
    assert (found.phase, found.restarts.total) == ("finished", 1)


def test_restarts_have_a_limit() -> None:
    found = QueryLife(
        "q",
        lambda _: FakeQuery(OUTER, KAFKA_TIMEOUT),  # type: ignore[arg-type,return-value]
        None,
        lambda: True,
        Restarts(RestartStrategy(attempts=3)),
    )
    with pytest.raises(KafkaError, match="KAFKA_FAILED"):
        run(found)
    assert found.restarts.total == 3


def test_what_needs_a_person_stops_at_once() -> None:
    runs: list[Any] = [FakeQuery(OUTER, LEDGER_GAP), FakeQuery()]
    found = QueryLife(
        "q", lambda _: runs.pop(0), lambda: 0, lambda: True, Restarts(RestartStrategy(attempts=9))
    )
    with pytest.raises(StateError, match="SINK_LEDGER_GAP"):
        run(found)
    assert len(runs) == 1


def test_failure_that_the_next_start_makes_good() -> None:
    lost = ("org.apache.spark.sql.rejoin.DataLossException", "[TOPIC_RECREATED] table t")
    runs: list[Any] = [FakeQuery(OUTER, lost), FakeQuery()]

    def recovers(error: RejoinError) -> bool:
        return error.code == "TOPIC_RECREATED"

    restarts = Restarts(RestartStrategy(attempts=1))
    found = QueryLife(
        "q",
        lambda _: runs.pop(0),
        lambda: 0,
        lambda: True,
        restarts,
        lambda e: e.code == "TOPIC_RECREATED",
    )
    run(found)
    assert found.phase == "finished"


KAFKA = "org.apache.kafka.common.errors"
SPARK = "org.apache.spark.SparkException"
ABORTED = "Job aborted due to stage failure:"
EXECUTOR_LOST = """\
Task 0 in stage 3.0 failed 4 times, most recent failure: Lost task 0.3 in stage 3.0 (TID 9) \
(127.0.0.1 executor 7): ExecutorLostFailure (executor 7 exited caused by one of the running tasks) \
Reason: Command exited with code 137
Driver stacktrace:"""
FILES_LOST = """\
ShuffleMapStage 8 (start at <unknown>:0) has failed the maximum allowable number of times: 4. Most \
recent failure reason:
org.apache.spark.shuffle.FetchFailedException"""


@pytest.mark.parametrize(
    ("kind", "message", "code", "retryable"),
    [
        ("java.io.IOException", "No space left on device", "DISK_FULL", True),
        ("org.rocksdb.RocksDBException", "file is too short", "CHECKPOINT_DAMAGED", False),
        (f"{KAFKA}.TopicAuthorizationException", "x", "KAFKA_ACL_MISSING", False),
        (f"{KAFKA}.UnknownTopicOrPartitionException", "x", "TOPIC_DELETED", False),
        (f"{KAFKA}.OffsetOutOfRangeException", "x", "SOURCE_DATA_LOST", False),
        (f"{KAFKA}.InvalidProducerEpochException", "x", "SINK_FENCED", True),
        ("java.util.concurrent.TimeoutException", "Cannot fetch record", "KAFKA_FAILED", True),
        (SPARK, f"{ABORTED} {EXECUTOR_LOST}", "EXECUTORS_LOST", True),
        (SPARK, f"{ABORTED} {FILES_LOST}", "EXECUTORS_LOST", True),
        (SPARK, f"{ABORTED} Task 0 in stage 3.0 failed 4 times", "QUERY_FAILED", False),
    ],
)
def test_what_passes_and_what_needs_a_person(
    kind: str, message: str, code: str, retryable: bool
) -> None:
    error = failed((kind, message))
    assert (error.code, error.retryable) == (code, retryable)
