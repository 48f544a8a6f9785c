"""Random cases through Spark and a broker, and a driver that is killed in the middle."""

from pathlib import Path

import pytest

from spark_jobs.embedded.broker import Broker
from tests.differential.delivery import differences
from tests.differential.generate import HISTORIES

SEED = 12
CASES = 3


@pytest.mark.timeout(1500)
def test_random_cases_survive_a_kill(broker: Broker, tmp_path: Path) -> None:
    numbers = range(0, CASES * HISTORIES, HISTORIES)
    assert differences(broker.bootstrap_servers, tmp_path, SEED, numbers) == []
