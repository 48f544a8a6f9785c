"""What every test may use: one broker and one registry per run, golden files, the markers."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer

# a test that asks for one of these, or stands in one of these folders, starts a service, a browser
# or another tool, or reads for long
SERVICE_FIXTURES = {"broker", "spark"}
SERVICE_FOLDERS = {"streaming", "e2e", "page", "deploy", "debezium"}
LONG_FOLDERS = {"long", "cluster", "compose"}

# a JVM on a busy machine has no predictable speed per example
settings.register_profile("rejoin", settings(), deadline=None)
settings.load_profile("rejoin")

_SHOWN_CHARACTERS = 4_000  # of a failure, from its end

CheckGolden = Callable[[Path, str], None]


# JVMs of tests live for a minute: the optimising compiler would take half of their processor time
os.environ.setdefault("JDK_JAVA_OPTIONS", "-XX:TieredStopAtLevel=1")  # noqa: TID251


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--update-golden", action="store_true", help="rewrite golden files instead of comparing"
    )


def pytest_configure(config: pytest.Config) -> None:
    if not hasattr(config, "workerinput"):  # the process that prints
        config.pluginmanager.register(_FailuresAtOnce(config))


class _FailuresAtOnce:
    """Shows a failure when it happens: of a run that is cut off, the end is never printed."""

    def __init__(self, config: pytest.Config) -> None:
        self._config = config

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        terminal = self._config.pluginmanager.get_plugin("terminalreporter")
        if report.failed and terminal is not None:
            terminal.write_line(f"\n{report.nodeid} failed after {report.duration:.0f} s:")
            terminal.write_line(report.longreprtext[-_SHOWN_CHARACTERS:])


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    items.sort(key=_place)
    for item in items:
        fixtures = set(getattr(item, "fixturenames", ()))
        folders = set(item.path.relative_to(Path(__file__).parent).parts)
        if folders & LONG_FOLDERS:
            item.add_marker(pytest.mark.long)
        elif fixtures & SERVICE_FIXTURES or folders & SERVICE_FOLDERS:
            item.add_marker(pytest.mark.service)


def _place(item: pytest.Item) -> int:
    """The files that take longest come first, so that two processes end at about the same time."""
    return {"compose": 0, "streaming": 1}.get(item.path.parent.name, 2)


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    """A real broker, the same for the whole run: name topics so that no other test does."""
    with Broker(tmp_path_factory.mktemp("broker")) as running:
        yield running


@pytest.fixture(scope="session")
def registry(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RegistryServer]:
    """A schema registry, the same for the whole run."""
    with RegistryServer(tmp_path_factory.mktemp("schemas")) as running:
        yield running


@pytest.fixture
def golden(request: pytest.FixtureRequest) -> CheckGolden:
    """Compare a text with a golden file, or rewrite the file under `make golden`."""
    update = bool(request.config.getoption("--update-golden"))

    def check(path: Path, text: str) -> None:
        if update:
            path.write_text(text, encoding="utf-8")
        assert path.exists(), f"no golden file {path}: make golden"
        assert text == path.read_text(encoding="utf-8")

    return check
