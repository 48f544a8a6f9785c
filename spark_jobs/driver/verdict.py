"""Whether a job can continue from a checkpoint: compares its manifest with the present plan."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias

from pyspark import __version__ as spark_version

from spark_jobs import __version__
from spark_jobs.errors import StateError
from spark_jobs.plan.check.compatibility import Difference, differences, wrong
from spark_jobs.plan.check.fingerprint import Fingerprint
from spark_jobs.streaming.manifest import STATE_FORMAT, Manifest, Writer

Verdict: TypeAlias = Literal["identical", "compatible", "incompatible"]

MAX_SHOWN = 8
GUIDE = "docs/upgrades.md"
PARALLELISM = "'rejoin.parallelism'"
_WITH_PLAN = 2  # the version of a manifest that got its plan from this driver


@dataclass(frozen=True, slots=True)
class Present:
    """The present job. `digest`: the digest of its state by which release 0.1.0 compares."""

    plan: Fingerprint
    digest: str
    groups: int
    parallelism: int | None

    def sources(self) -> int:
        """The number of Spark's sources: the scans, and the clocks of operators that need time."""
        clocks = [operator for operator in self.plan.operators if operator.state["clock"]]
        return len(self.plan.scans) + len(clocks)


def judge(manifest: Manifest, present: Present, sources: int | None) -> list[Difference]:
    """How the job differs from the one that wrote the checkpoint.

    Only the incompatible differences if there are any, else the compatible ones. `sources`: how
    many sources the checkpoint has offsets of; None before the first epoch.
    """
    found = [*_fixed(manifest, present)]
    if manifest.plan is None:
        found += _by_digest(manifest, present, sources)
    else:
        found += differences(manifest.plan, present.plan)
    return [difference for difference in found if difference.effect == "incompatible"] or found


def verdict(found: Sequence[Difference]) -> Verdict:
    if not found:
        return "identical"
    refused = any(difference.effect == "incompatible" for difference in found)
    return "incompatible" if refused else "compatible"


def refuse(query: str, found: Sequence[Difference]) -> None:
    """Raise StateError for incompatible differences; the message lists them."""
    if verdict(found) == "incompatible":
        lines = "".join(f"\n  - {difference.text()}" for difference in found[:MAX_SHOWN])
        if len(found) > MAX_SHOWN:
            lines += f"\n  - and {len(found) - MAX_SHOWN} more"
        raise StateError(
            found[0].code,
            f"query {query}: the checkpoint was made by another job{lines}",
            hint=way_out(found),
        )


def accepted(manifest: Manifest, present: Present) -> Manifest:
    """The manifest after the present job has taken over the checkpoint."""
    # a table may have another name by now: scans are the same by their order
    names = dict(zip(manifest.scans, (scan.id for scan in present.plan.scans), strict=True))
    moved = manifest.plan is not None and manifest.plan.sink["topic"] != present.plan.sink["topic"]
    return manifest.model_copy(
        update={
            "version": max(manifest.version, _WITH_PLAN),
            "state": present.digest,
            "plan": present.plan,
            "written_by": written_now(),
            "scans": {names[scan]: start for scan, start in manifest.scans.items()},
            "matched_topics": {names[s]: found for s, found in manifest.matched_topics.items()},
            "sink_partitions": None if moved else manifest.sink_partitions,
        }
    )


def written_now() -> Writer:
    return Writer(rejoin=__version__, spark=spark_version, state_format=STATE_FORMAT)


def way_out(refused: Sequence[Difference]) -> str:
    """The hint for incompatible differences."""
    settings = [d.place for d in refused if d.place.startswith("'rejoin.")]
    if len(settings) == len(refused):
        back = " ".join(f"SET {d.place} = '{d.then}';" for d in refused)
        if [d.place for d in refused] == [PARALLELISM]:
            to = f"--parallelism {refused[0].now}"
            return (
                f"{back} continues; `rejoin rescale {to}` moves the state to a new value: {GUIDE}"
            )
        return f"{back} continues; a new value needs a new checkpoint: {GUIDE}"
    if any(d.code == "STATE_FORMAT_NEWER" for d in refused):
        return "use the release that wrote the checkpoint, or a newer one"
    return (
        "restore the old SQL; or give the changed job a new checkpoint, and let it read from "
        "'earliest-offset' into a new topic, because the new job never retracts the rows in the "
        f"old topic: {GUIDE}"
    )


def _fixed(manifest: Manifest, present: Present) -> Iterator[Difference]:
    """Differences in what a checkpoint fixes for all releases."""
    written = manifest.written_by
    if written is not None and written.state_format > STATE_FORMAT:
        then, now = str(written.state_format), str(STATE_FORMAT)
        reason = f"release {written.rejoin} wrote it, this is {__version__}"
        yield wrong("STATE_FORMAT_NEWER", "state format", then, now, reason)
    if (groups := manifest.groups) != present.groups:
        reason = "state is stored by key group"
        yield _mismatch("'rejoin.key-groups'", groups, present.groups, reason)
    if present.parallelism not in (None, tasks := manifest.parallelism):
        reason = "state is divided among the tasks"
        yield _mismatch(PARALLELISM, tasks, present.parallelism, reason)
    if written is not None and written.spark != spark_version:
        yield Difference(
            "compatible", "", "Spark", written.spark, spark_version,
            "newer releases of Spark read the checkpoint format of older ones",
        )  # fmt: skip


def _by_digest(manifest: Manifest, present: Present, sources: int | None) -> Iterator[Difference]:
    """Compare with a manifest of version 1: it has no plan, only offsets and a digest of state."""
    before, after = tuple(manifest.scans.values()), present.plan.scans
    read = [list(start.starts) for start in before]
    reads = [list(scan.topics) for scan in after]
    topics = sorted((place, name) for scan in after for name, place in scan.topics.items())
    if read != reads or manifest.topics != tuple(name for _, name in topics):
        reason = "offsets and watermarks are stored by the topic's position in the query"
        then, now = ("; ".join(map(", ".join, topics)) for topics in (read, reads))
        yield _mismatch("topics", then, now, reason)
    elif moved := [n for s, n in zip(before, after, strict=True) if (s.ends is None) == n.bounded]:
        for scan in moved:
            was, is_ = ("unbounded", "bounded") if scan.bounded else ("bounded", "unbounded")
            reason = "the first start fixes where inputs end"
            yield _mismatch(f"scan {scan.id}, ends", was, is_, reason)
    elif sources not in (None, present.sources()):
        reason = "a clock was added or removed, and Spark identifies sources by their position"
        yield _mismatch("sources of the query", sources, present.sources(), reason)
    if manifest.state == present.digest:
        reason = "the state is the same; release 0.1.0 did not record anything else"
        yield Difference("compatible", "", "manifest", "version 1", f"version {_WITH_PLAN}", reason)
    else:
        reason = "release 0.1.0 recorded only a digest of columns, keys, types and join kinds"
        yield wrong("STATE_INCOMPATIBLE", "state", manifest.state[:8], present.digest[:8], reason)


def _mismatch(place: str, then: object, now: object, reason: str) -> Difference:
    return wrong("CHECKPOINT_MISMATCH", place, str(then), str(now), reason)
