"""More histories of jobs under random faults than `make test` has."""

from tests.simulation.run import run_histories

HISTORIES = 1_500
SEED = 20


def test_histories_break_no_rule() -> None:
    assert run_histories(SEED, 0, HISTORIES, print).violations == []
