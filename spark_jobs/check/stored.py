"""The small files of a checkpoint: on a disk, or where only Spark's file systems reach."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol
from urllib.parse import unquote, urlsplit

from spark_jobs.errors import ConfigError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.kernel.standalone import local_kernel
from spark_jobs.settings import JobSettings
from spark_jobs.streaming.manifest import MANIFEST
from spark_jobs.streaming.object_store import jars_for, properties_for, reading


class Stored(Protocol):
    """A checkpoint that is looked at."""

    def queries(self) -> list[str]:
        """Those that have a manifest."""

    def read(self, query: str, name: str) -> str | None:
        """The text of a file; None if there is none."""

    def epochs(self, query: str) -> list[int]:
        """Numbers of committed epochs, ascending."""


@contextmanager
def stored(settings: JobSettings, offline: bool) -> Iterator[Stored]:
    """The job's checkpoint.

    Raises:
        ConfigError: it is elsewhere, and the check is to connect to nothing.
        StateError: its file system fails.
    """
    location = settings.checkpoint
    if (folder := local_folder(location)) is not None:
        yield _OnDisk(folder)
        return
    if offline:
        raise ConfigError(
            "CHECKPOINT_NOT_LOCAL",
            f"{location} is not on a file system of this machine",
            hint="leave --offline out: reading it connects to where it is",
        )
    properties = properties_for(settings.spark_properties, location)
    with reading(location), local_kernel(*jars_for(location), properties=properties) as kernel:
        yield _InStore(location, kernel)


def local_folder(location: str) -> Path | None:
    """The folder on this machine; None if only Spark can reach it.

    >>> local_folder("file:///tmp/a%20b"), local_folder("s3a://bucket/a")
    (PosixPath('/tmp/a b'), None)
    """
    if re.match(r"[a-z][a-z0-9+.-]*:", location) is None:
        return Path(location)
    parts = urlsplit(location)
    return Path(unquote(parts.path)) if parts.scheme == "file" else None


@dataclass(frozen=True, slots=True)
class _OnDisk:
    root: Path

    def queries(self) -> list[str]:
        return [found.parents[1].name for found in sorted(self.root.glob(f"*/{MANIFEST}"))]

    def read(self, query: str, name: str) -> str | None:
        path = self.root / query / name
        return path.read_text(encoding="utf-8") if path.is_file() else None

    def epochs(self, query: str) -> list[int]:
        commits = self.root / query / "commits"
        names = [path.name for path in commits.iterdir()] if commits.is_dir() else []
        return sorted(int(name) for name in names if name.isdigit())


@dataclass(frozen=True, slots=True)
class _InStore:
    location: str
    kernel: Kernel

    def queries(self) -> list[str]:
        files = json.loads(self.kernel.checkpoint_copy(self.location, self.location).files())
        return sorted(f.removesuffix(f"/{MANIFEST}") for f in files if f.endswith(f"/{MANIFEST}"))

    def read(self, query: str, name: str) -> str | None:
        return self.kernel.stored_files(self._folder(query)).read(name)

    def epochs(self, query: str) -> list[int]:
        return [int(n) for n in self.kernel.stored_files(self._folder(query)).entries("commits")]

    def _folder(self, query: str) -> str:
        return f"{self.location.rstrip('/')}/{query}"
