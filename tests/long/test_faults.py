"""A part of the fault matrix, one strike of each kind; `make faults` is the whole."""

import sys
from collections.abc import Iterator

import pytest

from tests.faults.cluster_kinds import CLUSTER_KINDS
from tests.faults.data import Data
from tests.faults.kinds import KINDS
from tests.faults.matrix import Matrix
from tests.faults.stage import stage

ROWS, EPOCHS = 45_000, 15
CHOSEN = ("driver-kill", "broker-kill", "network-freeze", "zombie", "fenced", "ledger-lost")


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


def strike(matrix: Matrix, name: str) -> str:
    [kind] = [kind for kind in (*KINDS, *CLUSTER_KINDS) if kind.name == name]
    return matrix.strike(kind).result


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CHOSEN)
def test_nothing_is_lost_and_nothing_doubled(matrix: Matrix, name: str) -> None:
    assert strike(matrix, name) == "ok"


@pytest.mark.timeout(1200)
def test_executor_that_wakes_up_after_it_was_replaced_writes_nothing(matrix: Matrix) -> None:
    assert strike(matrix, "cluster-executor-zombie") == "ok"
