"""Checkpoint files on a disk: they appear whole, alone, and stay readable for Hadoop."""

from pathlib import Path
from typing import Any

import pytest

from tests.harness.gateway import jvm

Files = Any


@pytest.fixture
def files(tmp_path: Path) -> Files:
    return of_class("org.apache.spark.sql.rejoin.checkpoint.DiskFiles", tmp_path)


def of_class(name: str, folder: Path) -> Files:
    java: Any = jvm()
    made = java
    for part in name.split("."):
        made = getattr(made, part)
    return made(path(folder), java.org.apache.hadoop.conf.Configuration())


def path(file: Path) -> Any:
    return jvm().org.apache.hadoop.fs.Path(str(file))


def write(files: Files, file: Path, text: str, overwrites: bool = False) -> None:
    out = files.createAtomic(path(file), overwrites)
    out.write(text.encode())
    assert not file.exists() or file.read_text() != text
    out.close()


def read(files: Files, file: Path) -> str:
    stream = files.open(path(file))
    try:
        return bytes(stream.readAllBytes()).decode()
    finally:
        stream.close()


def test_a_file_appears_as_a_whole_and_alone(files: Files, tmp_path: Path) -> None:
    write(files, tmp_path / "0", "v1")
    assert read(files, tmp_path / "0") == "v1"
    assert [f.name for f in tmp_path.iterdir()] == ["0"]


def test_a_file_that_is_there_is_not_replaced(files: Files, tmp_path: Path) -> None:
    write(files, tmp_path / "0", "v1")
    with pytest.raises(Exception, match="FileAlreadyExistsException"):
        write(files, tmp_path / "0", "v2")
    assert (tmp_path / "0").read_text() == "v1"


def test_a_cancelled_file_leaves_nothing(files: Files, tmp_path: Path) -> None:
    out = files.createAtomic(path(tmp_path / "0"), False)
    out.write(b"half")
    out.cancel()
    assert list(tmp_path.iterdir()) == []


def test_a_file_with_checksums_of_an_earlier_release_is_replaced(
    files: Files, tmp_path: Path
) -> None:
    """Spark's own manager, which earlier releases used, can still read what is there now."""
    checkpointing = "org.apache.spark.sql.execution.streaming.checkpointing"
    earlier = of_class(f"{checkpointing}.FileContextBasedCheckpointFileManager", tmp_path)
    write(earlier, tmp_path / "manifest.json", "v1")
    assert (tmp_path / ".manifest.json.crc").exists()
    assert read(files, tmp_path / "manifest.json") == "v1"
    write(files, tmp_path / "manifest.json", "a newer one", overwrites=True)
    assert read(earlier, tmp_path / "manifest.json") == "a newer one"
