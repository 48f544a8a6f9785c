"""The state machines against the oracle; `python -m tests.kernel.oracle` runs for longer."""

import pytest

from tests.kernel.oracle.__main__ import MAKERS, maker, run

STEPS = {"plan": 1_000, "multi": 3_000}


@pytest.mark.parametrize("machine", MAKERS)
def test_folded_output_equals_recomputation(machine: str) -> None:
    assert run(machine, seed=3, steps=STEPS.get(machine, 6_000), make_machine=maker(machine)) > 5
