"""The state machines against the oracle; `python -m tests.kernel.oracle` runs for longer."""

import pytest

from tests.harness.gateway import kernel
from tests.kernel.oracle.__main__ import MAKERS, run


@pytest.mark.parametrize("machine", MAKERS)
def test_folded_output_equals_recomputation(machine: str) -> None:
    assert run(machine, seed=3, steps=6_000, make_machine=kernel().machine) > 10
