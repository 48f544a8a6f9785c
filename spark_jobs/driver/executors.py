"""Notices when a Spark cluster has no executors left for a job."""

from dataclasses import dataclass

from spark_jobs.errors import MachineError

GONE_AFTER_S = 180.0


@dataclass(slots=True)
class Executors:
    """When the job last had an executor, on a monotonic clock in seconds; None before the first.

    A job waits for its first executor as long as it takes: the cluster may be busy. One that has
    lost them all may wait for ever, as a master that was restarted without its recovery files does
    not know the job any more, and Spark does not tell it again.
    """

    _last_seen: float | None = None

    def see(self, count: int, now: float) -> None:
        """Note how many there are; raises MachineError if there have been none for too long."""
        if count > 0:
            self._last_seen = now
        elif self._last_seen is not None and now - self._last_seen > GONE_AFTER_S:
            raise MachineError(
                "EXECUTORS_GONE",
                f"the Spark cluster has had no executor for this job for {GONE_AFTER_S:.0f} s",
                hint="start the job again: it continues and asks for executors anew; the logs of "
                "master and workers say why they ended",
            )
