"""How long a job waits for executors."""

import pytest

from spark_jobs.driver.executors import GONE_AFTER_S, Executors
from spark_jobs.errors import MachineError


def test_the_first_executor_may_take_any_time() -> None:
    executors = Executors()
    executors.see(0, 0.0)
    executors.see(0, 100 * GONE_AFTER_S)


def test_a_job_that_has_lost_all_executors_ends() -> None:
    executors = Executors()
    executors.see(2, 1000.0)
    executors.see(0, 1000.0 + GONE_AFTER_S)
    executors.see(1, 1001.0 + GONE_AFTER_S)
    executors.see(0, 1000.0 + 2 * GONE_AFTER_S)
    with pytest.raises(MachineError, match="EXECUTORS_GONE"):
        executors.see(0, 1002.0 + 2 * GONE_AFTER_S)
