"""The same rows give the same result, however they are cut, spread over partitions and grouped."""

import random

import pytest

from tests.kernel.oracle.__main__ import random_case
from tests.kernel.oracle.check import check
from tests.kernel.oracle.plans import PlanMachine, varied


@pytest.mark.parametrize("index", range(3))
@pytest.mark.parametrize(("groups", "partitions"), [(1, 1), (7, 3), (32, 2)])
def test_batches_partitions_and_key_groups_do_not_matter(
    index: int, groups: int, partitions: int
) -> None:
    case = random_case("plan", seed=11, index=index, size=60)
    rng = random.Random(f"{index} {groups} {partitions}")  # noqa: S311 - repeatable, not secret
    failure = check(varied(case, rng, groups, partitions), PlanMachine)
    assert failure is None, failure and failure.report()
