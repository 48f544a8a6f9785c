"""Checkpoints of older releases go on under the present code."""

from pathlib import Path

import pytest

from spark_jobs.embedded.broker import Broker
from tests.checkpoints.job import ROOT, OldJob

SOURCES = Path(__file__).parents[2]
VERSIONS = sorted(path.name for path in ROOT.glob("v*"))


@pytest.mark.timeout(2000)
@pytest.mark.parametrize("version", VERSIONS)
def test_every_operator_goes_on_from_its_old_state(
    version: str, tmp_path: Path, broker: Broker
) -> None:
    job = OldJob(ROOT / version, tmp_path, broker.bootstrap_servers)
    job.unpack_checkpoint()
    job.create_topics()
    before, *after = job.steps
    job.feed(before)
    job.start(SOURCES)
    for step in after:
        job.feed(step)
        job.settle()
    job.stop()
    written = [*job.recorded(), *job.written()]
    expected = (job.folder / "expected.txt").read_text(encoding="utf-8").splitlines()
    assert job.fold(written) == expected
