"""Selected scenario files in Spark and through a broker: what memory cannot show."""

from collections.abc import Iterator
from pathlib import Path

import pytest
from pyspark import SparkContext
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.kernel.build import connector_jars, kernel_jar
from spark_jobs.settings import Overrides, job_settings, read_environment
from spark_jobs.streaming.query import open_gate
from spark_jobs.streaming.session import start_session, stop_session
from tests.harness.broker import BrokerBackend
from tests.harness.runner import Run, bind_scenario
from tests.harness.scenario import read_scenario
from tests.harness.spark import SparkBackend

SCENARIOS = Path(__file__).parents[1] / "scenarios"

# one per operator and sink mode, and those with restarts
IN_SPARK = [
    "left_join_last_match_lost",
    "left_join_residual",
    "left_join_duplicates",
    "upsert_left_join_tombstones",
    "upsert_primary_key_moves_join_key",
    "normalize_with_filter",
    "temporal_version_at_probe_time",
    "temporal_deleted_version",
    "temporal_watermark_of_partitions",
    "shop_orders_with_product_versions",
    "dead_letters",
    "append_filter_and_project",
]
# their results do not depend on how the batches are cut
THROUGH_BROKER = [
    "shop_orders_with_product_versions",
    "upsert_sink_key_moves_between_join_keys",
    "temporal_inner_drops_unmatched",
    "dead_letters",
]


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    folder = tmp_path_factory.mktemp("spark")
    given = {"rejoin.parallelism": "2", "rejoin.checkpoint": str(folder)}
    settings = job_settings(given, "scenarios", Overrides(), read_environment())
    session = start_session(settings, [kernel_jar(), *connector_jars()])
    open_gate(session)
    yield session
    stop_session(session, 15)
    SparkContext._gateway = SparkContext._jvm = None  # the next session gets a JVM of its own


@pytest.mark.parametrize("name", IN_SPARK)
def test_in_spark(name: str, spark: SparkSession, tmp_path: Path) -> None:
    bound = bind_scenario(read_scenario(SCENARIOS / f"{name}.scenario"))
    Run(bound, SparkBackend(bound, spark, tmp_path)).all()


@pytest.mark.parametrize("name", THROUGH_BROKER)
def test_through_broker(name: str, broker: Broker, tmp_path: Path) -> None:
    bound = bind_scenario(read_scenario(SCENARIOS / f"{name}.scenario"))
    backend = BrokerBackend(bound, broker.bootstrap_servers, tmp_path)
    try:
        Run(bound, backend).all()
    except BaseException:
        backend.kill()
        raise
