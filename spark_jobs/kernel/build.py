"""Compiles the Scala kernel with the compiler in the PySpark wheel, against the jars it runs with.

`python -m spark_jobs.kernel.build`; does nothing when neither a source nor a jar has changed.
"""

import fcntl
import hashlib
import importlib.util
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
import zipfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from spark_jobs.errors import ConfigError

SOURCES = Path(__file__).resolve().parent
ROOT = SOURCES.parent.parent
CONNECTOR_JARS = ROOT / "build" / "jars" / "connector"
OUTPUT = ROOT / "build" / "kernel"
JAR = OUTPUT / "rejoin-kernel.jar"
MANIFEST = OUTPUT / "manifest.json"
FLAGS = ["-deprecation", "-feature", "-Xlint", "-Wunused", "-Werror", "-release", "17"]


def kernel_jar() -> Path:
    """The jar of the kernel as its sources are, compiled if need be.

    A fresh one needs no lock: an image that holds it may be read-only.
    """
    manifest = _manifest()
    if not _is_fresh(manifest):
        with _locked():
            if not _is_fresh(manifest):
                _compile(manifest)
    return JAR


def spark_jars() -> list[Path]:
    """The jars of the installed PySpark, the Scala compiler among them."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ConfigError("PYSPARK_MISSING", "pyspark is not installed", "make setup")
    return _jars(Path(found.origin).parent / "jars")


def connector_jars() -> list[Path]:
    """The Kafka connector and what it needs, fetched by `make setup`."""
    return _jars(CONNECTOR_JARS)


def java() -> str:
    """JAVA_HOME's java, as Spark's launcher would take it, else the one on the PATH."""
    at_home = Path(os.path.expandvars("$JAVA_HOME")) / "bin" / "java"
    found = str(at_home) if at_home.is_file() else shutil.which("java")
    if found is None:
        raise ConfigError("JAVA_MISSING", "there is no java", "install Java 17 or newer")
    return found


def main() -> int:
    try:
        kernel_jar()
    except ConfigError as error:
        sys.stderr.write(error.render() + "\n")
        return error.exit_code
    return 0


def _jars(folder: Path) -> list[Path]:
    found = sorted(folder.glob("*.jar"))
    if not found:
        raise ConfigError("JARS_MISSING", f"no jars in {folder}", "make setup")
    return found


def _sources() -> list[Path]:
    return sorted(SOURCES.rglob("*.scala"))


def _manifest() -> dict[str, str]:
    """What decides the jar's content: the sources, the jars they are compiled against, flags."""
    content = {
        p.relative_to(SOURCES).as_posix(): hashlib.sha256(p.read_bytes()).hexdigest()
        for p in _sources()
    }
    jars = " ".join(p.name for p in [*spark_jars(), *connector_jars()])
    return content | {"jars": jars, "flags": " ".join(FLAGS)}


def _is_fresh(manifest: dict[str, str]) -> bool:
    if not JAR.is_file() or not MANIFEST.is_file():
        return False
    recorded: object = json.loads(MANIFEST.read_text(encoding="utf-8"))
    return recorded == manifest


def _compile(manifest: dict[str, str]) -> None:
    sources = _sources()
    sys.stderr.write(f"kernel: compiling {len(sources)} Scala files ...\n")
    started = time.monotonic()
    with tempfile.TemporaryDirectory(dir=OUTPUT) as folder:
        classes = Path(folder) / "classes"
        classes.mkdir()
        _run_compiler(sources, classes)
        packed = Path(folder) / JAR.name
        _package(classes, packed)
        # the old manifest goes first: after a crash in between no stale jar looks fresh
        MANIFEST.unlink(missing_ok=True)
        packed.replace(JAR)
        MANIFEST.write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
    sys.stderr.write(f"kernel: ready in {time.monotonic() - started:.0f} s\n")


def _run_compiler(sources: list[Path], classes: Path) -> None:
    jars = spark_jars()
    parts = ("scala-", "jline", "jna")
    compiler = os.pathsep.join(str(p) for p in jars if p.name.startswith(parts))
    classpath = os.pathsep.join(str(p) for p in [*jars, *connector_jars()])
    command = [java(), "-Xss8m", "-cp", compiler, "scala.tools.nsc.Main", *FLAGS]
    command += ["-d", str(classes), "-classpath", classpath, *(str(p) for p in sources)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        told = (done.stdout + done.stderr).strip()
        raise ConfigError("KERNEL_BROKEN", f"the kernel does not compile\n{told}")


def _package(classes: Path, jar: Path) -> None:
    """The same classes give the same bytes: names in order, one fixed date."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(p for p in classes.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(classes).as_posix(), (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


@contextmanager
def _locked() -> Iterator[None]:
    """One build at a time: tests, the demo and `make` may all ask for the kernel at once."""
    OUTPUT.mkdir(parents=True, exist_ok=True)
    with (OUTPUT / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


if __name__ == "__main__":
    sys.exit(main())
