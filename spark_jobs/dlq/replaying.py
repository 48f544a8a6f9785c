"""Which letters can go back to their topics, in which order, and with which values."""

import shlex
import subprocess
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from spark_jobs.dlq.dead_letter import Contents, Letter, Place, Source, whole_record
from spark_jobs.dlq.handling import BATCH, Handler, Replay, as_replay
from spark_jobs.dlq.reading import TopicReader
from spark_jobs.dlq.selection import Selection
from spark_jobs.dlq.topics import LetterTopic
from spark_jobs.errors import ConfigError

_FIX_S = 60.0

Progress = Callable[[int, int], None]


class Left(NamedTuple):
    """A letter that stays open, and why."""

    letter: Letter
    why: str


@dataclass(frozen=True, slots=True)
class Choice:
    """`ready`: per source record the selected letter, and every open letter of that record, in the
    order of the source partitions. `more`: records beyond a limit, for another time."""

    ready: list[tuple[Letter, tuple[Letter, ...]]] = field(default_factory=list)
    left: list[Left] = field(default_factory=list)
    more: int = 0

    def within(self, limit: int | None) -> "Choice":
        """The first records of it."""
        if limit is None:
            return self
        return replace(self, ready=self.ready[:limit], more=max(len(self.ready) - limit, 0))


def choose(
    reader: TopicReader,
    topic: LetterTopic,
    contents: Contents,
    selection: Selection,
    *,
    superseded: bool,
) -> Choice:
    """The letters to replay; with `superseded` also those whose key has a later record."""
    records: dict[Source, list[Letter]] = {}
    for letter in contents.open():
        if letter.source is not None:
            records.setdefault(letter.source, []).append(letter)
    choice = Choice()
    chosen: dict[Source, Letter] = {}
    for letter in filter(selection.takes, contents.open()):
        if (why := _obstacle(letter, topic, reader)) is not None:
            choice.left.append(Left(letter, why))
        elif letter.source is not None:
            chosen.setdefault(letter.source, letter)
    late = set() if superseded else _superseded(reader, topic, chosen.values())
    for source, letter in sorted(chosen.items()):
        if letter.place in late:
            choice.left.append(Left(letter, "its key has a later record in the topic"))
        else:
            choice.ready.append((letter, tuple(records[source])))
    return choice


def _obstacle(letter: Letter, topic: LetterTopic, reader: TopicReader) -> str | None:
    if letter.source is None:
        return "it is no record of a source topic"
    if letter.table in topic.elsewhere:
        return f"its topic is on another cluster, {topic.elsewhere[letter.table]}"
    if letter.source.partition >= reader.partitions(letter.source.topic):
        return f"there is no {letter.source.topic}[{letter.source.partition}] any more"
    return None


def _superseded(reader: TopicReader, topic: LetterTopic, letters: Iterable[Letter]) -> set[Place]:
    """Letters whose key has a later record, where rows of a key replace each other."""
    keyed: dict[str, list[Letter]] = {}
    for letter in letters:
        replaces = topic.changelogs.get(letter.table) != "append"
        if replaces and letter.key is not None and letter.source is not None:
            keyed.setdefault(letter.source.topic, []).append(letter)
    found: set[Place] = set()
    for name, group in keyed.items():
        sources = {letter.place: letter.source for letter in group if letter.source is not None}
        starts: dict[int, int] = {}
        for source in sources.values():
            at = starts.get(source.partition, source.offset + 1)
            starts[source.partition] = min(at, source.offset + 1)
        latest: dict[tuple[int, object], int] = {}
        wanted = {(sources[letter.place].partition, letter.key) for letter in group}
        for message in reader.read(name, starts):
            place = (message.partition() or 0, message.key())
            if place in wanted:
                latest[place] = message.offset() or 0
        for letter in group:
            source = sources[letter.place]
            if latest.get((source.partition, letter.key), -1) > source.offset:
                found.add(letter.place)
    return found


def replay_all(
    handler: Handler, reader: TopicReader, choice: Choice, fix: str | None, progress: Progress
) -> tuple[int, list[Left]]:
    """In transactions of `BATCH` records; how many were replayed, and which letters are left."""
    command = None if fix is None else shlex.split(fix)
    done, left = 0, list(choice.left)
    for start in range(0, len(choice.ready), BATCH):
        replays: list[Replay] = []
        for letter, all_letters in choice.ready[start : start + BATCH]:
            made = _restored(letter, all_letters, reader, command)
            if isinstance(made, Left):
                left.append(made)
            else:
                replays.append(made)
        if replays:
            handler.replay(replays)
        done += len(replays)
        progress(done, len(choice.ready))
    return done, left


def _restored(
    letter: Letter, letters: Sequence[Letter], reader: TopicReader, command: list[str] | None
) -> Replay | Left:
    whole = letter
    if not letter.is_whole and letter.source is not None:
        message = reader.record(letter.source.topic, letter.source.partition, letter.source.offset)
        found = None if message is None else whole_record(letter, message)
        if found is None:
            return Left(letter, "a part of it was left out, and its topic no longer has it")
        whole = found
    if command is None:
        return as_replay(whole, whole.value, letters)
    if whole.value is None:
        return Left(letter, "there is no value to fix")
    fixed = fixed_value(command, whole.value)
    return Left(letter, fixed) if isinstance(fixed, str) else as_replay(whole, fixed, letters)


def fixed_value(command: Sequence[str], value: bytes) -> bytes | str:
    """What the command makes of the value, or in words why it makes nothing."""
    try:
        done = subprocess.run(
            command, input=value, capture_output=True, timeout=_FIX_S, check=False
        )
    except subprocess.TimeoutExpired:
        return f"the command took longer than {_FIX_S:.0f} s"
    except (OSError, IndexError) as cause:
        raise ConfigError(
            "DLQ_FIX_FAILED",
            f"--fix cannot be run: {cause}",
            hint="a program and its arguments, without a shell: --fix 'python fix.py', "
            "--fix \"sh -c 'sed s/,}/}/'\"",
        ) from cause
    if done.returncode != 0:
        told = done.stderr.decode("utf-8", "replace").strip().splitlines()
        return f"the command ended with {done.returncode}{': ' + told[-1] if told else ''}"
    return done.stdout
