"""Interval joins step by step: seed 000's figures, late rows, padding, cleanup, hot keys."""

import json
from typing import Any

import pytest

from tests.harness.gateway import jvm, new_machine
from tests.kernel.oracle.interval import Join

MINUTE = 60_000
END = 2**63 - 1
LEFT, RIGHT = 0, 1


class Run:
    """One machine; each call is one batch and gives what it emits, payload columns left out."""

    def __init__(self, join: Join) -> None:
        self.machine: Any = new_machine(json.dumps(join.node()))

    def batch(self, *events: list[Any]) -> list[Any]:
        [emitted] = json.loads(self.machine.run(json.dumps([events])))
        return [_short(change) for change in emitted]

    def left(self, time: int | None, key: str | None = "k", value: int = 0) -> list[Any]:
        return self.batch(["left", "+I", [time, key, value, ""]])

    def right(self, time: int | None, key: str | None = "k", value: int = 0) -> list[Any]:
        return self.batch(["right", "+I", [time, key, value, ""]])

    def watermark(self, ms: int) -> list[Any]:
        """On both inputs; only what is emitted besides the watermark."""
        emitted = self.batch(["watermark", "left", ms], ["watermark", "right", ms])
        return [change for change in emitted if isinstance(change, tuple)]

    @property
    def rows(self) -> list[int]:
        found: list[int] = json.loads(self.machine.stateRows())
        return found


def _short(change: list[Any]) -> Any:
    """(left time, right time), or the watermark that is passed on."""
    if change[0] == "watermark":
        return change[1]
    assert change[0] == "+I"
    return change[1], change[5]


def event_time(join_type: str, lower: int, upper: int, **rest: Any) -> Run:
    return Run(Join(join_type, True, lower, upper, **rest))


def clock(text: str) -> int:
    """Milliseconds of 2022-10-10, as HH:MM:SS[.mmm]."""
    hours, minutes, seconds = text.split(":")
    day = 1_665_360_000_000
    return day + int(hours) * 60 * MINUTE + int(minutes) * MINUTE + round(float(seconds) * 1000)


def test_new_partition_counts_from_its_first_record() -> None:
    """The clock still knows of one partition on each side."""
    run = event_time("inner", 0, 0)
    assert run.batch(["watermark", "left", 50], ["watermark", "right", 50]) == [50]
    run.batch(["watermark", "left", 60, 1])
    assert run.batch(["watermark", "left", 90], ["watermark", "right", 90]) == [60]
    assert run.batch(["watermark", "left", 80, 1]) == [80]


