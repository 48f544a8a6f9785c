"""Kubernetes manifests as a cluster gets them, and the schemas that they have to fit."""

import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parents[2]
DEPLOY = ROOT / "deploy"
TOOLS = Path(sys.executable).parent
KUBERNETES = "1.34"

Manifest = dict[str, Any]


def passes(*command: str | Path, cwd: Path = ROOT) -> None:
    done = subprocess.run(
        [str(part) for part in command],
        cwd=cwd, capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr


def documents(path: Path) -> Iterator[Manifest]:
    for document in yaml.safe_load_all(path.read_text(encoding="utf-8")):
        assert isinstance(document, dict)
        yield document


def built(overlay: str) -> list[Manifest]:
    """What an overlay gives to a cluster."""
    tools = (("kustomize", "build"), ("kubectl", "kustomize"))
    found = [(path, verb) for name, verb in tools if (path := shutil.which(name))]
    if not found:
        pytest.skip("neither kustomize nor kubectl is here")
    done = subprocess.run(
        [*found[0], str(DEPLOY / "k8s/overlays" / overlay)],
        capture_output=True, text=True, timeout=120, check=False,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return list(yaml.safe_load_all(done.stdout))


def one(manifests: Iterable[Manifest], kind: str, name: str) -> Manifest:
    """The manifest of this kind and name; generated names begin with it."""
    [found] = [
        m
        for m in manifests
        if m["kind"] == kind and (m["metadata"]["name"] + "-").startswith(f"{name}-")
    ]
    return found


def fits_schema(manifests: Iterable[Manifest], folder: Path) -> None:
    file = folder / "manifests.yaml"
    file.write_text(yaml.safe_dump_all(manifests), encoding="utf-8")
    passes(TOOLS / "kubernetes-validate", "--strict", "-k", KUBERNETES, file)


def breaches(pod: Manifest) -> list[str]:
    """What the pod security standard `restricted`, which the namespace enforces, has against it."""
    spec = pod["spec"]
    found = [f"volume {v['name']}" for v in spec.get("volumes", ()) if not _is_allowed(v)]
    found += [word for word in ("hostNetwork", "hostPID", "hostIPC") if spec.get(word)]
    whole = spec.get("securityContext", {})
    for container in (*spec["containers"], *spec.get("initContainers", ())):
        own = container.get("securityContext", {})
        wanted = {
            "runAsNonRoot": (own | whole).get("runAsNonRoot") is True,
            "runAsUser": (whole | own).get("runAsUser") != 0,
            "seccompProfile": (whole | own).get("seccompProfile") == {"type": "RuntimeDefault"},
            "allowPrivilegeEscalation": own.get("allowPrivilegeEscalation") is False,
            "capabilities": own.get("capabilities", {}).get("drop") == ["ALL"],
            "privileged": not own.get("privileged"),
            "hostPort": not any("hostPort" in port for port in container.get("ports", ())),
        }
        found += [f"{container['name']}: {name}" for name, is_kept in wanted.items() if not is_kept]
    return found


def _is_allowed(volume: Manifest) -> bool:
    kinds = {"configMap", "csi", "downwardAPI", "emptyDir", "ephemeral", "persistentVolumeClaim"}
    return bool((kinds | {"projected", "secret"}) & volume.keys())
