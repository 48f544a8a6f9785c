"""Installs Flink SQL when it is needed: the PyPI package in a venv, connectors from Maven."""

import sys
from pathlib import Path

from bench.installing import copy_jars, run_step

VERSION = "2.3.0"
_ROOT = Path(__file__).resolve().parents[2]
_POM = Path(__file__).with_name("pom.xml")
VENV = _ROOT / "build" / "flink-venv"
JARS = _ROOT / "build" / "jars" / "flink"
PYTHON = VENV / "bin" / "python"


def install() -> None:
    """Install both if they are missing; takes a minute and 700 MB the first time."""
    marker = VENV / f"apache-flink-{VERSION}"
    if not marker.exists():
        run_step(f"create {VENV}", [sys.executable, "-I", "-m", "venv", str(VENV)])
        pip = [str(PYTHON), "-I", "-m", "pip", "install"]
        run_step("install Flink", [*pip, f"apache-flink=={VERSION}"])
        marker.touch()
    copy_jars(_POM, JARS)
