"""The pods of `overlays/local` for `podman kube play`, which knows no StatefulSets and Services.

A StatefulSet becomes its first pod with its claims, a Deployment its pod, a Service an alias of the
pod in a network. An optional Secret that is not there is an empty folder, as Kubernetes has it.
Containers, guards, other volumes and ConfigMaps stay as kustomize builds them.
"""

import os
import secrets
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from copy import deepcopy

import yaml

from spark_jobs.embedded.process import LOOPBACK, free_ports
from tests.compose.podman import HOME, Failed, podman
from tests.harness.manifests import Manifest

_PLAY_S = 300.0


def playable(manifests: list[Manifest]) -> dict[str, list[Manifest]]:
    """By alias in the network what is played at once, in an order in which it can start."""
    selectors = {
        m["metadata"]["name"]: m["spec"]["selector"] for m in manifests if m["kind"] == "Service"
    }
    found: dict[str, list[Manifest]] = {}
    for owner in (m for m in manifests if m["kind"] in ("Deployment", "StatefulSet")):
        pod = _pod_of(owner)
        labels = pod["metadata"]["labels"].items()
        names = [name for name, wanted in selectors.items() if wanted.items() <= labels]
        config_maps = [
            volume["configMap"]["name"]
            for volume in pod["spec"].get("volumes", ())
            if "configMap" in volume
        ]
        needed = [
            m
            for m in manifests
            if m["kind"] == "ConfigMap" and m["metadata"]["name"] in config_maps
        ]
        alias = min(names, key=len, default=owner["metadata"]["name"])
        found[alias] = [*needed, *_claims_of(owner), pod]
    return dict(sorted(found.items(), key=lambda item: item[0] != "broker"))


def _pod_of(owner: Manifest) -> Manifest:
    pod: Manifest = deepcopy(owner["spec"]["template"])
    suffix = "-0" if owner["kind"] == "StatefulSet" else ""
    pod |= {"apiVersion": "v1", "kind": "Pod"}
    pod["metadata"]["name"] = owner["metadata"]["name"] + suffix
    volumes = pod["spec"].setdefault("volumes", [])
    for volume in volumes:
        if volume.get("secret", {}).get("optional"):
            del volume["secret"]
            volume["emptyDir"] = {}
    volumes.extend(
        {
            "name": claim["metadata"]["name"].removesuffix(f"-{pod['metadata']['name']}"),
            "persistentVolumeClaim": {"claimName": claim["metadata"]["name"]},
        }
        for claim in _claims_of(owner)
    )
    return pod


def _claims_of(owner: Manifest) -> list[Manifest]:
    """What the controller makes of the templates, for its first pod."""
    found = deepcopy(owner["spec"].get("volumeClaimTemplates", []))
    for claim in found:
        claim |= {"apiVersion": "v1", "kind": "PersistentVolumeClaim"}
        claim["metadata"]["name"] += f"-{owner['metadata']['name']}-0"
    return found


def _on_loopback(manifests: list[Manifest]) -> list[Manifest]:
    """podman 4.3 opens every port of a container to the network, under its own number."""
    found = deepcopy(manifests)
    for container in found[-1]["spec"]["containers"]:
        ports = container.get("ports", [])
        for port, free in zip(ports, free_ports(len(ports)), strict=True):
            port |= {"hostIP": LOOPBACK, "hostPort": free}
    return found


class Played:
    """Pods in a network of their own."""

    def __init__(self, parts: dict[str, list[Manifest]]) -> None:
        self._parts = parts
        self._network = f"rejoin-play-{secrets.token_hex(3)}"

    def up(self) -> None:
        podman("network", "create", self._network)
        for alias, manifests in self._parts.items():
            file = HOME / f"{self._network}-{alias}.yaml"
            file.write_text(yaml.safe_dump_all(_on_loopback(manifests)), encoding="utf-8")
            network = f"--network={self._network}:alias={alias}"
            podman("kube", "play", network, str(file), timeout_s=_PLAY_S)

    def down(self) -> None:
        """Also what a failure has left."""
        for manifests in self._parts.values():
            name = manifests[-1]["metadata"]["name"]
            podman("pod", "rm", "--force", "--time=0", "--ignore", name)
            for claim in (m for m in manifests if m["kind"] == "PersistentVolumeClaim"):
                podman("volume", "rm", "--force", claim["metadata"]["name"])
        podman("network", "rm", "--force", self._network)
        for file in HOME.glob(f"{self._network}-*.yaml"):
            file.unlink()

    def container(self, pod: str, name: str) -> str:
        return f"{pod}-{name}"

    def exec(self, pod: str, name: str, *command: str) -> str:
        return podman("exec", self.container(pod, name), *command)

    def kill(self, pod: str, name: str) -> None:
        """As a crash would; a container that podman itself kills stays down."""
        pid = podman("inspect", "--format={{.State.Pid}}", self.container(pod, name))
        os.kill(int(pid), signal.SIGKILL)

    def wait(self, done: Callable[[], bool], limit_s: float, what: str) -> None:
        deadline = time.monotonic() + limit_s
        while not self._is(done):
            if time.monotonic() > deadline:
                raise AssertionError(f"{what}\n{self._logs()}")
            time.sleep(2.0)

    def _is(self, done: Callable[[], bool]) -> bool:
        try:
            return done()
        except Failed:
            return False  # the container is starting

    def _logs(self) -> str:
        texts = []
        for manifests in self._parts.values():
            pod = manifests[-1]
            for container in pod["spec"]["containers"]:
                name = self.container(pod["metadata"]["name"], container["name"])
                texts.append(f"--- {name}\n{podman('logs', '--tail', '30', name)}")
        return "\n".join(texts)


@contextmanager
def played(parts: dict[str, list[Manifest]]) -> Iterator[Played]:
    made = Played(parts)
    try:
        made.up()
        yield made
    finally:
        made.down()
