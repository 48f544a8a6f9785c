"""Podman with settings and a store of its own, below build/compose.

Nothing of a user's containers and images is seen or touched, and `make clean` removes all.
"""

import os
import shutil
import subprocess
from functools import cache
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
HOME = ROOT / "build" / "compose"
# program -> Debian's package
PROGRAMS = {
    "podman": "podman",
    "buildah": "buildah",
    "runc": "runc",
    "debootstrap": "debootstrap",
    "iptables": "iptables",
    "catatonit": "catatonit",
}
_HELPERS = ("netavark", "aardvark-dns")
_HELPER_FOLDERS = ("/usr/lib/podman", "/usr/libexec/podman", "/usr/local/lib/podman")
# the engine's own defaults raise a limit that may not be raised in a container or a small machine
_CONTAINERS_CONF = """\
[containers]
default_ulimits = ["nofile=20000:20000", "nproc=2000:2000"]
[engine]
runtime = "runc"
cgroup_manager = "cgroupfs"
events_logger = "file"
[network]
network_backend = "netavark"
"""
_STORAGE_CONF = """\
[storage]
driver = "overlay"
graphroot = "{home}/storage"
runroot = "{home}/run"
"""


class Failed(RuntimeError):
    """A command, its exit code and what it printed."""


def obstacle() -> str | None:
    """Why containers cannot be run on this machine; None if they can."""
    missing = _missing_program()
    if missing is not None:
        return missing
    if os.geteuid() != 0:
        return "containers cannot be run here: their network needs root"
    try:
        execute(["unshare", "--mount", "--net", "--pid", "--fork", "true"])
        podman("info")
    except Failed as problem:
        return f"containers cannot be run here: {' '.join(str(problem).split())}"
    return None


def _missing_program() -> str | None:
    """The first program that containers need and that is not there."""
    for program, package in PROGRAMS.items():
        if shutil.which(program) is None and shutil.which(program, path="/usr/sbin:/sbin") is None:
            return f"{program} is not installed (Debian: {package})"
    for helper in _HELPERS:
        if not any((Path(folder) / helper).exists() for folder in _HELPER_FOLDERS):
            return f"{helper} is not installed (Debian: {helper})"
    return None


@cache
def _settings() -> list[str]:
    """The variables of every command; writes the files that they name, before any is read."""
    HOME.mkdir(parents=True, exist_ok=True)
    settings = HOME / "containers.conf"
    settings.write_text(_CONTAINERS_CONF, encoding="utf-8")
    storage = HOME / "storage.conf"
    storage.write_text(_STORAGE_CONF.format(home=HOME), encoding="utf-8")
    return [
        f"CONTAINERS_CONF={settings}",
        f"CONTAINERS_STORAGE_CONF={storage}",
        "BUILDAH_ISOLATION=chroot",
    ]


def execute(
    command: list[str], timeout_s: float = 120, variables: dict[str, str] | None = None
) -> str:
    """What the command printed on its output; raises Failed."""
    given = [f"{name}={value}" for name, value in (variables or {}).items()]
    done = subprocess.run(
        ["/usr/bin/env", *_settings(), *given, *command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=timeout_s,
        check=False,
    )
    if done.returncode != 0:
        told = f"{done.stdout[-3000:]}{done.stderr[-3000:]}"
        raise Failed(f"{' '.join(command)[:300]} ended with {done.returncode}:\n{told}")
    return done.stdout


def podman(*arguments: str, timeout_s: float = 120) -> str:
    return execute(["podman", *arguments], timeout_s)
