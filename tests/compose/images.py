"""Assembles stand-ins for the images that docker-compose.yml names, and builds the Dockerfile.

No image registry is asked for anything: Debian's packages, Maven and pip give all that is needed.
What a build needs to reach them (certificates, settings of apt, pip and Maven) is mounted and stays
out of the images.
"""

import shutil
import sys
from pathlib import Path

from tests.compose import parts
from tests.compose.podman import HOME, ROOT, Failed, execute, podman

REJOIN = "localhost/rejoin:local"
PYTHON = "docker.io/library/python:3.11.14-slim-bookworm"
STAND_INS = {
    "kafka": "docker.io/apache/kafka:4.3.1",
    "postgres": "docker.io/library/postgres:17.6",
    "registry": "docker.io/apicurio/apicurio-registry:3.3.3",
    "connect": "quay.io/debezium/connect:3.6",
    "curl": "docker.io/curlimages/curl:8.16.0",
    "prometheus": "docker.io/prom/prometheus:v3.7.3",
}
_BOOKWORM = "rejoin-stand-ins/bookworm"
_DEBIAN = "rejoin-stand-ins/debian"
_FILES = Path(__file__).resolve().parent / "images"
_CLIENT = HOME / "client"
_BUNDLE = Path("/etc/ssl/certs/ca-certificates.crt")
_JAVA_BUNDLE = Path("/etc/ssl/certs/java/cacerts")
_BUILD_S = 1200


def provide_bases() -> None:
    """The images that the Dockerfile and the stand-ins begin with."""
    if not _exists(_BOOKWORM):
        _bootstrap()
    _build(PYTHON, _FILES / "python.containerfile", _FILES)


def provide_stand_ins() -> None:
    """All images that docker-compose.yml names, but the Dockerfile's and Grafana's."""
    parts.provide()
    _build(_DEBIAN, _FILES / "debian.containerfile", _FILES)
    scripts = f"--build-context=scripts={_FILES}"
    for target, name in STAND_INS.items():
        file = _FILES / "stand_ins.containerfile"
        _build(name, file, ROOT / "build", scripts, f"--target={target}")


def build_rejoin() -> None:
    """The Dockerfile, as it is."""
    _build(REJOIN, ROOT / "Dockerfile", ROOT)


def size_mb(name: str) -> int:
    return int(podman("image", "inspect", "--format", "{{.Size}}", name)) // 1_000_000


def _exists(name: str) -> bool:
    try:
        podman("image", "exists", name)
    except Failed:
        return False
    return True


def _bootstrap() -> None:
    """Debian 12 and nothing else."""
    folder = HOME / "bookworm"
    shutil.rmtree(folder, ignore_errors=True)
    execute(["debootstrap", "--variant=minbase", "bookworm", str(folder)], _BUILD_S)
    archive = HOME / "bookworm.tar"
    execute(["tar", "-C", str(folder), "-c", "-f", str(archive), "."], _BUILD_S)
    podman("import", str(archive), _BOOKWORM, timeout_s=_BUILD_S)
    archive.unlink()
    shutil.rmtree(folder)


def _build(name: str, file: Path, context: Path, *options: str) -> None:
    # the format keeps SHELL and HEALTHCHECK; layers make the next build a short one
    command = ["buildah", "bud", "--format=docker", "--layers", "--pull-never", "--network=host"]
    command += [f"--volume={source}:{target}" for source, target in _client_files()]
    command += [*options, f"--tag={name}", f"--file={file}", str(context)]
    execute(command, _BUILD_S)


def _client_files() -> list[tuple[Path, str]]:
    """This machine's way to Debian, PyPI and Maven, beside the paths that packages write to."""
    _CLIENT.mkdir(parents=True, exist_ok=True)
    files = [(_write("apt.conf", _apt_settings()), "/etc/apt/apt.conf:ro")]
    pip = "[global]\n"
    maven = ""
    if _BUNDLE.exists():
        files.append((_BUNDLE, "/mnt/client/ca.crt:ro"))
        pip += "cert = /mnt/client/ca.crt\n"
    if _JAVA_BUNDLE.exists():
        files.append((_JAVA_BUNDLE, "/mnt/client/cacerts:ro"))
        maven = 'MAVEN_OPTS="-Djavax.net.ssl.trustStore=/mnt/client/cacerts"\n'
    pip += _pip_indexes()
    files.append((_write("pip.conf", pip), "/etc/pip.conf:ro"))
    files.append((_write("mavenrc", maven), "/etc/mavenrc:ro"))
    home = Path.home() / ".m2"
    if (home / "settings.xml").exists():
        files.append((home / "settings.xml", "/root/.m2/settings.xml:ro"))
    if (home / "repository").exists():
        files.append((home / "repository", "/root/.m2/repository"))
    return files


def _apt_settings() -> str:
    wanted = ("Acquire::Check-", "Acquire::http", "Acquire::https")
    found = execute(["apt-config", "dump"]).splitlines()
    return "".join(f"{line}\n" for line in found if line.startswith(wanted))


def _pip_indexes() -> str:
    """`:env:.index-url='...'` and the like, as a settings file has them."""
    found = ""
    for line in execute([sys.executable, "-m", "pip", "config", "list"]).splitlines():
        name, _, value = line.partition("=")
        setting = name.rpartition(".")[2]
        if setting in ("index-url", "extra-index-url"):
            found += f"{setting} = {value.strip(chr(39))}\n"
    return found


def _write(name: str, text: str) -> Path:
    path = _CLIENT / name
    path.write_text(text, encoding="utf-8")
    return path
