"""What a fresh clone relies on: lock files, jar checksums, the make targets, the one clear line."""

import doctest
import hashlib
import importlib
import re
import shutil
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest

from tools import lint, setup_env

ROOT = Path(__file__).parents[2]
LOCKS = ["requirements.txt", "requirements-dev.txt", "requirements-build.txt"]


@pytest.mark.parametrize("name", LOCKS)
def test_lock_files_have_hashes_and_no_addresses(name: str) -> None:
    text = (ROOT / name).read_text()
    assert not re.search(r"://|--find-links|--index-url|--extra-index|--trusted-host", text)
    requirement = r"^[a-z0-9._-]+==\S+(?: ; [^\n]+)? \\\n    --hash=sha256:"
    pinned = re.findall(requirement, text, re.MULTILINE)
    assert pinned
    assert len(pinned) == len(re.findall(r"^[a-z0-9]", text, re.MULTILINE))


def test_development_lock_contains_the_runtime_lock() -> None:
    def pins(name: str) -> set[str]:
        return set(re.findall(r"^(\S+==\S+) \\$", (ROOT / name).read_text(), re.MULTILINE))

    assert pins("requirements.txt") <= pins("requirements-dev.txt")


def test_pom_names_no_repository() -> None:
    assert not re.search(r"<(repository|pluginRepository|mirror)>", (ROOT / "pom.xml").read_text())


def test_make_help_lists_every_target() -> None:
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert phony is not None
    make = shutil.which("make") or "make"
    told = subprocess.run([make], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    assert re.findall(r"^  make (\S+)", told, re.MULTILINE) == phony.group(1).split()


def test_one_clear_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setup_env, "java_version", lambda: 11)
    monkeypatch.setattr(setup_env.shutil, "which", lambda _: None)
    missing = setup_env.missing_programs()
    assert missing == ["Java 17 or newer (found 11)", "Maven"]
    assert setup_env.how_to_install(missing).endswith(
        "apt-get install openjdk-17-jdk-headless maven"
    )
    monkeypatch.setattr(sys, "version_info", (3, 9, 2))
    assert setup_env.missing_programs()[0].startswith("Python 3.11 or newer (this is 3.9;")


@pytest.fixture
def jars(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """One jar per set, listed with its checksum."""
    monkeypatch.setattr(setup_env, "ROOT", tmp_path)
    monkeypatch.setattr(setup_env, "JARS", tmp_path / "build" / "jars")
    lines = []
    for name in setup_env.JAR_SETS:
        jar = setup_env.JARS / name / "a-1.jar"
        jar.parent.mkdir(parents=True)
        jar.write_bytes(name.encode())
        lines.append(f"{hashlib.sha256(name.encode()).hexdigest()}  {name}/a-1.jar\n")
    (tmp_path / "jars.sha256").write_text("".join(lines))
    return setup_env.JARS


def test_listed_jars_pass(jars: Path) -> None:
    setup_env.verify_jars()
    assert jars.exists()


@pytest.mark.parametrize("change", ["altered", "missing", "unlisted"])
def test_other_jars_are_refused_and_removed(jars: Path, change: str) -> None:
    match change:
        case "altered":
            (jars / "broker" / "a-1.jar").write_bytes(b"something else")
        case "missing":
            (jars / "broker" / "a-1.jar").unlink()
        case _:
            (jars / "broker" / "b-1.jar").write_bytes(b"nobody asked for it")
    with pytest.raises(ValueError, match="build/jars/broker/"):
        setup_env.verify_jars()
    assert not (jars / "broker").exists()


def test_setup_keeps_the_classes_once_and_goes_on_without_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    started: list[Sequence[object]] = []

    def fails(command: Sequence[object]) -> None:
        started.append(command)
        raise subprocess.CalledProcessError(3, [str(part) for part in command])

    monkeypatch.setattr(setup_env, "run", fails)
    monkeypatch.setattr(setup_env, "CLASSES", tmp_path / "classes.jsa")
    setup_env.keep_classes()
    assert started[0][1:] == ["-m", "bench.class_archive"]
    assert "without an archive of classes" in capsys.readouterr().out
    (tmp_path / "classes.jsa").touch()
    setup_env.keep_classes()
    assert len(started) == 1


def test_scala_text_findings(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    kernel = tmp_path / "spark_jobs" / "kernel"
    kernel.mkdir(parents=True)
    (kernel / "A.scala").write_text("object A \n\tval x = 1\n" + "/" * 121 + "\n")
    monkeypatch.setattr(lint, "ROOT", tmp_path)
    assert list(lint.scala_text_problems()) == [
        "spark_jobs/kernel/A.scala:1: trailing blanks",
        "spark_jobs/kernel/A.scala:2: tab",
        "spark_jobs/kernel/A.scala:3: 121 columns, at most 120",
    ]


def with_examples() -> list[str]:
    """Modules whose docstrings show what comes out."""
    found = [
        p for folder in ("spark_jobs", "service", "bench") for p in (ROOT / folder).rglob("*.py")
    ]
    told = [p.relative_to(ROOT) for p in found if "\n    >>> " in p.read_text(encoding="utf-8")]
    return sorted(".".join(p.with_suffix("").parts) for p in told)


@pytest.mark.parametrize("name", with_examples())
def test_examples_in_docstrings_are_true(name: str) -> None:
    ran = doctest.testmod(importlib.import_module(name))
    assert ran.attempted > 0
    assert ran.failed == 0
