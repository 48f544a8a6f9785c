"""A broker, and a standalone Spark cluster for all tests of this folder."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from spark_jobs.embedded.broker import Broker
from tests.harness.shop import Shop
from tests.harness.standalone import Standalone, standalone_cluster

WITHIN_S = 900.0  # two executors, each a JVM, beside driver, broker, master and workers


@pytest.fixture(scope="session")
def standalone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Standalone]:
    with standalone_cluster(tmp_path_factory.mktemp("standalone")) as running:
        yield running


@pytest.fixture
def shop(broker: Broker, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Shop]:
    monkeypatch.setenv("REJOIN_MEMORY_MB", "1024")  # of the driver, which runs no tasks
    made = Shop(broker, tmp_path, within_s=WITHIN_S)
    yield made
    for child in made.running:
        child.stop(0.0)
