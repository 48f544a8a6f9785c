"""The life of a query: start, restart, drain if its inputs end, graceful stop."""

import contextlib
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any, Literal

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from spark_jobs.driver.restarts import Restarts
from spark_jobs.errors import RejoinError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.streaming.failure import causes_of, query_failure

EPOCH_WAIT_S = 20.0  # how long a graceful stop waits for the running epoch
_POLL_S = 0.05
_RETRY_DRAIN_S = 1.0

Phase = Literal["running", "ending", "finished"]


@dataclass
class QueryLife:
    """One query between its start and its end.

    `start(ending)` starts it on its checkpoint. `remaining` counts the records before the declared
    ends that no committed epoch has read; None for a query with unbounded inputs. `ended`: whether
    its last epoch had the end mark, which releases rows that wait for time to pass, or it needs
    none. The clock gives it as soon as all is read; a run that found nothing to read is followed by
    one that begins with it (`ending`). `recovers`: whether `start` repairs the cause of a failure
    that is not retryable otherwise. `live`: it runs in real-time mode, where an epoch is as long as
    it is meant to be; `held` says which queries in that mode have ended theirs and wait at the
    closed gate.
    """

    name: str
    start: Callable[[bool], StreamingQuery]
    remaining: Callable[[], int] | None
    ended: Callable[[], bool]
    restarts: Restarts
    recovers: Callable[[RejoinError], bool] = lambda _: False
    failure: RejoinError | None = None  # the last one
    phase: Phase = "running"
    query: StreamingQuery | None = None
    live: bool = False
    held: Callable[[], Sequence[str]] = tuple
    running_ms: int = 0  # how long its epoch has run when the query was last observed
    _epoch: tuple[object, float] | None = field(
        default=None, init=False
    )  # the one that runs, since
    _reported: Mapping[str, Any] = field(default_factory=dict, init=False)  # the newest report
    _renewed: bool = field(default=False, init=False)  # it was stopped to be started anew
    _judged: bool = field(default=False, init=False)  # `phase` takes the last run into account
    _retry_at: float = field(default=0.0, init=False)

    def poll(self) -> None:
        """Start the query if that is due; raises an error that a restart cannot repair."""
        if self.phase == "finished" or self.is_active or time.monotonic() < self._retry_at:
            return
        try:
            self._step()
        except RejoinError as error:
            if not (error.retryable or self.recovers(error)):
                raise
            delay_s = self.restarts.after_failure()
            if delay_s is None:
                raise
            self.failure = error
            self.query = None
            self._retry_at = time.monotonic() + delay_s

    def renew(self, spark: SparkSession) -> None:
        """Stop the query after its running epoch; the next poll starts it again."""
        self._renewed = True
        try:
            stop_queries(spark, [self], EPOCH_WAIT_S)
        finally:
            Kernel.of(spark).open_gate()

    def _step(self) -> None:
        if self.query is not None and not self._judged:
            self.phase = self._after_run(self.query)
            self._judged = True
        if self.phase != "finished" and time.monotonic() >= self._retry_at:
            self.query = self.start(self.phase == "ending")
            self._judged = self._renewed = False

    def _after_run(self, query: StreamingQuery) -> Phase:
        if causes := causes_of(query):
            raise query_failure(self.name, causes)
        if self._renewed:
            return self.phase
        if self.remaining is None:
            raise RejoinError("QUERY_ENDED", f"query {self.name} ended, but its inputs do not end")
        if self.phase == "ending":
            return "finished"
        if self.remaining() > 0:  # the declared ends are ahead of the topics' ends
            self._retry_at = time.monotonic() + _RETRY_DRAIN_S
            return "running"
        return "finished" if self.ended() else "ending"

    @property
    def is_active(self) -> bool:
        return self.query is not None and self.query.isActive

    @property
    def runs_epoch(self) -> bool:
        query = self.query
        if query is None or not query.isActive or not query.status["isTriggerActive"]:
            return False
        return not (self.live and self.name in self.held())

    def observe(self, kernel: Kernel) -> Mapping[str, Any] | None:
        """Note how long the running epoch has run; returns Spark's report of an epoch, if new."""
        if self.query is None:
            self._epoch, self.running_ms = None, 0
            return None
        seen = kernel.observed(self.query, self._reported.get("timestamp", ""))
        progress, now = seen.get("progress"), time.monotonic()
        if progress is not None:
            self._reported = progress
        last = self._reported.get("batchId")
        if self.live or not seen["runsRecords"]:
            self._epoch = None
        elif self._epoch is None or self._epoch[0] != last:
            self._epoch = (last, now)
        self.running_ms = 0 if self._epoch is None else int((now - self._epoch[1]) * 1000)
        return progress


def stop_queries(spark: SparkSession, lives: Sequence[QueryLife], wait_s: float) -> None:
    """Start no more epochs, wait for the running ones, then stop the queries.

    An epoch that takes longer than `wait_s` is aborted; the next start of the job repeats it.
    """
    Kernel.of(spark).close_gate()
    deadline = time.monotonic() + wait_s
    for life in lives:
        while life.runs_epoch and time.monotonic() < deadline:
            time.sleep(_POLL_S)
    running = [life.query for life in lives if life.query is not None]
    # in parallel, because each may take as long as spark.sql.streaming.stopTimeout
    with ThreadPoolExecutor(max(1, len(running))) as pool:
        list(pool.map(_stop, running))


def _stop(query: StreamingQuery) -> None:
    with contextlib.suppress(Exception):  # the end of the session ends it too, within a time limit
        query.stop()
