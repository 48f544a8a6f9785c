"""PostgreSQL, Debezium and a registry as they are, and faults: the answers are the database's."""

import shutil
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e import artifacts
from tests.e2e.postgres import programs
from tests.e2e.run import run

SECONDS = 30.0


@pytest.fixture(scope="module")
def postgres_bin() -> Path:
    found = programs()
    if found is None:
        pytest.skip("PostgreSQL is not installed (Debian: postgresql)")
    artifacts.provide(sys.stdout.write)
    return found


@pytest.fixture
def folder(request: pytest.FixtureRequest) -> Iterator[Path]:
    """The database server is another user, and pytest's own folders are open to nobody else.

    The folder of a failed test is kept: logs and topics are in it.
    """
    made = Path(tempfile.mkdtemp(prefix="rejoin-e2e-"))
    made.chmod(0o755)
    failures = request.session.testsfailed
    yield made
    if request.session.testsfailed == failures:
        shutil.rmtree(made)


@pytest.mark.timeout(1200)
def test_the_results_are_the_answers_of_postgresql(postgres_bin: Path, folder: Path) -> None:
    report = run(folder, postgres_bin, "avro", SECONDS, seed=1, say=_say)
    told = "\n".join(report.lines())
    _say(told)
    assert report.passed, f"{told}\nlogs and topics are in {folder}"


def _say(text: str) -> None:
    """Shown when the test fails."""
    sys.stdout.write(f"{text}\n")
