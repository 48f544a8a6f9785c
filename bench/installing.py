"""Steps that install a peer when it is needed, and their errors."""

import subprocess
from pathlib import Path

from spark_jobs.errors import ConfigError

_TIMEOUT_S = 900.0


def copy_jars(pom: Path, folder: Path) -> None:
    """Fetch the jars of a POM into the folder, unless the folder has those of this very POM."""
    marker = folder / "pom.xml"
    if marker.exists() and marker.read_bytes() == pom.read_bytes():
        return
    # -C: fail if a checksum is wrong
    copy = ["mvn", "-q", "-B", "-C", "-f", str(pom), "dependency:copy-dependencies"]
    run_step(f"fetch the jars of {pom}", [*copy, f"-DoutputDirectory={folder}"])
    marker.write_bytes(pom.read_bytes())


def run_step(what: str, command: list[str]) -> None:
    """Run a command to its end; raises ConfigError if it fails."""
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
        raise ConfigError("PEER_SETUP_FAILED", f"cannot {what}: {cause}") from cause
    if done.returncode != 0:
        tail = "\n".join((done.stdout + done.stderr).splitlines()[-15:])
        raise ConfigError("PEER_SETUP_FAILED", f"cannot {what}:\n{tail}")
