"""Counts the restarts of a failed query, and decides when the next attempt is due."""

import random
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass

from spark_jobs.settings import RestartStrategy


@dataclass(slots=True)
class Restarts:
    """The restarts of one query. `_clock` is monotonic, in seconds."""

    _strategy: RestartStrategy
    _clock: Callable[[], float] = time.monotonic
    total: int = 0
    attempts: int = 0  # since the last time without failures
    _failed_at: float = 0.0

    def after_failure(self) -> float | None:
        """Seconds to wait before the next attempt; None if no attempt is left."""
        now, strategy = self._clock(), self._strategy
        if self.attempts and now - self._failed_at > strategy.reset_s:
            self.attempts = 0
        self._failed_at = now
        if self.attempts >= strategy.attempts:
            return None
        delay_s = min(strategy.delay_s * self._growth(), strategy.longest_s)
        self.attempts += 1
        self.total += 1
        spread = strategy.jitter * delay_s
        return delay_s + random.SystemRandom().uniform(-spread, spread)

    def _growth(self) -> float:
        try:
            return self._strategy.multiplier**self.attempts
        except OverflowError:  # after hundreds of attempts
            return sys.float_info.max

    def __str__(self) -> str:
        return f"restart {self.attempts} of {self._strategy.attempts}"
