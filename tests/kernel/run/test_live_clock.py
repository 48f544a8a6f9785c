"""The clock of real-time mode with transactions: a reader whose steps come again as they were."""

from pathlib import Path
from typing import Any, NamedTuple

import pytest

from tests.harness.gateway import jvm

CLOCK, LOADED, RESUMED, BARRIER = 17, 18, 23, 24
LAST = 2**63 - 1
GROUPS = 2
SOON_MS = 200


class Mark(NamedTuple):
    kind: int
    group: int
    time: int
    source: int
    seq: int


def clock(folder: Path, partitions: int = 1, every_ms: int = 50, tick_ms: int = 20) -> Any:
    package: Any = jvm().org.apache.spark.sql.rejoin.run
    return package.LiveClockRun(every_ms, tick_ms, GROUPS, partitions, 60_000, str(folder))


def step(run: Any) -> tuple[int, list[Mark]]:
    """The next barrier, and the marks in front of it."""
    marks: list[Mark] = []
    while True:
        mark = Mark(*run.next(10_000))
        if mark.kind == BARRIER:
            others = [Mark(*run.next(SOON_MS)) for _ in range(GROUPS - 1)]
            assert [mark.group, *(other.group for other in others)] == list(range(GROUPS))
            assert {(m.time, m.source, m.seq) for m in (mark, *others)} == {(2, -1, mark.seq)}
            return mark.seq, marks
        marks.append(mark)


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "barriers"


def test_the_marks_of_a_step_come_before_its_barrier(folder: Path) -> None:
    """A tick begins a step where no record does; in front of ticks, all readers have looked."""
    run = clock(folder, partitions=2)
    number, marks = step(run)
    assert number == 0
    assert [m.kind for m in marks] == [RESUMED] * GROUPS + [CLOCK, LOADED] * GROUPS
    assert {m.seq for m in marks if m.kind == LOADED} == {0}
    run.looked()
    number, marks = step(run)
    assert number == 1
    assert [m.kind for m in marks[: 2 * GROUPS]] == [RESUMED] * GROUPS + [CLOCK] * GROUPS
    assert len(marks) > 2 * GROUPS
    assert {m.kind for m in marks[2 * GROUPS :]} == {CLOCK}
    run.close()


def test_steps_are_repeated_with_the_time_and_the_partitions_that_they_had(folder: Path) -> None:
    """The topic gets another partition between the starts: it counts from the new steps on."""
    first = clock(folder)
    first.looked()
    seen = [step(first) for _ in range(4)]
    for _ in seen:
        first.endStep(False)
    first.next(SOON_MS)  # a mark of a step that nobody has noted
    first.close()
    for _ in range(2):
        again = clock(folder, partitions=2)
        assert [step(again) for _ in seen] == seen
        number, marks = step(again)
        assert number == len(seen)
        assert [m.kind for m in marks] == [RESUMED] * GROUPS + [CLOCK, LOADED] * GROUPS
        assert {m.seq for m in marks if m.kind == LOADED} == {len(seen)}
        assert {m.seq for m in marks if m.kind == CLOCK} == {2}
        times = [m.time for _, found in seen for m in found if m.kind != LOADED]
        assert min(m.time for m in marks if m.kind != LOADED) >= max(times)
        again.close()


def test_a_step_that_only_the_clock_has_noted_is_a_new_one(folder: Path) -> None:
    first = clock(folder)
    first.looked()
    assert step(first)[0] == 0
    assert first.endStep(False) == 0
    assert step(first)[0] == 1
    first.close()
    again = clock(folder, tick_ms=0)
    assert step(again)[0] == 0
    number, marks = step(again)
    assert (number, [m.kind for m in marks]) == (1, [RESUMED] * GROUPS + [CLOCK] * GROUPS)
    again.close()


def test_an_epoch_ends_with_its_last_barrier(folder: Path) -> None:
    """A repeated one as well, and there the clock stands where it stood."""
    package: Any = jvm().org.apache.spark.sql.rejoin.run
    ends: list[dict[str, str]] = []
    for _ in range(2):
        run = package.LiveClockRun(50, 20, GROUPS, 1, 0, str(folder))
        run.looked()
        number, marks = step(run)
        assert (number, [m.kind for m in marks]) == (LAST, [RESUMED] * GROUPS + [CLOCK] * GROUPS)
        assert run.next(0) is None
        run.endStep(True)
        ends.append(dict(run.close()))
    assert ends[0]["time"] == ends[1]["time"]
