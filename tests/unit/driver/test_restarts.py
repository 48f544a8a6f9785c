"""When the next attempt comes, and when none does."""

import pytest

from spark_jobs.driver.restarts import Restarts
from spark_jobs.options.settings import SETTINGS
from spark_jobs.settings import RestartStrategy


class Hands:
    """Of a clock that the test moves."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def read(**given: str) -> RestartStrategy:
    names = {k.replace("__", ".").replace("_", "-"): v for k, v in given.items()}
    return RestartStrategy.read({f"restart-strategy.{k}": v for k, v in names.items()})


def test_backoff_grows_to_its_longest_and_ends_with_the_attempts() -> None:
    strategy = RestartStrategy(attempts=5, delay_s=1, longest_s=5, multiplier=2, reset_s=600)
    restarts = Restarts(strategy, Hands())
    assert [restarts.after_failure() for _ in range(6)] == [1, 2, 4, 5, 5, None]


def test_an_outage_of_days_is_waited_for_as_long() -> None:
    strategy = RestartStrategy(attempts=5000, delay_s=1, longest_s=60, multiplier=1.5)
    restarts = Restarts(strategy, Hands())
    assert [restarts.after_failure() for _ in range(5001)][-2:] == [60, None]


def test_attempts_count_anew_after_a_while_without_failure() -> None:
    clock = Hands()
    restarts = Restarts(RestartStrategy(attempts=1, delay_s=1, longest_s=9, reset_s=600), clock)
    assert restarts.after_failure() == 1
    clock.now += 599
    assert restarts.after_failure() is None
    clock.now += 601
    assert restarts.after_failure() == 1
    assert restarts.total == 2


def test_jitter_stays_within_its_part() -> None:
    strategy = RestartStrategy(attempts=999, delay_s=10, longest_s=10, jitter=0.1)
    restarts = Restarts(strategy)
    delays = [restarts.after_failure() or 0 for _ in range(200)]
    assert 9 <= min(delays) < max(delays) <= 11


def test_settings_of_flink() -> None:
    assert read().attempts == 20
    assert (read().delay_s, read().longest_s, read().multiplier, read().jitter) == (1, 60, 1.5, 0.1)
    fixed = read(type="fixed-delay", fixed_delay__attempts="3", fixed_delay__delay="2 s")
    assert (fixed.attempts, fixed.delay_s, fixed.longest_s) == (3, 2, 2)
    assert read(type="off").attempts == 0


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("restart-strategy.type", "failure-rate"),
        ("restart-strategy.exponential-delay.jitter-factor", "1.5"),
        ("restart-strategy.exponential-delay.backoff-multiplier", "0.5"),
        ("restart-strategy.fixed-delay.delay", "soon"),
    ],
)
def test_wrong_values(name: str, wrong: str) -> None:
    assert not SETTINGS[name].accepts(wrong)
