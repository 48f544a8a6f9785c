"""What the stack is made of beside Debian's PostgreSQL and the broker: fetched once, by Maven.

Everything is checked against `artifacts.sha256` and then laid out under `build/e2e`: `connect`
(jars), `plugins` (Debezium, the Avro converter), `registry` (Apicurio).
"""

import hashlib
import shutil
import subprocess
import tarfile
from collections.abc import Callable
from pathlib import Path

HERE = Path(__file__).resolve().parent
HOME = HERE.parents[1] / "build" / "e2e"
SUMS = HERE / "artifacts.sha256"
POMS = (HERE / "connect.xml", HERE / "converter.xml")
CONNECT_JARS = HOME / "connect"
PLUGINS = HOME / "plugins"
REGISTRY = HOME / "registry"

_DOWNLOADS = HOME / "downloads"
_STAMP = HOME / "ready"


class ArtifactsMissing(Exception):
    """Maven cannot fetch them, or what it fetched is something else."""


def are_ready() -> bool:
    """Whether a run would download nothing."""
    return _STAMP.is_file() and _STAMP.read_text(encoding="utf-8") == _wanted()


def provide(say: Callable[[str], object]) -> None:
    """Fetch, check and unpack, unless that was done for the same sums and POMs."""
    if are_ready():
        return
    say("fetching Kafka Connect, Debezium and Apicurio (200 MB, once) ...")
    shutil.rmtree(HOME, ignore_errors=True)
    for pom in POMS:
        _maven(pom)
    _verify()
    (_DOWNLOADS / "connect").rename(CONNECT_JARS)
    PLUGINS.mkdir()
    (_DOWNLOADS / "converter").rename(PLUGINS / "apicurio-converter")
    _unpack("debezium-connector-postgres.tar.gz", PLUGINS)
    _unpack("apicurio-registry-app.tar.gz", REGISTRY)
    shutil.rmtree(_DOWNLOADS)
    _STAMP.write_text(_wanted(), encoding="utf-8")


def _wanted() -> str:
    digest = hashlib.sha256()
    for path in (SUMS, *POMS):
        digest.update(path.read_bytes())
    return digest.hexdigest()


def _maven(pom: Path) -> None:
    command = ["mvn", "--quiet", "--batch-mode", "--strict-checksums", "-f", str(pom)]
    command += [f"-Ddownloads={_DOWNLOADS}", "generate-resources"]
    try:
        done = subprocess.run(
            command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
    except FileNotFoundError as cause:
        raise ArtifactsMissing("there is no mvn: install Maven") from cause
    if done.returncode != 0:
        raise ArtifactsMissing(f"Maven failed on {pom.name}:\n{done.stdout}{done.stderr}")


def _verify() -> None:
    """Exactly the listed files, each with its checksum."""
    listed = {}
    for line in SUMS.read_text(encoding="utf-8").splitlines():
        digest, path = line.split()
        listed[path] = digest
    found = {
        str(path.relative_to(_DOWNLOADS)): _digest(path)
        for path in _DOWNLOADS.rglob("*")
        if path.is_file()
    }
    for path in sorted(listed.keys() | found.keys()):
        if found.get(path) != listed.get(path):
            raise ArtifactsMissing(
                f"{path}: checksum {found.get(path, 'of no file')}, but {SUMS.name} says "
                f"{listed.get(path, 'nothing about it')}"
            )


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _unpack(name: str, folder: Path) -> None:
    folder.mkdir(exist_ok=True)
    with tarfile.open(_DOWNLOADS / "archives" / name) as archive:
        archive.extractall(folder, filter="data")
