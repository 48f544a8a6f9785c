"""Golden plans and examples run, the plans in turn: three days of CI run each of them once.

`make test` has a twelfth of the plans, `make test-long` another quarter and the examples.
"""

import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from tests.harness.golden_jobs import differences

ROOT = Path(__file__).parents[2]
PLANS = [job for job in sorted((ROOT / "tests/plans").glob("*.sql")) if "refused_" not in job.name]
EXAMPLES = sorted((ROOT / "examples").glob("*.sql"))
PARTS = 12
LONG_PARTS = 3
FIRST_TODAY = datetime.date.today().toordinal() * (1 + LONG_PARTS) % PARTS


@pytest.mark.parametrize(
    "part",
    [
        FIRST_TODAY,
        *(pytest.param(FIRST_TODAY + n, marks=pytest.mark.long) for n in range(1, 1 + LONG_PARTS)),
    ],
)
def test_jobs_run_to_their_end(
    part: int, broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    jobs = PLANS[part::PARTS]
    assert differences(spark, broker.bootstrap_servers, jobs, tmp_path, 250) == []


@pytest.mark.long
def test_examples_run_to_their_end(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    assert differences(spark, broker.bootstrap_servers, EXAMPLES, tmp_path, 250) == []
