"""Some random histories break no rule; each fault that is put in on purpose is found."""

import pytest

from tests.simulation.history import FAULTS, random_history
from tests.simulation.jobs import JOBS
from tests.simulation.run import Say, run_histories

pytestmark = pytest.mark.service  # it takes long

SEED = 1
HISTORIES = 120
MOST = 2_000


@pytest.fixture
def say() -> Say:
    return print


def test_histories_break_no_rule(say: Say) -> None:
    tally = run_histories(SEED, 0, HISTORIES, say)
    assert tally.violations == []
    assert {random_history(SEED, n).job for n in range(HISTORIES)} == set(JOBS)


@pytest.mark.parametrize("fault", FAULTS)
def test_fault_is_found_and_its_report_says_how_to_see_it_again(fault: str, say: Say) -> None:
    tally = run_histories(SEED, 0, MOST, say, fault)
    assert len(tally.violations) == 1
    last = tally.violations[0].splitlines()[-1]
    number = tally.histories - 1
    assert last.endswith(f"--seed {SEED} --first {number} --histories 1 --fault {fault}")
    assert len(run_histories(SEED, number, 1, say, fault).violations) == 1


def test_history_is_the_same_from_its_seed() -> None:
    assert random_history(SEED, 7) == random_history(SEED, 7)
    assert random_history(SEED, 7) != random_history(SEED, 8)
