"""The exposition as Prometheus' own linter reads it."""

import shutil
import subprocess
from collections.abc import Callable

import pytest
from fastapi.testclient import TestClient

from spark_jobs.status import JobStatus


def test_promtool_finds_nothing(
    client: TestClient, write: Callable[[JobStatus], None], job: Callable[..., JobStatus]
) -> None:
    promtool = shutil.which("promtool")
    if promtool is None:
        pytest.skip("promtool is not installed (Debian: prometheus)")
    write(job())
    text = client.get("/metrics").content
    done = subprocess.run(
        [promtool, "check", "metrics"], input=text, capture_output=True, timeout=60, check=False
    )
    assert (done.returncode, done.stderr.decode()) == (0, "")
