"""Compiles the Scala kernel with the compiler in the PySpark wheel, against the jars it runs with.

`core` is compiled first and alone, without Spark SQL, Kafka and Hadoop on its class path: a state
machine that reached for them would not compile.

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
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from spark_jobs.errors import ConfigError

SOURCES = Path(__file__).resolve().parent
ROOT = SOURCES.parent.parent
CONNECTOR_JARS = ROOT / "build" / "jars" / "connector"
STORE_JARS = ROOT / "build" / "jars" / "store"
JDBC_JARS = ROOT / "build" / "jars" / "jdbc"
OUTPUT = ROOT / "build" / "kernel"
JAR = OUTPUT / "rejoin-kernel.jar"
# all that `core` may use: Scala's library, and access to bytes, hashing and LZ4
CORE_JARS = ("scala-library", "spark-unsafe", "spark-common-utils", "lz4-java")
FLAGS = ["-deprecation", "-feature", "-Xlint", "-Wunused", "-Werror", "-release", "17"]


@dataclass(frozen=True, slots=True)
class Unit:
    """Sources that are compiled together, after and on top of the units before."""

    sources: Sequence[Path]
    jars: Sequence[Path]


def kernel_jar() -> Path:
    """The jar of the kernel as its sources are, compiled if need be."""
    core = sorted((SOURCES / "core").rglob("*.scala"))
    others = sorted({*SOURCES.rglob("*.scala")} - {*core})
    return compiled(
        JAR, [Unit(core, core_jars()), Unit(others, [*spark_jars(), *connector_jars()])]
    )


def compiled(jar: Path, units: Sequence[Unit]) -> Path:
    """The jar with the classes of the units, compiled anew if a source or a jar has changed.

    A fresh one needs no lock: an image that holds it may be read-only. Raises ConfigError if a unit
    does not compile.
    """
    manifest = _manifest(units)
    if not _is_fresh(jar, manifest):
        OUTPUT.mkdir(parents=True, exist_ok=True)
        with (OUTPUT / ".lock").open("w") as lock:
            # one build at a time: tests, the demo and `make` may all ask for the kernel at once
            fcntl.flock(lock, fcntl.LOCK_EX)
            if not _is_fresh(jar, manifest):
                _compile(jar, units, manifest)
    return jar


def spark_jars() -> list[Path]:
    """The jars of the installed PySpark, the Scala compiler among them."""
    found = importlib.util.find_spec("pyspark")
    if found is None or found.origin is None:
        raise ConfigError("PYSPARK_MISSING", "pyspark is not installed", "make setup")
    return _jars(Path(found.origin).parent / "jars")


def core_jars() -> list[Path]:
    """The only jars that `core` is compiled against."""
    return [path for path in spark_jars() if path.name.startswith(CORE_JARS)]


def connector_jars() -> list[Path]:
    """The Kafka connector and what it needs, fetched by `make setup`."""
    return _jars(CONNECTOR_JARS)


def store_jars() -> list[Path]:
    """The S3 connector and what it needs, fetched by `make setup`."""
    return _jars(STORE_JARS)


def jdbc_jars() -> list[Path]:
    """The drivers of databases that rows are looked up in, fetched by `make setup`."""
    return _jars(JDBC_JARS)


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


def _manifest(units: Sequence[Unit]) -> dict[str, str]:
    """What decides the jar's content: the sources, the jars they are compiled against, flags."""
    content = {"flags": " ".join(FLAGS)}
    for number, unit in enumerate(units):
        content[f"jars {number}"] = " ".join(_identity(path) for path in unit.jars)
        for path in unit.sources:
            name = os.path.relpath(path, ROOT)
            content[name] = hashlib.sha256(path.read_bytes()).hexdigest()
    return content


def _identity(jar: Path) -> str:
    """A release has its version in its name; a jar that is compiled here is what it was made of."""
    made_of = jar.with_suffix(".json")
    if not made_of.is_file():
        return jar.name
    return f"{jar.name}:{hashlib.sha256(made_of.read_bytes()).hexdigest()}"


def _is_fresh(jar: Path, manifest: dict[str, str]) -> bool:
    recorded = jar.with_suffix(".json")
    if not jar.is_file() or not recorded.is_file():
        return False
    return bool(json.loads(recorded.read_text(encoding="utf-8")) == manifest)


def _compile(jar: Path, units: Sequence[Unit], manifest: dict[str, str]) -> None:
    count = sum(len(unit.sources) for unit in units)
    sys.stderr.write(f"kernel: compiling {count} Scala files ...\n")
    started = time.monotonic()
    recorded = jar.with_suffix(".json")
    with tempfile.TemporaryDirectory(dir=OUTPUT) as folder:
        classes = Path(folder) / "classes"
        classes.mkdir()
        for unit in units:
            _run_compiler(unit, classes)
        packed = Path(folder) / jar.name
        _package(classes, packed)
        # the old manifest goes first: after a crash in between no stale jar looks fresh
        recorded.unlink(missing_ok=True)
        packed.replace(jar)
        recorded.write_text(json.dumps(manifest, indent=1, sort_keys=True), encoding="utf-8")
    sys.stderr.write(f"kernel: ready in {time.monotonic() - started:.0f} s\n")


def _run_compiler(unit: Unit, classes: Path) -> None:
    parts = ("scala-", "jline", "jna")
    compiler = os.pathsep.join(str(p) for p in spark_jars() if p.name.startswith(parts))
    classpath = os.pathsep.join(str(p) for p in [classes, *unit.jars])
    command = [java(), "-Xss8m", "-cp", compiler, "scala.tools.nsc.Main", *FLAGS]
    command += ["-d", str(classes), "-classpath", classpath, *(str(p) for p in unit.sources)]
    done = subprocess.run(
        command, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        printed = (done.stdout + done.stderr).strip()
        raise ConfigError("KERNEL_BROKEN", f"the kernel does not compile\n{printed}")


def _package(classes: Path, jar: Path) -> None:
    """The same classes give the same bytes: names in order, one fixed date."""
    with zipfile.ZipFile(jar, "w", zipfile.ZIP_DEFLATED) as archive:
        for path in sorted(p for p in classes.rglob("*") if p.is_file()):
            entry = zipfile.ZipInfo(path.relative_to(classes).as_posix(), (2020, 1, 1, 0, 0, 0))
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, path.read_bytes())


if __name__ == "__main__":
    sys.exit(main())
