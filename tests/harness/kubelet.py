"""Runs the containers of pods as processes of this machine, each at a loopback address of its own.

There are no images: a program is this machine's, and what a container's image sets in the
environment is given. Of a pod's volumes only folders of its own are made; a value of the
environment, or the working directory, that names the path of such a mount names the folder instead.
"""

import os
import shutil
import signal
import sys
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from spark_jobs.embedded.process import Child
from tests.harness.kube_api import Pods
from tests.harness.manifests import ROOT, Manifest

_INIT = ["tini", "--"]
_PROGRAMS = {"python": sys.executable}
_FIRST_ADDRESS = 2  # 127.0.0.1 is the driver's


class Kubelet:
    """Starts what is created and ends what is deleted, until it is closed."""

    def __init__(self, pods: Pods, folder: Path, image: Mapping[str, str]) -> None:
        self.running: dict[str, Child] = {}
        self._pods = pods
        self._folder = folder
        self._image = image
        self._addresses = iter(range(_FIRST_ADDRESS, 255))
        self._is_closed = False
        _, self._seen = pods.select(lambda _: True)
        self._thread = threading.Thread(target=self._follow, name="kubelet", daemon=True)
        self._thread.start()

    def kill(self, name: str) -> None:
        """The machine's out-of-memory killer, say."""
        os.kill(self.running[name].pid, signal.SIGKILL)

    def log_tail(self) -> str:
        """Of every pod that there has been."""
        logs = sorted(self._folder.glob("*/log"))
        texts = [log.read_text(encoding="utf-8", errors="replace")[-4000:] for log in logs]
        return "\n".join(
            f"--- {log.parent.name}\n{text}" for log, text in zip(logs, texts, strict=True)
        )

    def close(self) -> None:
        self._is_closed = True
        self._thread.join()
        for child in list(self.running.values()):
            child.stop(10.0)

    def _follow(self) -> None:
        while not self._is_closed:
            for version, kind, pod in self._pods.events(self._seen, 0.2):
                self._seen = version
                name = pod["metadata"]["name"]
                if kind == "ADDED":
                    self._start(pod)
                elif "deletionTimestamp" in pod["metadata"] and kind == "MODIFIED":
                    self._end(name, float(pod["spec"].get("terminationGracePeriodSeconds", 30)))

    def _start(self, pod: Manifest) -> None:
        name = pod["metadata"]["name"]
        address = f"127.0.0.{next(self._addresses)}"
        own = self._folder / name
        own.mkdir()
        [container] = pod["spec"]["containers"]
        variables = {**self._image, **_environment(container, name, address)}
        place = container.get("workingDir", str(own))
        for mount in container["volumeMounts"]:
            if "emptyDir" in _volume(pod, mount["name"]):
                (own / mount["name"]).mkdir()
                path, folder = mount["mountPath"], str(own / mount["name"])
                variables = {n: folder if v == path else v for n, v in variables.items()}
                place = folder if place == path else place
        words = [*container["command"], *container.get("args", ())]
        words = words[len(_INIT) :] if words[: len(_INIT)] == _INIT else words
        command = [_PROGRAMS.get(words[0], words[0]), *words[1:]]
        given = [f"{n}={v}" for n, v in variables.items()]
        child = Child(["/usr/bin/env", "-i", f"--chdir={place}", *given, *command], own / "log")
        self.running[name] = child
        state = {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}}
        self._pods.set_status(
            name, {"phase": "Running", "podIP": address, **_container_state(container, state)}
        )
        threading.Thread(target=self._await, args=(name, container, child), daemon=True).start()

    def _await(self, name: str, container: Manifest, child: Child) -> None:
        """Report how the process ended."""
        while not child.wait(60.0):
            pass
        del self.running[name]
        code = child.exit_code or 0
        told = code if code >= 0 else 128 - code  # as a container's, if a signal ended it
        state = {"terminated": {"exitCode": told, "reason": "Error" if told else "Completed"}}
        phase = "Failed" if told else "Succeeded"
        self._pods.set_status(name, {"phase": phase, **_container_state(container, state)})

    def _end(self, name: str, grace_s: float) -> None:
        child = self.running.get(name)
        if child is None:
            self._pods.remove(name)
        else:
            threading.Thread(target=child.stop, args=(grace_s,), daemon=True).start()


@contextmanager
def kubelet(pods: Pods, folder: Path, image: Mapping[str, str]) -> Iterator[Kubelet]:
    running = Kubelet(pods, folder, image)
    try:
        yield running
    finally:
        running.close()


def image_variables() -> dict[str, str]:
    """What an image would set, as far as programs of this machine need it."""
    java = shutil.which("java")
    assert java is not None, "no Java on the PATH"
    folders = [str(Path(java).parent), "/usr/bin", "/bin"]
    packages = {"PYTHONPATH": str(ROOT), "PYTHONDONTWRITEBYTECODE": "1"}
    return {"PATH": ":".join(folders), **packages}


def _environment(container: Manifest, name: str, address: str) -> dict[str, str]:
    fields = {"metadata.name": name, "status.podIP": address}
    return {
        v["name"]: fields[v["valueFrom"]["fieldRef"]["fieldPath"]]
        if "valueFrom" in v
        else v.get("value", "")
        for v in container["env"]
    }


def _volume(pod: Manifest, name: str) -> Manifest:
    [found] = [v for v in pod["spec"]["volumes"] if v["name"] == name]
    assert isinstance(found, dict)
    return found


def _container_state(container: Manifest, state: Mapping[str, Any]) -> dict[str, Any]:
    return {
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": "running" in state,
                "restartCount": 0,
                "state": state,
            }
        ]
    }
