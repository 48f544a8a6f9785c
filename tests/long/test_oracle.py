"""More random changelogs against the oracle, and more broken records, than `make test` has."""

import pytest

from tests.debezium.registry import recorded_registry
from tests.kernel.format.fuzz import fuzz
from tests.kernel.oracle.__main__ import MAKERS, maker, run

# plans and chains of joins cost more per event
STEPS = {"plan": 2_500, "multi": 10_000}
CASES = {"plan": 10}
SEED = 11


@pytest.mark.parametrize("machine", MAKERS)
def test_folded_output_equals_recomputation(machine: str) -> None:
    cases = run(machine, SEED, STEPS.get(machine, 15_000), maker(machine))
    assert cases > CASES.get(machine, 20)


def test_regular_joins_of_another_seed() -> None:
    assert run("regular", SEED + 1, 15_000, maker("regular")) > 20


def test_broken_records_are_rows_or_rejects() -> None:
    with recorded_registry() as registry:
        assert fuzz(20_000, SEED, registry).problems == []
