"""A Spark session for the tests that ask Spark what a rendered expression gives."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from spark_jobs.kernel.jvm import close
from tests.harness.spark import forget_jvm


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    """Small, and with the settings under which the kernel evaluates expressions."""
    session = (
        SparkSession.builder.master("local[1]")
        .config("spark.ui.enabled", "false")
        .config("spark.sql.ansi.enabled", "false")
        .config("spark.sql.session.timeZone", "Europe/Berlin")
        .config("spark.driver.host", "127.0.0.1")
        .config("spark.driver.bindAddress", "127.0.0.1")
        .getOrCreate()
    )
    gateway = session.sparkContext._gateway
    yield session
    session.stop()
    close(gateway)
    forget_jvm()