def test_bounds_of_seed_000() -> None:
    """Qualified bounds, expiration and cleanup times of the four rows, as the seed has them."""
    tens = 10 * MINUTE
    bounds = jvm().rejoin.core.time.IntervalBounds(-tens, tens, (tens + tens) // 2)
    figures = [
        (LEFT, "10:00:00", "09:50:00", "10:10:00", "10:20:00.001"),
        (RIGHT, "10:01:02", "09:51:02", "10:11:02", "10:21:02.001"),
        (LEFT, "10:05:00", "09:55:00", "10:15:00", "10:25:00.001"),
        (RIGHT, "10:12:00", "10:02:00", "10:22:00", "10:32:00.001"),
    ]
    for side, time, lower, upper, cleanup in figures:
        assert bounds.qualifiedLowerBound(side, clock(time)) == clock(lower)
        assert bounds.qualifiedUpperBound(side, clock(time)) == clock(upper)
        assert bounds.cleanupTime(side, clock(time)) == clock(cleanup)
    assert bounds.expirationTime(RIGHT, 0) == -600_001
    assert bounds.expirationTime(LEFT, clock("10:00:00")) == clock("09:49:59.999")
    assert bounds.expirationTime(RIGHT, clock("10:01:02")) == clock("09:51:01.999")
    assert bounds.expirationTime(LEFT, clock("10:05:00")) == clock("09:54:59.999")


def test_four_rows_of_seed_000() -> None:
    """The larger watermark counts; rows leave at the seed's cleanup times, one after the other."""
    tens = 10 * MINUTE
    run = event_time("full", -tens, tens, min_cleanup=tens, policy="max")

    def arrive(side: str, key: str, time: str) -> list[Any]:
        row = [side, "+I", [clock(time), key, 0, ""]]
        return run.batch(row, ["watermark", side, clock(time)])

    assert arrive("left", "1001", "10:00:00") == [clock("10:00:00") - tens]
    assert arrive("right", "1002", "10:01:02") == [clock("10:01:02") - tens]
    joined = (clock("10:05:00"), clock("10:01:02"))
    assert arrive("left", "1002", "10:05:00") == [joined, clock("10:05:00") - tens]
    assert arrive("right", "1001", "10:12:00") == [clock("10:12:00") - tens]
    assert run.rows == [2, 2]

    cleanups: list[tuple[str, list[Any], list[int]]] = [
        ("10:20:00.001", [(clock("10:00:00"), None)], [1, 2]),
        ("10:21:02.001", [], [1, 1]),
        ("10:25:00.001", [], [0, 1]),
        ("10:32:00.001", [(None, clock("10:12:00"))], [0, 0]),
    ]
    for time, padded, left_in_state in cleanups:
        before = run.rows
        assert run.batch(["watermark", "left", clock(time) - 1]) == [clock(time) - 1 - tens]
        assert run.rows == before
        assert run.batch(["watermark", "right", clock(time)]) == [*padded, clock(time) - tens]
        assert run.rows == left_in_state
    assert run.machine.stateCells() == 1


def test_row_behind_the_watermark_is_joined_and_cached_while_its_window_is_open() -> None:
    """I1, I2; Flink's RowTimeIntervalJoinTest, common bounds."""
    run = event_time("inner", -10, 20, min_cleanup=15)
    assert run.batch(["watermark", "left", 1], ["watermark", "right", 1]) == [-19]
    assert run.left(1) == []
    assert run.left(2) == []
    assert run.right(2) == [(1, 2), (2, 2)]
    assert run.left(5) == [(5, 2)]
    assert run.right(15) == [(5, 15)]
    assert run.watermark(20) == []
    assert run.left(35) == [(35, 15)]
    assert run.machine.lateRows() == 0


def test_row_with_a_closed_window_still_probes_and_is_then_forgotten() -> None:
    """I3, I5: an inner row without a match is counted, not silently lost."""
    run = event_time("inner", -5, 9, min_cleanup=50)
    run.right(10)
    run.watermark(20)
    assert run.left(12) == [(12, 10)]
    assert run.left(30, "other") == []
    assert run.rows == [1, 1]
    assert run.left(3) == []
    assert run.machine.lateRows() == 1
    assert run.rows == [1, 1]


@pytest.mark.parametrize(("join_type", "padded"), [("left", [(2, None)]), ("right", [])])
def test_late_outer_row_is_padded_at_once(join_type: str, padded: list[Any]) -> None:
    """I4."""
    run = event_time(join_type, -5, 9)
    run.watermark(18)
    assert run.left(2) == padded
    assert run.rows == [0, 0]
    assert run.machine.lateRows() == (0 if padded else 1)


def test_row_whose_partners_all_lie_behind_it_is_not_late() -> None:
    """I5: with negative bounds a row in good time needs no place in state."""
    run = event_time("inner", -10, -7)
    run.watermark(10)
    assert run.right(13) == []
    assert (run.rows, run.machine.lateRows()) == ([0, 0], 0)


def test_padding_leaves_once_at_the_cleanup_time() -> None:
    """I6; Flink's RowTimeIntervalJoinTest, left outer join."""
    run = event_time("left", -5, 9, min_cleanup=7)
    run.left(19)
    run.left(20)
    assert run.right(25) == [(20, 25)]
    assert run.watermark(31) == []
    assert run.watermark(32) == [(19, None)]
    assert run.watermark(1_000_000) == []
    assert run.machine.stateCells() == 1


def test_residual_decides_what_counts_as_a_match() -> None:
    run = event_time("full", -10, 10, residual=True)
    run.left(1, value=5)
    assert run.right(2, value=5) == []
    assert run.right(3, value=6) == [(1, 3)]
    assert run.watermark(100) == [(None, 2)]


def test_where_does_not_make_a_match_undone() -> None:
    """A pair that WHERE hides was joined all the same: no padding later."""
    run = event_time("left", -10, 10, where=True)
    run.left(1)
    assert run.right(1, value=0) == []
    assert run.batch(["end"]) == [END]


def test_empty_window_pads_row_by_row_without_state() -> None:
    """I7, late rows included; nothing delays the watermark."""
    run = event_time("full", 5, -5)
    assert run.left(1) == [(1, None)]
    assert run.right(1) == [(None, 1)]
    assert run.batch(["watermark", "left", 50], ["watermark", "right", 50]) == [50]
    assert run.left(2) == [(2, None)]
    assert run.rows == [0, 0]
    inner = event_time("inner", 1, 0)
    assert inner.left(0) + inner.right(0) == []
    assert inner.machine.lateRows() == 0


def test_row_without_time_is_padded_or_counted() -> None:
    """I9: Flink would fail here."""
    run = event_time("left", -5, 5)
    assert run.left(None) == [(None, None)]
    assert run.right(None) == []
    assert (run.rows, run.machine.lateRows()) == ([0, 0], 1)


def test_null_keys_match_nothing_and_are_padded_in_time() -> None:
    """I8."""
    run = event_time("left", -5, 5)
    assert run.left(1, None) + run.right(1, None) == []
    assert run.rows == [1, 0]
    assert run.watermark(7) == [(1, None)]
    safe = event_time("left", -5, 5, nulls_never_match=False)
    assert safe.left(1, None) + safe.right(1, None) == [(1, 1)]


def test_times_before_1970_are_like_any_other() -> None:
    """Flink takes all these windows for closed ones."""
    run = event_time("left", -10, 20)
    assert run.left(-1000) + run.right(-1005) == [(-1000, -1005)]
    run.left(-900)
    assert run.watermark(-890) == []
    assert run.watermark(-889) == [(-900, None)]


def test_far_times_and_bounds_do_not_wrap_around() -> None:
    first, last = -(2**63) + 1, 2**63 - 1
    run = event_time("full", -10, 10)
    assert run.left(last) + run.right(first) == []
    assert run.right(last - 10) == [(last, last - 10)]
    assert run.left(first + 10) == [(first + 10, first)]
    assert run.batch(["end"]) == [END]
    wide = event_time("inner", -(2**62), 2**63 - 1)
    assert wide.left(5) + wide.right(last) == []
    assert wide.right(first + 10) == [(5, first + 10)]
    assert wide.batch(["watermark", "left", 0], ["watermark", "right", 0]) == [first]


def test_processing_time_is_the_clock_at_arrival() -> None:
    """Flink's ProcTimeIntervalJoinTest, common bounds; the values are those of its rows."""
    run = Run(Join("inner", False, -10, 20, 15))
    events: list[list[list[Any]]] = [
        [["clock", 1], ["left", "1", "1a1"]],
        [["clock", 2], ["left", "2", "2a2"]],
        [["clock", 3], ["left", "1", "1a3"]],
        [["right", "1", "1b3"]],
        [["clock", 4], ["right", "2", "2b4"]],
        [["clock", 13], ["right", "1", "1b13"]],
        [["clock", 33], ["left", "1", "1a33"]],
        [["left", "2", "2a33"]],
        [["right", "2", "2b33"]],
    ]
    batches = [
        [e if e[0] == "clock" else [e[0], "+I", [None, e[1], 0, e[2]]] for e in batch]
        for batch in events
    ]
    found = [
        [(row[4], row[8]) for row in rows]
        for rows in json.loads(run.machine.run(json.dumps(batches)))
    ]
    assert found == [
        [],
        [],
        [],
        [("1a1", "1b3"), ("1a3", "1b3")],
        [("2a2", "2b4")],
        [("1a3", "1b13")],
        [("1a33", "1b13")],
        [],
        [("2a33", "2b33")],
    ]


def test_processing_time_pads_by_the_clock_and_at_the_end() -> None:
    """I6, I10: rows of one tick have one time, whichever side is applied first."""
    run = Run(Join("full", False, 0, 10))

    def row(side: str, key: str) -> list[Any]:
        return [side, "+I", [1, key, 0, ""]]

    assert run.batch(["clock", 100], row("right", "a"), row("left", "a"), row("left", "b")) == [
        (1, 1)
    ]
    assert run.batch(["clock", 100]) == []
    assert run.batch(["clock", 101]) == [(1, None)]
    assert run.batch(row("right", "c")) == []
    assert run.batch(["end"]) == [(None, 1), END]
    assert run.machine.stateCells() == 1


class EarlyRun(Run):
    """The same with early padding: (kind, left time, right time)."""

    def batch(self, *events: list[Any]) -> list[Any]:
        [emitted] = json.loads(self.machine.run(json.dumps([events])))
        return [(c[0], c[1], c[5]) if c[0] != "watermark" else c[1] for c in emitted]


def early(join_type: str, lower: int, upper: int, delay: int, **rest: Any) -> EarlyRun:
    return EarlyRun(Join(join_type, True, lower, upper, early_fire=delay, **rest))


def test_padding_leaves_after_the_delay_and_is_taken_back() -> None:
    """W1, W2, W3, W5."""
    run = early("full", -5, 9, 3)
    assert run.left(10) + run.right(30) == []
    assert run.watermark(12) == []
    assert run.watermark(13) == [("+I", 10, None)]
    run.machine.restart()
    assert run.right(14) == [("-U", 10, None), ("+U", 10, 14)]
    assert run.right(15) == [("+I", 10, 15)]
    assert run.left(40) == []
    assert run.watermark(33) == [("+I", None, 30)]
    assert run.watermark(43) == [("+I", 40, None)]
    assert run.watermark(1_000) == []
    assert run.machine.stateCells() == 1


def test_early_padding_reads_the_pages_that_are_due_and_writes_none() -> None:
    """Each row has a page of its own; the key's header and the group's cells are small."""
    run = early("left", -90, 90, 3)
    run.batch(*(["left", "+I", [time, "k", 0, "x" * 4000]] for time in range(10, 30)))
    run.machine.restart()
    assert run.watermark(15) == [("+I", time, None) for time in (10, 11, 12)]
    _, _, read, written = json.loads(run.machine.stateTraffic())
    assert 3 * 4000 < read < 6 * 4000
    assert written < 1000
    assert run.rows == [20, 0]


def test_row_whose_delay_is_over_is_padded_as_it_comes() -> None:
    """W4; with its match in the same epoch only the pair shows."""
    run = early("left", -50, 50, 3)
    run.watermark(40)
    assert run.left(20) == [("+I", 20, None)]
    row = ["left", "+I", [21, "other", 0, ""]], ["right", "+I", [60, "other", 0, ""]]
    assert run.batch(*row) == [("+U", 21, 60)]
    assert run.right(61) == [("-U", 20, None), ("+U", 20, 61)]


def test_delay_beyond_the_window_pads_once() -> None:
    """W6; Flink's ProcTimeIntervalJoinTest, a delay of 20 and a window up to 5 ms."""
    run = early("left", -5, 9, 20)
    run.left(10)
    assert run.watermark(15) == []
    assert run.watermark(16) == [("+I", 10, None)]
    assert run.watermark(40) == []
    clocked = EarlyRun(Join("left", False, -5, 9, early_fire=20))
    clocked.batch(["clock", 10], ["left", "+I", [None, "k", 0, ""]])
    assert clocked.batch(["clock", 35]) == [("+I", None, None)]
    assert clocked.batch(["clock", 36]) == []


def test_no_correction_is_late_downstream() -> None:
    """The padding of a row that leaves the state with this watermark is taken back just in time."""
    run = early("left", -5, 5, 3, min_cleanup=7)
    run.left(10)
    marks = ["watermark", "left", 22], ["watermark", "right", 22]
    assert run.batch(*marks) == [("+I", 10, None), 9]
    assert run.right(15) == [("-U", 10, None), ("+U", 10, 15)]


def test_hot_key_costs_the_pages_that_its_window_overlaps() -> None:
    """Rows of 2 kB make hundreds of pages on two levels; each probe meets its partners only."""
    run = event_time("full", 0, 2)
    filler = "x" * 2048
    rows = [["left", "+I", [time * 10, "k", 0, filler]] for time in range(1200)]
    for start in range(0, len(rows), 400):
        assert run.batch(*rows[start : start + 400]) == []
        run.machine.restart()
    assert run.machine.stateCells() > 600
    for time in (11_990, 0, 6_000):
        assert run.right(time - 1) == [(time, time - 1)]
        assert json.loads(run.machine.stateTraffic())[0] <= 8  # cells read, of more than 600
        run.machine.restart()
    run.left(6_003)
    assert run.watermark(6_000) == [(t * 10, None) for t in range(1, 600)]
    run.machine.restart()
    assert run.rows == [601, 2]
    assert run.watermark(20_000) == [(t, None) for t in [6_003, *range(6_010, 11_990, 10)]]
    assert run.rows == [0, 0]
    assert run.machine.stateCells() == 1


def test_updates_are_refused() -> None:
    run = event_time("inner", 0, 0)
    with pytest.raises(Exception, match="takes \\+I only"):
        run.batch(["left", "-D", [1, "k", 0, ""]])
