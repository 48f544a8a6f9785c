"""Installs Flink SQL when it is needed: the PyPI package in a venv, connectors from Maven."""

import subprocess
import sys
from pathlib import Path

from spark_jobs.errors import ConfigError

VERSION = "2.3.0"
_ROOT = Path(__file__).resolve().parents[2]
_POM = Path(__file__).with_name("pom.xml")
VENV = _ROOT / "build" / "flink-venv"
JARS = _ROOT / "build" / "jars" / "flink"
PYTHON = VENV / "bin" / "python"
_TIMEOUT_S = 900.0


def install() -> None:
    """Install both if they are missing; takes a minute and 700 MB the first time."""
    marker = VENV / f"apache-flink-{VERSION}"
    if not marker.exists():
        _run(f"create {VENV}", [sys.executable, "-I", "-m", "venv", str(VENV)])
        pip = [str(PYTHON), "-I", "-m", "pip", "install"]
        _run("install Flink", [*pip, f"apache-flink=={VERSION}"])
        marker.touch()
    if len(list(JARS.glob("*.jar"))) < 2:
        # -C: fail if a checksum is wrong
        copy = ["dependency:copy-dependencies", f"-DoutputDirectory={JARS}"]
        _run("fetch Flink's connectors", ["mvn", "-q", "-B", "-C", "-f", str(_POM), *copy])


def _run(what: str, command: list[str]) -> None:
    try:
        done = subprocess.run(
            command,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=_TIMEOUT_S,
            check=False,
        )
    except (FileNotFoundError, subprocess.TimeoutExpired) as cause:
        raise ConfigError("FLINK_SETUP_FAILED", f"cannot {what}: {cause}") from cause
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise ConfigError("FLINK_SETUP_FAILED", f"cannot {what}:\n{tail}")
