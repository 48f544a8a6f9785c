"""Whether a job can continue from a checkpoint, judged by the checkpoint's files."""

from collections.abc import Iterator, Mapping

from spark_jobs.check.finding import Finding
from spark_jobs.check.stored import Stored
from spark_jobs.driver.verdict import Present, judge, verdict, way_out
from spark_jobs.errors import EXIT_CODES
from spark_jobs.streaming.manifest import MANIFEST, Manifest


def check_checkpoint(stored: Stored, queries: Mapping[str, Present]) -> Iterator[Finding]:
    """One finding per difference; raises RejoinError if the checkpoint cannot be read."""
    for name, present in queries.items():
        yield from _check_query(stored, name, present)
    for name in stored.queries():
        if name not in queries:
            yield Finding(
                "warning",
                "CHECKPOINT_LEFT_OVER",
                f"query {name}",
                "is in the checkpoint and not in the job: its state stays unused",
                "a query has the name of its sink table; if that was renamed, use the old name",
            )


def _check_query(stored: Stored, name: str, present: Present) -> Iterator[Finding]:
    about = f"query {name}"
    text = stored.read(name, MANIFEST)
    if text is None:
        if stored.epochs(name):
            missing = f"is a checkpoint, but has no {MANIFEST}"
            hint = "restore the file from a backup of the checkpoint"
            yield Finding("error", "MANIFEST_MISSING", about, missing, hint, EXIT_CODES["user"])
        else:
            yield Finding("ok", "CHECKPOINT_NEW", about, "new: starts where its tables say")
        return
    found = judge(Manifest.read(text, name, name), present, _sources(stored, name))
    for difference in found:
        if difference.effect == "incompatible":
            told = difference.text()
            yield Finding("error", difference.code, about, told, None, EXIT_CODES["user"])
        else:
            yield Finding("warning", "CHECKPOINT_CHANGED", about, difference.text())
    match verdict(found):
        case "identical":
            yield Finding("ok", "CHECKPOINT_IDENTICAL", about, "identical to the checkpoint's")
        case "compatible":
            told = "compatible: continues from the checkpoint"
            yield Finding("ok", "CHECKPOINT_COMPATIBLE", about, told)
        case "incompatible":
            told, hint = "incompatible: rejoin run refuses it", way_out(found)
            yield Finding("error", "CHECKPOINT_REFUSED", about, told, hint, EXIT_CODES["user"])


def sink_partitions(stored: Stored, query: str) -> int | None:
    """Partitions of the sink's topic when the checkpoint began; None if not recorded."""
    text = stored.read(query, MANIFEST)
    return None if text is None else Manifest.read(text, query, query).sink_partitions


def _sources(stored: Stored, query: str) -> int | None:
    """Number of Spark's sources in the last committed epoch; its offset log has a line for each."""
    epochs = stored.epochs(query)
    offsets = stored.read(query, f"offsets/{epochs[-1]}") if epochs else None
    return None if offsets is None else len(offsets.splitlines()) - 2
