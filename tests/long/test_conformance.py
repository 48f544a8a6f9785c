"""Every conformance case, in memory in each order that is allowed, and once more in Spark."""

from pathlib import Path

import pytest

from tests.conformance.__main__ import main

CASES = Path(__file__).parents[2].parent / "shared" / "conformance"
pytestmark = pytest.mark.skipif(not CASES.is_dir(), reason=f"no conformance cases in {CASES}")


@pytest.mark.timeout(600)
@pytest.mark.parametrize("kind", ["sql", "operator"])
def test_cases_in_memory(kind: str) -> None:
    assert main([str(CASES / kind)]) == 0


@pytest.mark.timeout(1200)
def test_sql_cases_in_spark() -> None:
    assert main(["--spark", str(CASES / "sql")]) == 0
