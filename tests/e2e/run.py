"""One run: the stack, a minute of statements with faults in it, and the comparison at the end."""

import time
from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from tests.e2e import artifacts
from tests.e2e.compare import (
    RESULTS,
    Events,
    Folded,
    answers,
    differences,
    fold,
    read_dead_letters,
    read_events,
)
from tests.e2e.debezium import TABLES, topic_of
from tests.e2e.play import Player
from tests.e2e.stack import FormatName, Stack
from tests.e2e.topics import ends_of
from tests.e2e.workload import Workload
from tests.harness.schemas import schema_differences

KILL_CONNECT_AT, KILL_JOB_AT = 0.3, 0.65
_SHOWN_DIFFERENCES = 10
_UNAVAILABLE = "debezium-unavailable-value"
_WAIT_TIMEOUT_S = 600.0
_PROGRESS_S = 5.0
Say = Callable[[str], object]


@dataclass
class Report:
    """The figures; `passed` if nothing differs and exactly what cannot be known was rejected."""

    statements: Counter[str] = field(default_factory=Counter)
    events: Events = field(default_factory=Events)
    dead_letters: dict[str, list[str]] = field(default_factory=dict)
    results: dict[str, Folded] = field(default_factory=dict)
    expected: dict[str, int] = field(default_factory=dict)
    differences: list[str] = field(default_factory=list)
    durations_s: dict[str, float] = field(default_factory=dict)

    @property
    def passed(self) -> bool:
        rejected = [place for places in self.dead_letters.values() for place in places]
        explained = set(self.dead_letters) <= {_UNAVAILABLE}
        return (
            not self.differences
            and explained
            and sorted(rejected) == sorted(self.events.unhealable)
        )

    def lines(self) -> Iterator[str]:
        yield f"statements    {_counts(self.statements)}"
        for topic, counts in self.events.counts.items():
            yield f"events        {topic}: {_counts(counts)}"
        yield f"repeated      {self.events.repeated} events after the kill of Connect"
        rejected = {reason: len(places) for reason, places in self.dead_letters.items()}
        yield f"dead letters  {_counts(Counter(rejected)) if rejected else 0}"
        for reason, places in self.dead_letters.items():
            yield f"              {reason}: {' '.join(places[:_SHOWN_DIFFERENCES])}"
        yield (
            f"not knowable  {len(self.events.unhealable)} events without a large text that stands "
            f"under an earlier primary key; {len(self.events.hidden)} rows are hidden by them"
        )
        for topic, folded in self.results.items():
            yield (
                f"result        {topic}: {folded.records} records ({folded.tombstones} tombstones)"
                f", {len(folded.rows)} rows; PostgreSQL: {self.expected[topic]} rows"
            )
        for text in self.differences[:_SHOWN_DIFFERENCES]:
            yield f"  {text}"
        yield f"differences   {len(self.differences)}"
        told = ", ".join(f"{name} {s:.0f} s" for name, s in self.durations_s.items())
        yield f"durations     {told}"


def run(
    folder: Path,
    bin_folder: Path,
    format_name: FormatName,
    seconds: float,
    seed: int,
    say: Say,
) -> Report:
    """Raises what goes wrong in the stack or in the job."""
    report = Report()
    with _timed(report, "artifacts"):
        artifacts.provide(say)
    workload = Workload(seed)
    with _timed(report, "all"), Stack(folder, bin_folder, format_name) as stack:
        player = Player(stack.postgres, workload, seconds)
        report.statements = player.executed
        try:
            with _timed(report, "start"):
                _open(stack, player, workload, say)
            with _timed(report, "statements"):
                _play(stack, player, say)
            with _timed(report, "drain"):
                _drain(stack, player, workload, say)
        finally:
            player.stop()
        with _timed(report, "comparison"):
            _compare(stack, report)
    return report


