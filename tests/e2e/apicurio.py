"""Apicurio Registry, in memory, on the loopback interface."""

import time
from pathlib import Path

import httpx

from spark_jobs.embedded.process import LOOPBACK, Child, free_ports
from spark_jobs.kernel.build import java
from tests.e2e.artifacts import REGISTRY

_START_TIMEOUT_S = 120.0
_STOP_GRACE_S = 15.0
_HEAP = "-Xmx384m"


class Apicurio:
    """Confluent's API under `url`; its own, which its converter speaks, under `own_url`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        (self.port,) = free_ports(1)
        self._child: Child | None = None

    @property
    def url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/apis/ccompat/v7"

    @property
    def own_url(self) -> str:
        return f"http://{LOOPBACK}:{self.port}/apis/registry/v2"

    def launch(self) -> None:
        """Begin to start it."""
        self.folder.mkdir()
        (runner,) = REGISTRY.glob("*-runner.jar")
        command = [java(), _HEAP, f"-Dquarkus.http.host={LOOPBACK}"]
        command += [f"-Dquarkus.http.port={self.port}", "-jar", str(runner)]
        self._child = Child(command, self.folder / "registry.log")

    def wait(self) -> None:
        """Return when it answers; raise RuntimeError with its log if it never does."""
        deadline = time.monotonic() + _START_TIMEOUT_S
        while not self._answers():
            self.check_alive()
            if time.monotonic() > deadline:
                raise RuntimeError(f"the registry did not start:\n{self._log_tail()}")
            time.sleep(0.2)

    def stop(self) -> None:
        if self._child is not None:
            self._child.stop(_STOP_GRACE_S)
            self._child = None

    def check_alive(self) -> None:
        if self._child is not None and self._child.exit_code is not None:
            raise RuntimeError(f"the registry has ended:\n{self._log_tail()}")

    def _answers(self) -> bool:
        try:
            return httpx.get(f"{self.url}/subjects").status_code == httpx.codes.OK
        except httpx.TransportError:
            return False

    def _log_tail(self) -> str:
        return "" if self._child is None else self._child.log_tail()
