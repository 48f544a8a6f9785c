"""One of the faults on a cluster; `make faults ARGS="--kinds 'cluster-*'"` is the whole."""

import sys
from collections.abc import Iterator

import pytest

from tests.faults.cluster_kinds import CLUSTER_KINDS
from tests.faults.data import Data
from tests.faults.matrix import Matrix
from tests.faults.stage import stage

ROWS, EPOCHS = 24_000, 12


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """With the undisturbed run that the others are compared with, in threads of the driver."""
    with stage(tmp_path_factory.mktemp("faults"), Data(ROWS), EPOCHS) as made:
        found = Matrix(made, rounds=1, patience_s=300.0, say=_say)
        found.undisturbed()
        yield found


def _say(text: str) -> None:
    """Shown when the test fails."""
    sys.stdout.write(f"{text}\n")


@pytest.mark.timeout(1200)
def test_executor_that_wakes_up_after_it_was_replaced_writes_nothing(matrix: Matrix) -> None:
    [kind] = [kind for kind in CLUSTER_KINDS if kind.name == "cluster-executor-zombie"]
    assert matrix.strike(kind).result == "ok"
