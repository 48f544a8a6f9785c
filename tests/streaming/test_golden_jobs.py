"""Golden plans and examples run: another few of them every day, all of them in `make test-long`."""

import datetime
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from tests.harness.golden_jobs import differences

ROOT = Path(__file__).parents[2]
JOBS = [
    *(job for job in sorted((ROOT / "tests/plans").glob("*.sql")) if "refused_" not in job.name),
    *sorted((ROOT / "examples").glob("*.sql")),
]
EVERY = 12


def test_a_few_of_the_jobs(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    today = datetime.date.today().toordinal()
    jobs = JOBS[today % EVERY :: EVERY]
    assert differences(spark, broker.bootstrap_servers, jobs, tmp_path, 300) == []


@pytest.mark.long
def test_all_jobs(broker: Broker, spark: SparkSession, tmp_path: Path) -> None:
    assert differences(spark, broker.bootstrap_servers, JOBS, tmp_path, 1_500) == []
