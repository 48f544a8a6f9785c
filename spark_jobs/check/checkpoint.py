"""Whether a job can continue from a checkpoint, judged by the checkpoint's files, without Spark."""

import re
from collections.abc import Iterator, Mapping
from pathlib import Path
from urllib.parse import unquote, urlsplit

from spark_jobs.check.finding import Finding
from spark_jobs.driver.verdict import Present, judge, verdict, way_out
from spark_jobs.errors import EXIT_CODES, ConfigError, RejoinError
from spark_jobs.streaming.manifest import MANIFEST, Manifest


def check_checkpoint(location: str, queries: Mapping[str, Present]) -> Iterator[Finding]:
    """One finding per difference; raises RejoinError if the checkpoint cannot be read."""
    root = local_folder(location)
    for name, present in queries.items():
        yield from _check_query(root / name, name, present)
    for left in sorted(root.glob(f"*/{MANIFEST}")):
        name = left.parents[1].name
        if name not in queries:
            yield Finding(
                "warning",
                "CHECKPOINT_LEFT_OVER",
                f"query {name}",
                "is in the checkpoint and not in the job: its state stays unused",
                "a query has the name of its sink table; if that was renamed, use the old name",
            )


def local_folder(location: str) -> Path:
    """The folder as a local path; raises ConfigError if only Spark can reach it."""
    if re.match(r"[a-z][a-z0-9+.-]*:", location) is None:
        return Path(location)
    parts = urlsplit(location)
    if parts.scheme != "file":
        raise ConfigError(
            "CHECKPOINT_NOT_LOCAL",
            f"{location} is not on a file system of this machine",
            hint=f"copy its '*/{MANIFEST}', '*/offsets' and '*/commits' into a local folder and "
            "give that as --checkpoint",
        )
    return Path(unquote(parts.path))


def _check_query(folder: Path, name: str, present: Present) -> Iterator[Finding]:
    about = f"query {name}"
    path = folder / MANIFEST
    if not path.is_file():
        if (folder / "commits").is_dir():
            missing = f"{folder} is a checkpoint, but has no {MANIFEST}"
            hint = "restore the file from a backup of the checkpoint"
            yield Finding("error", "MANIFEST_MISSING", about, missing, hint, EXIT_CODES["user"])
        else:
            yield Finding("ok", "CHECKPOINT_NEW", about, "new: starts where its tables say")
        return
    manifest = Manifest.read(path.read_text(encoding="utf-8"), name, str(folder))
    found = judge(manifest, present, _sources(folder))
    for difference in found:
        if difference.effect == "incompatible":
            text = difference.text()
            yield Finding("error", difference.code, about, text, None, EXIT_CODES["user"])
        else:
            yield Finding("warning", "CHECKPOINT_CHANGED", about, difference.text())
    match verdict(found):
        case "identical":
            yield Finding("ok", "CHECKPOINT_IDENTICAL", about, "identical to the checkpoint's")
        case "compatible":
            text = "compatible: continues from the checkpoint"
            yield Finding("ok", "CHECKPOINT_COMPATIBLE", about, text)
        case "incompatible":
            text, hint = "incompatible: `rejoin run` refuses it", way_out(found)
            yield Finding("error", "CHECKPOINT_REFUSED", about, text, hint, EXIT_CODES["user"])


def sink_partitions(location: str, query: str) -> int | None:
    """Partitions of the sink's topic when the checkpoint began; None if not recorded."""
    try:
        folder = local_folder(location) / query
        text = (folder / MANIFEST).read_text(encoding="utf-8")
        return Manifest.read(text, query, str(folder)).sink_partitions
    except (RejoinError, OSError):
        return None  # check_checkpoint has reported it


def _sources(folder: Path) -> int | None:
    """Number of Spark's sources in the last committed epoch; its offset log has a line for each."""
    commits = folder / "commits"
    names = [p.name for p in commits.iterdir()] if commits.is_dir() else []
    epochs = [int(name) for name in names if name.isdigit()]
    offsets = folder / "offsets" / str(max(epochs, default=-1))
    if not offsets.is_file():
        return None
    return len(offsets.read_text(encoding="utf-8").splitlines()) - 2
