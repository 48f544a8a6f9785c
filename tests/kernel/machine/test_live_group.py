"""Real-time mode's one event at a time, beside a micro-batch for each of the same events."""

import json
from typing import Any

import pytest

from tests.harness.gateway import new_machine
from tests.kernel.oracle.__main__ import MAKERS, random_case
from tests.kernel.oracle.interval import Join

pytestmark = pytest.mark.service  # it takes long

CASES = 5
MARKS = ("watermark", "idle", "loaded")  # said again at the beginning and end of an epoch


def rows(emitted: str) -> list[Any]:
    return [row for batch in json.loads(emitted) for row in batch if row[0] not in MARKS]


@pytest.mark.parametrize(("hears_end", "after"), [(True, 0), (True, 4), (False, 0)])
@pytest.mark.parametrize("machine", [name for name in MAKERS if name != "plan"])
def test_events_one_by_one_make_the_same_rows_and_state(
    machine: str, hears_end: bool, after: int
) -> None:
    """A group's cell is read once in an epoch, and not written after watermarks alone.

    Where it hears that the epoch ends, rows are written then.
    """
    for index in range(CASES):
        case = random_case(machine, 11, index)
        alone, live = new_machine(json.dumps(case.node)), new_machine(json.dumps(case.node))
        singles = [[event] for batch in case.batches for event in batch]
        expected = rows(alone.run(json.dumps(singles)))
        found = rows(live.runLive(json.dumps(case.batches), hears_end, after))
        assert found == expected, case.name
        assert live.stateRows() == alone.stateRows(), case.name
        assert (live.stateCells(), live.lateRows()) == (alone.stateCells(), alone.lateRows())


def machine_with_idle_timeout() -> Any:
    """An interval join of equal times, by event time; a second without records is idle."""
    node = Join("inner", True, 0, 0).node()
    topics = [[{"topic": side, "idleTimeoutMs": 1000}] for side in (0, 1)]
    node["timing"] |= {"inputs": topics, "tickMs": 1000}
    return new_machine(json.dumps(node))


def marks(time: int, *partitions: int) -> list[Any]:
    """A watermark of the right input, and of these partitions of the left one."""
    return [["watermark", "left", time, n] for n in partitions] + [["watermark", "right", time]]


@pytest.mark.parametrize(
    ("began", "late"),
    [
        ([["resumed", 60_000, False], ["clock", 60_000]], 0),
        ([["resumed", 60_000, False], ["clock", 60_000], ["clock", 60_999]], 0),
        ([["resumed", 60_000, False], ["clock", 60_000], ["clock", 61_000]], 1),
    ],
)
def test_a_partition_is_as_idle_as_it_was_when_its_epoch_ended(began: list[Any], late: int) -> None:
    """Between two epochs nothing is read. One partition has records first, and time goes on."""
    machine = machine_with_idle_timeout()
    first = [["clock", 1000], *marks(100, 0, 1)]
    second = [*began, *marks(5000, 0), ["left", "+I", [200, "k", 0, ""]]]
    machine.runLive(json.dumps([first, second]), True, 0)
    assert machine.lateRows() == late


@pytest.mark.parametrize(("is_start", "late"), [(True, 0), (False, 1)])
def test_no_partition_is_idle_when_a_query_starts(is_start: bool, late: int) -> None:
    machine = machine_with_idle_timeout()
    first = [["clock", 1000], *marks(100, 0, 1), ["clock", 3000], *marks(150, 0)]
    second = [["resumed", 60_000, is_start], ["clock", 60_000], *marks(5000, 0)]
    row = ["left", "+I", [200, "k", 0, ""]]
    machine.runLive(json.dumps([first, [*second, row]]), True, 0)
    assert machine.lateRows() == late
