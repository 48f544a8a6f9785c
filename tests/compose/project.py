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
_HEALTHY_S = 240.0
_DONE_S = 120.0


class Project:
    """Containers, volumes and networks of one name; `down` removes them all."""

    def __init__(self) -> None:
        self.name = f"rejoin-test-{secrets.token_hex(3)}"
        ports = free_ports(len(_PORTS))
        self.ports = dict(zip(_PORTS, ports, strict=True))
        self.started_s: dict[str, float] = {}
        text = yaml.safe_load(FILE.read_text(encoding="utf-8"))
        self._services: dict[str, dict[str, Any]] = text["services"]

    def up(self, *profiles: str) -> None:
        """Start the services of these profiles, each when what it depends on is ready."""
        for service in self._order(profiles):
            for needed, how in self._services[service].get("depends_on", {}).items():
                if how["condition"] == "service_completed_successfully":
                    self.wait_done(needed)
                else:
                    self.wait_healthy(needed)
            self._compose(profiles, "up", "-d", "--no-build", "--no-deps", service)
            self.started_s[service] = time.monotonic()
        for service in self._order(profiles):
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

    def restart(self, service: str) -> None:
        podman("restart", "--time=30", self.container(service))
        self.wait_healthy(service)

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

    def wait_done(self, service: str) -> None:
        def has_ended() -> bool:
            state = self.inspect(service)["State"]
            return (state["Status"], state["ExitCode"]) == ("exited", 0)

        self.wait(has_ended, _DONE_S, service, "did not end well")

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

    def _order(self, profiles: Iterable[str]) -> list[str]:
        """Every service behind those that it depends on."""
        left = self.services(*profiles)
        ordered: list[str] = []
        while left:
            for name in left:
                needed = set(self._services[name].get("depends_on", {})) - set(ordered)
                if not needed & set(left):
                    ordered.append(name)
                    left.remove(name)
                    break
        return ordered

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
