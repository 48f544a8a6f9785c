"""PostgreSQL, Debezium and a registry as they are: the answers, and the schemas they register."""

import json
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import httpx
import pytest

from spark_jobs.embedded.broker import Broker
from tests.e2e import artifacts
from tests.e2e.apicurio import Apicurio
from tests.e2e.debezium import Connect, avro_converter
from tests.e2e.postgres import Postgres, programs
from tests.e2e.run import run, wait_until
from tests.harness.schemas import schema_differences

COMPOSE = Path(__file__).parents[2] / "deploy" / "compose"
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


@pytest.mark.timeout(600)
def test_debezium_registers_the_schemas_of_the_tables_of_compose(
    postgres_bin: Path, folder: Path
) -> None:
    connector = json.loads((COMPOSE / "connector.json").read_text(encoding="utf-8"))
    tables = [f"shop.{table}" for table in connector["table.include.list"].split(",")]
    subjects = [f"{table}-{part}" for table in tables for part in ("key", "value")]
    with ExitStack() as started:
        postgres = Postgres(folder / "postgres", postgres_bin)
        started.callback(postgres.stop)
        postgres.start()
        with postgres.connect() as connection:
            connection.execute((COMPOSE / "shop-tables.sql").read_bytes())
        registry = Apicurio(folder / "registry")
        started.callback(registry.stop)
        registry.launch()
        broker = started.enter_context(Broker(folder / "broker"))
        registry.wait()
        settings = {**connector, **avro_converter(registry.own_url)}
        connect = Connect(folder / "connect", broker.bootstrap_servers, postgres, settings)
        started.callback(connect.stop)
        connect.launch()
        connect.wait()

        def are_there() -> bool:
            connect.check_alive()
            return set(subjects) <= set(httpx.get(f"{registry.url}/subjects").json())

        wait_until(are_there, "Debezium did not register its schemas")
        assert list(schema_differences(registry.url, subjects)) == []


def _say(text: str) -> None:
    """Shown when the test fails."""
    sys.stdout.write(f"{text}\n")
