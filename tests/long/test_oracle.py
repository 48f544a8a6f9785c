"""More random changelogs against the oracle, and more broken records, than `make test` has."""

import pytest

from tests.debezium.registry import recorded_registry
from tests.kernel.format.fuzz import fuzz
from tests.kernel.oracle.__main__ import MAKERS, maker, run

# plans and chains of joins cost more per event
STEPS = {"plan": 5_000, "multi": 30_000}
CASES = {"plan": 20}
SEED = 11
# of machine and seed: the first case in which machine and oracle disagree
OPEN = {
    "regular": (230, "a row of NULLs that matches nothing takes back the equal padded row"),
}


@pytest.mark.parametrize("machine", [machine for machine in MAKERS if machine not in OPEN])
def test_folded_output_equals_recomputation(machine: str) -> None:
    cases = run(machine, SEED, STEPS.get(machine, 60_000), maker(machine))
    assert cases > CASES.get(machine, 50)


def test_regular_joins_of_another_seed() -> None:
    assert run("regular", SEED + 1, 60_000, maker("regular")) > 50


@pytest.mark.parametrize(
    ("machine", "case"),
    [
        pytest.param(
            machine, case, marks=pytest.mark.xfail(strict=True, raises=AssertionError, reason=why)
        )
        for machine, (case, why) in OPEN.items()
    ],
)
def test_open_disagreements(machine: str, case: int) -> None:
    run(machine, SEED, 1, maker(machine), first=case)


def test_broken_records_are_rows_or_rejects() -> None:
    with recorded_registry() as registry:
        assert fuzz(20_000, SEED, registry).problems == []
