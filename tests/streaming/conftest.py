"""A Spark session as `rejoin run` starts it, for tests that work inside it."""

from collections.abc import Iterator

import pytest
from pyspark.sql import SparkSession

from tests.harness.spark import spark_session


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session
