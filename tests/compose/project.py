"""docker-compose.yml under a name and on ports of its own, with podman-compose.

podman asks systemd to run health checks and podman-compose leaves conditions to podman 4.6. Here
are neither: the checks that the file and the Dockerfile define are run by hand, and a service is
started when what it depends on is as the file says.
"""

import json
import secrets
import sys
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import yaml

from spark_jobs.embedded.process import free_ports
from tests.compose.podman import ROOT, Failed, execute, podman

_COMPOSE = Path(sys.executable).parent / "podman-compose"
FILE = ROOT / "docker-compose.yml"
# there is no Grafana in Debian's packages, nor on PyPI or Maven
ABSENT = {"grafana"}
_PORTS = ("BROKER", "PAGE", "CDC_PAGE", "REGISTRY", "PROMETHEUS")
_UP_S = 600.0
_HEALTHY_S = 240.0
_DONE_S = 120.0


class Project:
    """Containers, volumes and networks of one name; `down` removes them all."""

    def __init__(self) -> None:
        self.name = f"rejoin-test-{secrets.token_hex(3)}"
        ports = free_ports(len(_PORTS))
        self.ports = dict(zip(_PORTS, ports, strict=True))
        self._started: set[str] = set()
        text = yaml.safe_load(FILE.read_text(encoding="utf-8"))
        self._services: dict[str, dict[str, Any]] = text["services"]

    def up(self, *profiles: str) -> None:
        """Start what is not there yet of these profiles, each when what it depends on is ready."""
        wanted = self.services(*profiles)
        left = [name for name in wanted if name not in self._started]
        deadline = time.monotonic() + _UP_S
        while left:
            if ready := [name for name in left if self._may_start(name)]:
                self._compose(profiles, "up", "-d", "--no-build", "--no-deps", *ready)
                self._started.update(ready)
                left = [name for name in left if name not in ready]
            elif time.monotonic() > deadline:
                raise AssertionError(f"{', '.join(left)} wait for others:\n{self._all_logs()}")
            else:
                time.sleep(1.0)
        for service in wanted:
            if self._is_checked(service):
                self.wait_healthy(service)

    def down(self) -> None:
        """Also what a failure has left."""
        for container in self._owned("ps", "--all"):
            podman("rm", "--force", "--time=0", "--volumes", container)
        for volume in self._owned("volume", "ls"):
            podman("volume", "rm", "--force", volume)
        for network in self._owned("network", "ls"):
            podman("network", "rm", "--force", network)

    def left(self) -> list[str]:
        """What is still there of this project."""
        found = list(self._owned("ps", "--all"))
        return found + list(self._owned("volume", "ls")) + list(self._owned("network", "ls"))

    def restart(self, *services: str) -> None:
        """All at the same time, until each is healthy again."""

        def at_once(service: str) -> None:
            podman("restart", "--time=30", self.container(service))
            self.wait_healthy(service)

        with ThreadPoolExecutor(len(services)) as pool:
            list(pool.map(at_once, services))

    def remove(self, *services: str) -> None:
        for service in services:
            podman("rm", "--force", "--ignore", "--time=0", "--volumes", self.container(service))
            self._started.discard(service)

    def container(self, service: str) -> str:
        return f"{self.name}_{service}_1"

    def exec(self, service: str, *command: str) -> str:
        return podman("exec", self.container(service), *command)

    def logs(self, service: str, lines: int = 40) -> str:
        command = ["sh", "-c", f"podman logs --tail {lines} {self.container(service)} 2>&1"]
        return execute(command)

    def inspect(self, service: str) -> dict[str, Any]:
        found: list[dict[str, Any]] = json.loads(podman("inspect", self.container(service)))
        return found[0]

    def address(self, service: str) -> str:
        networks: dict[str, Any] = self.inspect(service)["NetworkSettings"]["Networks"]
        return str(next(iter(networks.values()))["IPAddress"])

    def services(self, *profiles: str) -> list[str]:
        return [
            name
            for name, service in self._services.items()
            if set(profiles) & set(service["profiles"]) and name not in ABSENT
        ]

    def is_healthy(self, service: str) -> bool:
        try:
            podman("healthcheck", "run", self.container(service))
        except Failed:
            return False
        return True

    def wait_healthy(self, service: str) -> None:
        self.wait(lambda: self.is_healthy(service), _HEALTHY_S, service, "is not healthy")

    def has_done(self, service: str) -> bool:
        state = self.inspect(service)["State"]
        return (state["Status"], state["ExitCode"]) == ("exited", 0)

    def wait_done(self, service: str) -> None:
        self.wait(lambda: self.has_done(service), _DONE_S, service, "did not end well")

    def wait(self, done: Callable[[], bool], limit_s: float, service: str, what: str) -> None:
        deadline = time.monotonic() + limit_s
        while not done():
            if time.monotonic() > deadline:
                log = self.logs(service)
                raise AssertionError(f"{service} {what} within {limit_s:.0f} s:\n{log}")
            time.sleep(1.0)

    def _is_checked(self, service: str) -> bool:
        return bool(self.inspect(service)["Config"].get("Healthcheck")) and (
            self.inspect(service)["State"]["Status"] == "running"
        )

    def _may_start(self, service: str) -> bool:
        """Whether each that it depends on runs and is healthy, or has done its work."""
        depends_on: dict[str, dict[str, str]] = self._services[service].get("depends_on", {})
        return all(
            needed in self._started
            and (
                self.has_done(needed)
                if how["condition"] == "service_completed_successfully"
                else self.is_healthy(needed)
            )
            for needed, how in depends_on.items()
        )

    def _all_logs(self) -> str:
        return "\n".join(f"--- {name}\n{self.logs(name, 15)}" for name in sorted(self._started))

    def _compose(self, profiles: Iterable[str], *arguments: str) -> None:
        variables = {f"REJOIN_{name}_PORT": str(port) for name, port in self.ports.items()}
        # the converter of the stand-in is older than the image's and speaks this interface
        variables["REJOIN_CONVERTER_URL"] = "http://registry:8080/apis/registry/v2"
        command = [str(_COMPOSE), "--file", str(FILE), "--project-name", self.name]
        for profile in profiles:
            command += ["--profile", profile]
        execute([*command, *arguments], 300, variables)

    def _owned(self, *listing: str) -> Iterable[str]:
        column = "{{.Names}}" if listing[0] == "ps" else "{{.Name}}"
        names = podman(*listing, "--format", column).split()
        return [name for name in names if name.startswith(f"{self.name}_")]
