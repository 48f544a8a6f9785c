"""Real-time mode's one event at a time, beside a micro-batch for each of the same events."""

import json
from typing import Any

import pytest

from tests.harness.gateway import new_machine
from tests.kernel.oracle.__main__ import MAKERS, random_case

pytestmark = pytest.mark.service  # it takes long

CASES = 5
MARKS = ("watermark", "idle", "loaded")  # said again at the beginning and end of an epoch


def rows(emitted: str) -> list[Any]:
    return [row for batch in json.loads(emitted) for row in batch if row[0] not in MARKS]


@pytest.mark.parametrize("machine", [name for name in MAKERS if name != "plan"])
def test_events_one_by_one_make_the_same_rows_and_state(machine: str) -> None:
    """A group's cell is read once in an epoch, and not written after watermarks alone."""
    for index in range(CASES):
        case = random_case(machine, 11, index)
        alone, live = new_machine(json.dumps(case.node)), new_machine(json.dumps(case.node))
        singles = [[event] for batch in case.batches for event in batch]
        expected = rows(alone.run(json.dumps(singles)))
        found = rows(live.runLive(json.dumps(case.batches)))
        assert found == expected, case.name
        assert live.stateRows() == alone.stateRows(), case.name
        assert (live.stateCells(), live.lateRows()) == (alone.stateCells(), alone.lateRows())
