"""More random queries beside DuckDB than `make test` has."""

import time

from tests.differential.generate import HISTORIES
from tests.differential.run import run_cases
from tests.harness.gateway import kernel

SEED = 12
SECONDS = 60


def test_random_cases_agree() -> None:
    kernel()  # starting the JVM is not part of the time
    numbers = range(0, 4_000, HISTORIES // 2)
    tally = run_cases(SEED, numbers, lambda _: None, until=time.monotonic() + SECONDS)
    assert tally.failures == []
    assert tally.agreed > 40
