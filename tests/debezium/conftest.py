"""The kernel, and the recorded schemas by id."""

from collections.abc import Iterator
from typing import Any

import pytest

from tests.debezium.registry import recorded_registry
from tests.harness.gateway import kernel


@pytest.fixture(scope="session")
def jvm() -> Any:
    """The kernel's one object."""
    return kernel()


@pytest.fixture(scope="session")
def registry() -> Iterator[str]:
    """Its address."""
    with recorded_registry() as address:
        yield address
