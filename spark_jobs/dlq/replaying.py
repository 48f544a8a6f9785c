"""Which dead-letter records can go back to their topics, in which order, with which values."""

import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spark_jobs.dlq.dead_letter import (
    Contents,
    DeadLetter,
    Position,
    SourceRecord,
    with_whole_record,
)
from spark_jobs.dlq.handling import BATCH, Handler, Replay, as_replay
from spark_jobs.dlq.reading import TopicReader
from spark_jobs.dlq.selection import Selection
from spark_jobs.dlq.topics import DeadLetterTopic
from spark_jobs.errors import ConfigError

_FIX_S = 60.0

OnProgress = Callable[[int, int], None]


class Unreplayable(NamedTuple):
    """A dead-letter record that stays open, and why."""

    dead_letter: DeadLetter
    why: str


@dataclass(frozen=True, slots=True)
class ReplayPlan:
    """What a replay would do.

    `ready` has, per source record, the selected dead-letter record and every open one of the same
    source record, in the order of the source partitions. `more` counts records beyond the limit.
    """

    ready: list[tuple[DeadLetter, tuple[DeadLetter, ...]]] = field(default_factory=list)
    left: list[Unreplayable] = field(default_factory=list)
    more: int = 0

    def within(self, limit: int | None) -> "ReplayPlan":
        """The same plan with the first `limit` records."""
        if limit is None:
            return self
        return replace(self, ready=self.ready[:limit], more=max(len(self.ready) - limit, 0))


def plan_replay(
    reader: TopicReader,
    topic: DeadLetterTopic,
    contents: Contents,
    selection: Selection,
    *,
    superseded: bool,
) -> ReplayPlan:
    """Choose what to replay; with `superseded` also records whose key has a later record."""
    same_source: dict[SourceRecord, list[DeadLetter]] = {}
    for item in contents.open():
        if item.source is not None:
            same_source.setdefault(item.source, []).append(item)
    replay_plan = ReplayPlan()
    chosen: dict[SourceRecord, DeadLetter] = {}
    for item in filter(selection.takes, contents.open()):
        if (why := _obstacle(item, topic, reader)) is not None:
            replay_plan.left.append(Unreplayable(item, why))
        elif item.source is not None:
            chosen.setdefault(item.source, item)
    late = set() if superseded else _superseded(reader, topic, chosen.values())
    for source, item in sorted(chosen.items()):
        if item.position in late:
            replay_plan.left.append(Unreplayable(item, "its key has a later record in the topic"))
        else:
            replay_plan.ready.append((item, tuple(same_source[source])))
    return replay_plan


def _obstacle(item: DeadLetter, topic: DeadLetterTopic, reader: TopicReader) -> str | None:
    if item.source is None:
        return "it has no source record to replay"
    if item.table in topic.elsewhere:
        return f"its source topic is on another cluster, {topic.elsewhere[item.table]}"
    if item.source.partition >= reader.partitions(item.source.topic):
        return f"{item.source.topic}[{item.source.partition}] no longer exists"
    return None


def _superseded(
    reader: TopicReader, topic: DeadLetterTopic, items: Iterable[DeadLetter]
) -> set[Position]:
    """Those whose key has a later record, in tables where rows of one key replace each other."""
    keyed: dict[str, list[DeadLetter]] = {}
    for item in items:
        replaces = topic.changelogs.get(item.table) != "append"
        if replaces and item.key is not None and item.source is not None:
            keyed.setdefault(item.source.topic, []).append(item)
    found: set[Position] = set()
    for name, group in keyed.items():
        sources = {item.position: item.source for item in group if item.source is not None}
        starts: dict[int, int] = {}
        for source in sources.values():
            start = starts.get(source.partition, source.offset + 1)
            starts[source.partition] = min(start, source.offset + 1)
        latest: dict[tuple[int, object], int] = {}
        keys = {(sources[item.position].partition, item.key) for item in group}
        for message in reader.read(name, starts):
            key = (message.partition() or 0, message.key())
            if key in keys:
                latest[key] = message.offset() or 0
        for item in group:
            source = sources[item.position]
            if latest.get((source.partition, item.key), -1) > source.offset:
                found.add(item.position)
    return found


def replay_all(
    handler: Handler,
    reader: TopicReader,
    to_do: ReplayPlan,
    command: list[str] | None,
    progress: OnProgress,
) -> tuple[int, list[Unreplayable]]:
    """Replay in transactions of `BATCH` records; returns how many, and what could not be.

    `command` repairs values; None replays them as they are.
    """
    done, left = 0, list(to_do.left)
    for start in range(0, len(to_do.ready), BATCH):
        replays: list[Replay] = []
        for item, all_of in to_do.ready[start : start + BATCH]:
            made = _restored(item, all_of, reader, command)
            if isinstance(made, Unreplayable):
                left.append(made)
            else:
                replays.append(made)
        if replays:
            handler.replay(replays)
        done += len(replays)
        progress(done, len(to_do.ready))
    return done, left


def _restored(
    item: DeadLetter, all_of: Sequence[DeadLetter], reader: TopicReader, command: list[str] | None
) -> Replay | Unreplayable:
    whole, source = item, item.source
    if not item.is_whole and source is not None:
        message = reader.record(source.topic, source.partition, source.offset)
        found = None if message is None else with_whole_record(item, message)
        if found is None:
            return Unreplayable(item, "parts were omitted, and its topic no longer has it")
        whole = found
    if command is None:
        return as_replay(whole, whole.value, all_of)
    if whole.value is None:
        return Unreplayable(item, "it has no value to fix")
    fixed = fixed_value(command, whole.value)
    return Unreplayable(item, fixed) if isinstance(fixed, str) else as_replay(whole, fixed, all_of)


def fix_command(text: str) -> list[str]:
    """The program of `--fix` and its arguments; raises ConfigError if a quote is not closed."""
    try:
        return shlex.split(text)
    except ValueError as cause:
        raise _unusable_fix(cause) from cause


def _unusable_fix(cause: Exception) -> ConfigError:
    return ConfigError(
        "DLQ_FIX_FAILED",
        f"--fix cannot be run: {cause}",
        hint="give a program and its arguments; there is no shell: --fix 'python fix.py', "
        "--fix \"sh -c 'sed s/,}/}/'\"",
    )


def fixed_value(command: Sequence[str], value: bytes) -> bytes | str:
    """The command's output for this value, or as a string the reason why there is none."""
    try:
        done = subprocess.run(
            command, input=value, capture_output=True, timeout=_FIX_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the command took longer than {_FIX_S:.0f} s"
    except (OSError, IndexError) as cause:
        raise _unusable_fix(cause) from cause
    if done.returncode != 0:
        lines = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"the command ended with {done.returncode}{': ' + lines[-1] if lines else ''}"
    return done.stdout
