"""Results that do not fit into memory: the same rows, through files that are gone afterwards."""

import json
from typing import Any

import pytest

from tests.harness.gateway import new_machine
from tests.kernel.oracle.__main__ import random_case, run

pytestmark = pytest.mark.service  # it takes long

# those whose results are netted or sorted before they leave
MACHINES = ("regular", "multi", "interval", "interval_changes", "temporal", "latest", "unnest")


@pytest.mark.parametrize("max_bytes", [0, 400])
@pytest.mark.parametrize("machine", MACHINES)
def test_folded_output_does_not_depend_on_memory(machine: str, max_bytes: int) -> None:
    made: list[Any] = []

    def small(node: str) -> Any:
        made.append(new_machine(node, max_bytes))
        return made[-1]

    assert run(machine, seed=5, steps=1_000, make_machine=small) > 1
    files = [json.loads(one.overflowFiles()) for one in made]
    assert sum(used for used, _ in files) > 0
    assert sum(left for _, left in files) == 0


@pytest.mark.parametrize("machine", MACHINES)
def test_each_batch_emits_the_same_rows_with_little_memory(machine: str) -> None:
    used = 0
    for index in range(6):
        case = random_case(machine, 8, index)
        small, large = (new_machine(json.dumps(case.node), size) for size in (300, 1 << 24))
        batches = json.dumps(case.batches)
        for found, wanted in zip(
            *(json.loads(m.run(batches)) for m in (small, large)), strict=True
        ):
            assert sorted(map(json.dumps, found)) == sorted(map(json.dumps, wanted)), case.name
        used += json.loads(small.overflowFiles())[0]
        assert json.loads(large.overflowFiles()) == [0, 0]
    assert used > 0
