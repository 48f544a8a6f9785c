"""A short run of the fuzz, always the same; `python -m tests.kernel.format.fuzz` runs longer."""

import pytest

from tests.debezium.registry import recorded_registry
from tests.kernel.format.fuzz import fuzz

pytestmark = pytest.mark.service  # it takes long


def test_broken_records_are_rows_or_rejects() -> None:
    with recorded_registry() as registry:
        result = fuzz(1000, 7, registry, every=6)
    # so few pairs say nothing of the heap: classes are still being loaded
    assert [p for p in result.problems if "heap" not in p] == []
    assert result.rows > 100
    assert sum(result.rejects.values()) > 100