def _open(stack: Stack, player: Player, workload: Workload, say: Say) -> None:
    player.run_now(workload.opening())
    stack.connect.launch()
    stack.job.start()
    stack.connect.wait()
    say(f"PostgreSQL, the broker and Connect ({stack.wire.name}) run; the job reads the snapshot")
    _wait(stack, "the job wrote nothing", stack.job.has_committed)


def _play(stack: Stack, player: Player, say: Say) -> None:
    """The statements, and on their way the end and the return of Connect and of the job."""
    faults = [
        (KILL_CONNECT_AT, "kill -9 of Connect", stack.connect.kill, stack.connect.launch),
        (KILL_JOB_AT, "kill -9 of the job", stack.job.kill, stack.job.start),
    ]
    begun = time.monotonic()
    next_say = 0.0
    player.start()
    while player.is_playing():
        time.sleep(0.1)
        stack.check_alive()
        elapsed = time.monotonic() - begun
        if faults and player.progress >= faults[0][0]:
            _, what, kill, start = faults.pop(0)
            say(f"  {elapsed:4.0f} s  {what}")
            kill()
            start()
        if elapsed >= next_say:
            say(f"  {elapsed:4.0f} s  {player.done} transactions")
            next_say = elapsed + _PROGRESS_S


def _drain(stack: Stack, player: Player, workload: Workload, say: Say) -> None:
    """Until the last change has come out of Connect, and the job has read everything."""
    stack.connect.wait()
    closing, last_order = workload.closing()
    player.run_now(closing)
    say("  the last statement is committed; waiting for its event")
    _wait_for_event(stack, last_order)
    stack.connect.stop()  # to its end: what it has sent is then all there is
    ends = ends_of(stack.broker.bootstrap_servers, [topic_of(table) for table in TABLES])
    say(f"  {sum(ends.values())} records in the source topics; waiting for the job to read them")
    _wait(stack, "the job did not read everything", lambda: stack.job.has_read(ends))
    stack.job.stop()


def _wait_for_event(stack: Stack, order_id: int) -> None:
    """The connector reads the log in order, so nothing that was committed earlier is missing."""
    servers = stack.broker.bootstrap_servers

    def is_there() -> bool:
        events = read_events(servers, stack.wire, ["orders"])
        return ("orders", order_id) in events.places

    _wait(stack, "the last event did not come", is_there)


def _wait(stack: Stack, problem: str, is_done: Callable[[], bool]) -> None:
    def checked() -> bool:
        stack.check_alive()
        return is_done()

    wait_until(checked, problem)


def wait_until(is_done: Callable[[], bool], problem: str) -> None:
    """Raise RuntimeError with the problem if that takes too long."""
    deadline = time.monotonic() + _WAIT_TIMEOUT_S
    while not is_done():
        if time.monotonic() > deadline:
            raise RuntimeError(f"{problem} within {_WAIT_TIMEOUT_S:.0f} s")
        time.sleep(0.3)


def _compare(stack: Stack, report: Report) -> None:
    servers = stack.broker.bootstrap_servers
    report.events = read_events(servers, stack.wire, TABLES)
    report.dead_letters = read_dead_letters(servers)
    with stack.postgres.connect() as connection:
        expected = answers(connection, stack.wire, report.events.hidden)
    if stack.registry is not None:
        subjects = [f"{topic_of(table)}-{part}" for table in TABLES for part in ("key", "value")]
        report.differences += schema_differences(stack.registry.url, subjects)
    for topic in RESULTS:
        folded = report.results[topic] = fold(servers, topic, stack.wire)
        report.expected[topic] = len(expected[topic])
        report.differences += differences(topic, folded.rows, expected[topic], report.events)


def _counts(counts: Counter[str]) -> str:
    told = ", ".join(f"{name} {count}" for name, count in counts.most_common())
    return f"{counts.total()} ({told})"


@contextmanager
def _timed(report: Report, name: str) -> Iterator[None]:
    begun = time.monotonic()
    yield
    report.durations_s[name] = time.monotonic() - begun
