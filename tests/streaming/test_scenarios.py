"""Selected scenario files in Spark and through a broker: what memory cannot show."""

from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.scenario.file import read_scenario
from spark_jobs.scenario.runner import ScenarioRun, bind_scenario
from tests.harness.broker import BrokerBackend
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
    "latest_rates_are_loaded_first",
    "snapshot_loads_then_joins",
    "latest_sum_over_orders_that_change",
    "latest_padding_is_taken_back",
    "latest_changes_through_a_join_and_a_sum",
    "temporal_late_changes_of_orders",
    "interval_left_pads_on_expiry",
    "interval_early_padding",
    "aggregate_over_join_with_retractions",
    "aggregate_of_no_rows_before_any_record",
    "constant_rows_hold_no_watermark",
    "deduplicate_last_row_by_event_time",
    "materialize_sink_key_of_several_rows",
    "union_all_of_a_join_and_a_table",
    "debezium_heals_in_a_join",
    "debezium_truncate_retracts",
    "csv_keys_and_values",
    "python_functions",
]
# their results do not depend on how the batches are cut
THROUGH_BROKER = [
    "shop_orders_with_product_versions",
    "upsert_sink_key_moves_between_join_keys",
    "latest_rates_are_loaded_first",
    "binlog_changes_of_two_tables",
    "interval_early_padding_upserts",
]


@pytest.mark.parametrize("name", IN_SPARK)
def test_in_spark(name: str, spark: SparkSession, tmp_path: Path) -> None:
    bound = bind_scenario(read_scenario(SCENARIOS / f"{name}.scenario"))
    ScenarioRun(bound, SparkBackend(bound, spark, tmp_path)).all()


@pytest.mark.parametrize("name", THROUGH_BROKER)
def test_through_broker(name: str, broker: Broker, tmp_path: Path) -> None:
    bound = bind_scenario(read_scenario(SCENARIOS / f"{name}.scenario"))
    backend = BrokerBackend(bound, broker.bootstrap_servers, tmp_path)
    try:
        ScenarioRun(bound, backend).all()
    except BaseException:
        backend.kill()
        raise
