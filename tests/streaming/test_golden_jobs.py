"""Golden plans and examples run: a part of them today; the others in `make test-long`."""

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
PARTS = 12
TODAY = datetime.date.today().toordinal() % PARTS


@pytest.mark.parametrize(
    "part", [pytest.param(p, marks=[] if p == TODAY else [pytest.mark.long]) for p in range(PARTS)]
)
def test_jobs_run_to_their_end(
    part: int, broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    jobs = JOBS[part::PARTS]
    assert differences(spark, broker.bootstrap_servers, jobs, tmp_path, 250) == []
