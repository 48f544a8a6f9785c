"""Key groups whose rows wait for barriers: a step does not depend on which row came first."""

import random
from typing import Any

import pytest

from tests.harness.gateway import jvm

GROUPS, READERS, STEPS = 3, 2, 5
LAST = 2**63 - 1  # Barriers.Last

# what a reader sends, in this order: ("row", group, step, number) or ("barrier", group, step)
Sent = tuple[Any, ...]


def groups() -> Any:
    return jvm().rejoin.core.machine.SteppedGroupsRun(GROUPS)


def reader(number: int, ends_after: int) -> list[Sent]:
    """Rows of each step in each group and the barriers behind them; the last step is the rest."""
    sent: list[Sent] = []
    for step in range(STEPS):
        for group in range(GROUPS):
            sent.append(("row", group, min(step, ends_after), 100 * step + 10 * group + number))
        if step < ends_after:
            sent += [("barrier", group, step) for group in range(GROUPS)]
    return sent + [("barrier", group, LAST) for group in range(GROUPS)]


def run(readers: list[list[Sent]], rng: random.Random) -> tuple[dict[str, set[str]], list[int]]:
    """The steps of each group, and the barriers that all groups have completed."""
    task, queues = groups(), [list(sent) for sent in readers]
    steps: dict[str, set[str]] = {}
    complete = []
    while any(queues):
        number = rng.choice([n for n, queue in enumerate(queues) if queue])
        match queues[number].pop(0):
            case ("row", group, step, row):
                task.row(group, step, row)
            case ("barrier", group, barrier):
                found = task.barrier(group, number, len(readers), barrier).split()
                steps.setdefault(str(group), set()).update(
                    f for f in found if f[-1] != ":" and ":" in f
                )
                complete += [int(f) for f in found if ":" not in f]
    assert not task.isWaiting()
    return steps, complete


def test_steps_are_the_same_in_any_order_of_arrival() -> None:
    """Readers whose epoch ends in different steps among them."""
    for seed in range(20):
        rng = random.Random(seed)  # noqa: S311
        readers = [reader(n, rng.randint(0, STEPS)) for n in range(READERS)]
        expected, _ = run(readers, rng)
        for order in range(5):
            steps, complete = run(readers, rng)
            assert steps == expected, (seed, order)
            assert complete == sorted(set(complete)), (seed, order)
            assert complete[-1] == LAST, (seed, order)


@pytest.mark.parametrize("barrier", [0, LAST])
def test_the_first_group_has_the_first_step_without_rows(barrier: int) -> None:
    """An aggregate without keys says there what it is before any row."""
    task = groups()
    task.row(0, 1, 7)
    found = [task.barrier(group, 0, 1, barrier) for group in range(GROUPS)]
    assert found == ["0: 1:7" if barrier == LAST else "0:", "", str(barrier)]
    if barrier != LAST:
        assert task.barrier(0, 0, 1, 1) == "1:7"


def test_a_step_is_complete_once_all_readers_have_ended_it_in_all_groups() -> None:
    task = groups()
    task.row(0, 0, 7)
    task.row(0, 1, 8)
    assert task.barrier(0, 0, 2, 0) == ""
    assert task.barrier(0, 1, 2, 0) == "0:7"
    assert task.isWaiting()
    found = [task.barrier(group, number, 2, 0) for group in (1, 2) for number in (0, 1)]
    assert found == ["", "", "", "0"]
