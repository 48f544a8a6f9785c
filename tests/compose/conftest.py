"""The images that all compose tests start from."""

import sys
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

from tests.compose import images
from tests.compose.podman import obstacle, podman


@pytest.fixture(scope="session")
def built() -> Iterator[None]:
    """The image of the Dockerfile, and what stands in for the others."""
    reason = obstacle()
    if reason is not None:
        pytest.skip(reason)
    begun = time.monotonic()
    images.provide_bases()
    with ThreadPoolExecutor(2) as pool:
        tasks = [pool.submit(images.build_rejoin), pool.submit(images.provide_stand_ins)]
        for task in tasks:
            task.result()
    took = f"{time.monotonic() - begun:.0f} s"
    sys.stdout.write(f"image of {images.size_mb(images.REJOIN)} MB; built in {took}\n")
    yield
    podman("untag", images.REJOIN)
    podman("volume", "prune", "--force")  # those without a name, which images ask for
