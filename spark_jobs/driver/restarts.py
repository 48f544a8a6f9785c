"""Counts the restarts of a failed query, and decides when the next attempt is due."""

import random
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
    _delay_s: float = 0.0  # the last one, without jitter

    def after_failure(self) -> float | None:
        """Seconds to wait before the next attempt; None if no attempt is left."""
        now, strategy = self._clock(), self._strategy
        if self.attempts and now - self._failed_at > strategy.reset_s:
            self.attempts = 0
        self._failed_at = now
        if self.attempts >= strategy.attempts:
            return None
        grown_s = self._delay_s * strategy.multiplier if self.attempts else strategy.delay_s
        self._delay_s = min(grown_s, strategy.longest_s)
        self.attempts += 1
        self.total += 1
        spread = strategy.jitter * self._delay_s
        return self._delay_s + random.SystemRandom().uniform(-spread, spread)

    def __str__(self) -> str:
        return f"restart {self.attempts} of {self._strategy.attempts}"
