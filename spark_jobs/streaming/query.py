"""The life of a query: start, watch, drain where its inputs end, stop in order and in time."""

import contextlib
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.errors import FormatError, KafkaError, RejoinError, StateError
from spark_jobs.streaming.session import kernel

EPOCH_WAIT_S = 20.0  # how long an orderly stop waits for the running epoch
_POLL_S = 0.05
_RETRY_DRAIN_S = 1.0
_MOST_CAUSES = 20

Phase = Literal["running", "ending", "finished"]


@dataclass
class QueryLife:
    """One query between its start and its end.

    `start(ending)` starts it anew on its checkpoint. `remaining` counts the records before the
    declared ends that no committed epoch has read; None for a query whose inputs do not end.
    `flushes`: after the last record it needs one more epoch, in which the end mark releases what
    waits for time to pass.
    """

    name: str
    start: Callable[[bool], StreamingQuery]
    remaining: Callable[[], int] | None
    flushes: bool
    phase: Phase = "running"
    query: StreamingQuery | None = None
    _judged: bool = field(default=False, init=False)  # what follows the last run is decided
    _retry_at: float = field(default=0.0, init=False)

    def poll(self) -> None:
        """Take the next step of its life, if it is time for one; raise what ended it."""
        if self.phase == "finished" or self.is_active or time.monotonic() < self._retry_at:
            return
        if self.query is not None and not self._judged:
            self.phase = self._after_run(self.query)
            self._judged = True
        if self.phase != "finished" and time.monotonic() >= self._retry_at:
            self.query = self.start(self.phase == "ending")
            self._judged = False

    def _after_run(self, query: StreamingQuery) -> Phase:
        if causes := _causes(query):
            raise query_failure(self.name, causes)
        if self.remaining is None:
            raise RejoinError("QUERY_ENDED", f"query {self.name} ended although its inputs go on")
        if self.phase == "ending":
            return "finished"
        if self.remaining() > 0:  # the declared end lies beyond what there is yet
            self._retry_at = time.monotonic() + _RETRY_DRAIN_S
            return "running"
        return "ending" if self.flushes else "finished"

    @property
    def is_between_epochs(self) -> bool:
        return self.query is None or not self.query.status["isTriggerActive"]

    @property
    def is_active(self) -> bool:
        return self.query is not None and self.query.isActive


def open_gate(spark: SparkSession) -> None:
    """Let sources start epochs."""
    kernel(spark).Gate.open()


def stop_queries(spark: SparkSession, lives: list[QueryLife], wait_s: float = EPOCH_WAIT_S) -> None:
    """Let running epochs finish and no other begin; then stop the queries.

    An epoch that takes longer is cut off: its transaction is aborted, a restart repeats it.
    """
    kernel(spark).Gate.close()
    deadline = time.monotonic() + wait_s
    for life in lives:
        while life.is_active and not life.is_between_epochs and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    for life in lives:
        if life.query is not None:
            with contextlib.suppress(Exception):  # the session's end, which is bounded, ends it too
                life.query.stop()


def query_failure(name: str, causes: Sequence[tuple[str, str]]) -> RejoinError:
    """The error a person needs, out of a chain of Java exceptions: class and message of each."""
    for kind, message in reversed(causes):
        if (error := _known_failure(kind, f"query {name}: {message}", message)) is not None:
            return error
    kind, message = causes[-1]
    told = message.split("\n", 1)[0]  # below come stack traces and plans
    return RejoinError("QUERY_FAILED", f"query {name}: {kind.rpartition('.')[2]}: {told}")


def _known_failure(kind: str, told: str, message: str) -> RejoinError | None:
    short = kind.rpartition(".")[2]
    match short:
        case "LedgerException":
            code, _, rest = message.removeprefix("[").partition("] ")
            return StateError(code, told.replace(message, rest))
        case "RejectedRecordException":
            return FormatError(
                "RECORD_REJECTED",
                told,
                hint="'rejoin.dead-letter.topic' keeps such records, 'rejoin.on-error' = 'skip' "
                "drops them",
            )
        case "RegistryException":
            return KafkaError("REGISTRY_FAILED", told)
        case "ProducerFencedException" | "InvalidProducerEpochException":
            return StateError(
                "SINK_FENCED",
                f"{told}: another writer has taken over the transactional ids",
                hint="run one driver per job, or give each a 'sink.transactional-id-prefix'",
            )
        case _ if kind.startswith("org.apache.kafka."):
            return KafkaError("KAFKA_FAILED", f"{told} ({short})")
    return None


def _causes(query: StreamingQuery) -> list[tuple[str, str]]:
    """What ended the query, outermost first; PySpark's own exception has lost the chain."""
    handle: Any = query
    failure = handle._jsq.exception()
    found: list[tuple[str, str]] = []
    cause = failure.get() if failure.isDefined() else None
    while cause is not None and len(found) < _MOST_CAUSES:
        found.append((str(cause.getClass().getName()), str(cause.getMessage())))
        cause = cause.getCause()
    return found
