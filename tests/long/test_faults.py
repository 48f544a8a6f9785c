"""A part of the fault matrix, one strike of each kind; `make faults` is the whole."""

import sys
from collections.abc import Iterator

import pytest

from tests.faults.data import Data
from tests.faults.kinds import KINDS
from tests.faults.matrix import Matrix
from tests.faults.stage import stage

ROWS, EPOCHS = 60_000, 20
CHOSEN = ("driver-kill", "broker-kill", "network-freeze", "zombie", "fenced", "ledger-lost")


@pytest.fixture(scope="module")
def matrix(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Matrix]:
    """With the undisturbed run that the others are compared with."""
    with stage(tmp_path_factory.mktemp("faults"), Data(ROWS), EPOCHS) as made:
        found = Matrix(made, rounds=1, patience_s=180.0, say=_say)
        found.undisturbed()
        yield found


def _say(text: str) -> None:
    """Shown when the test fails."""
    sys.stdout.write(f"{text}\n")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("name", CHOSEN)
def test_nothing_is_lost_and_nothing_doubled(matrix: Matrix, name: str) -> None:
    [kind] = [kind for kind in KINDS if kind.name == name]
    assert matrix.strike(kind).result == "ok"
