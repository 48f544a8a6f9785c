"""More random changelogs against the oracle, and more broken records, than `make test` has."""

import pytest

from tests.debezium.registry import recorded_registry
from tests.kernel.fuzz import fuzz
from tests.kernel.oracle.__main__ import MAKERS, maker, run

# plans and chains of joins cost more per event
STEPS = {"plan": 5_000, "multi": 30_000}
SEED = 11


@pytest.mark.parametrize("machine", MAKERS)
def test_folded_output_equals_recomputation(machine: str) -> None:
    assert run(machine, SEED, STEPS.get(machine, 60_000), maker(machine)) > 50


def test_broken_records_are_rows_or_rejects() -> None:
    with recorded_registry() as registry:
        assert fuzz(20_000, SEED, registry).problems == []
