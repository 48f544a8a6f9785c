"""The numbers by which Spark knows key groups."""

from collections import Counter
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.harness.gateway import jvm


def group_keys() -> Any:
    return jvm().org.apache.spark.sql.rejoin.run.GroupKey


@given(st.integers(min_value=-(2**31), max_value=2**31 - 1))
def test_an_even_key_is_the_only_number_with_its_hash(number: int) -> None:
    keys = group_keys()
    assert keys.hash(keys.hashedTo(number)) == number
    assert keys.hashedTo(keys.hash(number)) == number


@pytest.mark.parametrize("partitions", [1, 2, 3, 7, 16, 31, 64, 100, 128])
def test_no_partition_has_two_groups_more_than_another(partitions: int) -> None:
    key = group_keys()(True)
    counts = Counter(group_keys().hash(key.of(group)) % partitions for group in range(128))
    assert max(counts.values()) - min(counts[n] for n in range(partitions)) <= 1


@pytest.mark.parametrize("even", [True, False])
def test_a_key_leads_back_to_its_group(even: bool) -> None:
    key = group_keys()(even)
    for group in [*range(128), 1_000_000_007]:
        assert key.groupOf(key.of(group)) == group
        assert even or key.of(group) == group
