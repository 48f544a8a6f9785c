"""`make setup`: makes a fresh clone runnable; does only what has not been done yet.

Runs on the system's Python, so it uses only the standard library. Its syntax is one that an old
Python can parse, so that it can report that Python is too old.
"""

from __future__ import annotations

import hashlib
import os
import re
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
JARS = ROOT / "build" / "jars"
JAR_SETS = ("broker", "connector", "jdbc", "store")
STAMPS = ROOT / "build" / "setup"
CLASSES = ROOT / "build" / "kernel" / "classes.jsa"
MIN_PYTHON = (3, 11)
MIN_JAVA = 17


def main() -> int:
    missing = missing_programs()
    if missing:
        return fail(f"rejoin needs {' and '.join(missing)}; {how_to_install(missing)}")
    try:
        step("python packages", python_inputs(), install_python)
        step("jars", ["pom.xml", "jars.sha256"], fetch_jars)
        build_kernel()
        keep_classes()
    except subprocess.CalledProcessError as failure:
        command = " ".join(str(part) for part in failure.cmd)
        return fail(f"setup failed (exit code {failure.returncode}): {command}")
    except ValueError as problem:
        return fail(f"setup failed: {problem}")
    return 0


def missing_programs() -> list[str]:
    missing = []
    if sys.version_info < MIN_PYTHON:
        found = ".".join(str(n) for n in sys.version_info[:2])
        missing.append(f"Python 3.11 or newer (this is {found}; make PYTHON=... chooses another)")
    elif not has_module("ensurepip"):
        missing.append("Python's venv module")
    java = java_version()
    if java is None or java < MIN_JAVA:
        missing.append("Java 17 or newer" + (f" (found {java})" if java else ""))
    if shutil.which("mvn") is None:
        missing.append("Maven")
    return missing


def how_to_install(missing: list[str]) -> str:
    packages = {
        "Python 3": "python3",
        "Python's": "python3-venv",
        "Java": "openjdk-17-jdk-headless",
        "Maven": "maven",
    }
    wanted = [p for prefix, p in packages.items() if any(m.startswith(prefix) for m in missing)]
    return f"on Debian or Ubuntu: apt-get install {' '.join(wanted)}"


def has_module(name: str) -> bool:
    try:
        __import__(name)
    except ImportError:
        return False
    return True


def java_version() -> int | None:
    """Major version of the Java that Maven and Spark use, from JAVA_HOME or else from the PATH."""
    at_home = Path(os.path.expandvars("$JAVA_HOME")) / "bin" / "java"
    java = str(at_home) if at_home.is_file() else shutil.which("java")
    if java is None:
        return None
    output = subprocess.run([java, "-version"], capture_output=True, text=True, check=False).stderr
    found = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(found.group(1)) if found else None


def python_inputs() -> list[str]:
    return ["requirements-build.txt", "requirements-dev.txt", "pyproject.toml"]


def step(name: str, inputs: list[str], work: Callable[[], None]) -> None:
    """Do the work unless it was done for the same inputs; after a failure it is done again."""
    stamp = STAMPS / name.replace(" ", "-")
    state = hashlib.sha256(sys.version.encode())
    for path in inputs:
        state.update((ROOT / path).read_bytes())
    if stamp.exists() and stamp.read_text() == state.hexdigest() and is_there(name):
        return
    stamp.unlink(missing_ok=True)
    say(f"setup: {name} ...")
    started = time.monotonic()
    work()
    STAMPS.mkdir(parents=True, exist_ok=True)
    stamp.write_text(state.hexdigest())
    say(f"setup: {name} ready in {time.monotonic() - started:.0f} s")


def is_there(name: str) -> bool:
    if name == "jars":
        return all((JARS / s).is_dir() for s in JAR_SETS)
    return (VENV / "bin" / "rejoin").exists()


def install_python() -> None:
    if not venv_is_of_this_python():
        run([sys.executable, "-m", "venv", "--clear", VENV])
    pip = [venv_python(), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    # install the locked setuptools first, so that no build downloads another one
    run([*pip, "--require-hashes", "-r", ROOT / "requirements-build.txt"])
    run([*pip, "--require-hashes", "--no-build-isolation", "-r", ROOT / "requirements-dev.txt"])
    run([*pip, "--no-build-isolation", "--no-deps", "--editable", ROOT])


def venv_is_of_this_python() -> bool:
    """Whether the venv is complete and of this Python; False after an interrupted setup."""
    about = VENV / "pyvenv.cfg"
    version = "version = " + ".".join(str(n) for n in sys.version_info[:3])
    complete = (VENV / "bin" / "pip").exists() and about.exists()
    return complete and version in about.read_text().splitlines()


def fetch_jars() -> None:
    for name in JAR_SETS:
        shutil.rmtree(JARS / name, ignore_errors=True)
    run(["mvn", "--quiet", "--batch-mode", "--strict-checksums", "generate-resources"])
    verify_jars()


def verify_jars() -> None:
    """Raises ValueError unless the jars are those in jars.sha256, with the same checksums."""
    listed = {}
    for line in (ROOT / "jars.sha256").read_text().splitlines():
        digest, path = line.split()
        listed[path] = digest
    found = {}
    for name in JAR_SETS:
        for jar in (JARS / name).glob("*.jar"):
            found[f"{name}/{jar.name}"] = hashlib.sha256(jar.read_bytes()).hexdigest()
    for path in sorted(listed.keys() | found.keys()):
        if found.get(path) != listed.get(path):
            for name in JAR_SETS:
                shutil.rmtree(JARS / name, ignore_errors=True)
            raise ValueError(
                f"build/jars/{path} has checksum {found.get(path, '(no file)')}, but jars.sha256 "
                f"has {listed.get(path, '(no entry)')}; the jars were removed"
            )


def build_kernel() -> None:
    """Compile the kernel; the build checks whether a source has changed and prints its steps."""
    subprocess.run([venv_python(), "-m", "spark_jobs.kernel.build"], cwd=ROOT, check=True)


def keep_classes() -> None:
    """Keep the classes that Spark's JVM loads, once: it starts in half the time then.

    A change of the kernel makes the archive useless; `make classes` makes it anew, because doing so
    at every change would take longer than it saves. Setup is complete without it.
    """
    if CLASSES.exists():
        return
    say("setup: classes ...")
    started = time.monotonic()
    try:
        run([venv_python(), "-m", "bench.class_archive"])
    except subprocess.CalledProcessError:
        say("setup: without an archive of classes, Spark starts more slowly")
    else:
        say(f"setup: classes ready in {time.monotonic() - started:.0f} s")


def venv_python() -> Path:
    return VENV / "bin" / "python"


def run(command: Sequence[object]) -> None:
    """Run a command and print its output only if it fails."""
    done = subprocess.run(
        [str(part) for part in command],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    if done.returncode != 0:
        sys.stderr.write(done.stdout)
        done.check_returncode()


def say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def fail(text: str) -> int:
    sys.stderr.write(text + "\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())
