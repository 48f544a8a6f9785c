"""The state machines against the oracle, for a moment; tests/long/test_oracle.py goes on longer."""

import pytest

from tests.kernel.oracle.__main__ import MAKERS, maker, run

pytestmark = pytest.mark.service  # it takes long

STEPS = {"plan": 500, "multi": 1_000}


@pytest.mark.parametrize("machine", MAKERS)
def test_folded_output_equals_recomputation(machine: str) -> None:
    assert run(machine, seed=3, steps=STEPS.get(machine, 2_000), make_machine=maker(machine)) > 1
