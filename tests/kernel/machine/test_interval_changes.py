"""Interval joins of rows that change, step by step: cases J1 to J13 of docs/semantics.md."""

import json
from typing import Any

import pytest

from tests.harness.gateway import new_machine
from tests.kernel.oracle.interval import Join

END = 2**63 - 1


class Run:
    """One machine; each call is one batch and gives what it emits: kind, left time, right time."""

    def __init__(self, join_type: str, lower: int, upper: int, **rest: Any) -> None:
        node = Join(join_type, True, lower, upper, **rest).node() | {"changes": True}
        self.machine: Any = new_machine(json.dumps(node))

    def batch(self, *events: list[Any]) -> list[Any]:
        [emitted] = json.loads(self.machine.run(json.dumps([events])))
        return [(c[0], c[1], c[5]) if c[0] != "watermark" else c[1] for c in emitted]

    def left(self, kind: str, time: int | None, key: str | None = "k", value: int = 0) -> list[Any]:
        return self.batch(["left", kind, [time, key, value, ""]])

    def right(
        self, kind: str, time: int | None, key: str | None = "k", value: int = 0
    ) -> list[Any]:
        return self.batch(["right", kind, [time, key, value, ""]])

    def watermark(self, ms: int) -> list[Any]:
        """On both inputs; only what is emitted besides the watermark."""
        emitted = self.batch(["watermark", "left", ms], ["watermark", "right", ms])
        return [change for change in emitted if isinstance(change, tuple)]

    @property
    def rows(self) -> list[int]:
        found: list[int] = json.loads(self.machine.stateRows())
        return found

    @property
    def counts(self) -> tuple[int, int]:
        """Late rows, unknown retractions."""
        return self.machine.lateRows(), self.machine.unknownRetractions()


def test_changes_of_open_rows_take_back_and_join_anew() -> None:
    """J1, J2, J3: also of a row that moves in time or to another key."""
    run = Run("inner", -10, 10)
    assert run.left("+I", 5) + run.right("+I", 8) == [("+I", 5, 8)]
    moved = [["right", "-U", [8, "k", 0, ""]], ["right", "+U", [9, "k", 0, ""]]]
    assert run.batch(*moved) == [("-U", 5, 8), ("+U", 5, 9)]
    assert run.right("-U", 9) + run.right("+U", 9, "other") == [("-U", 5, 9)]
    assert run.left("+I", 9, "other") == [("+I", 9, 9)]
    assert run.left("-D", 9, "other") == [("-D", 9, 9)]
    assert run.rows == [1, 1]


def test_row_that_is_deleted_before_its_window_closes_is_not_padded() -> None:
    """J4, J5: the padding leaves when the row closes, and stays from then on (J7)."""
    run = Run("left", -10, 10)
    run.left("+I", 5)
    assert run.left("-D", 5) == []
    assert run.rows == [0, 0]
    run.left("+I", 5)
    assert run.watermark(14) == []
    assert run.watermark(15) == [("+I", 5, None)]
    assert run.left("-D", 5) == []
    assert run.counts == (1, 0)


def test_paddings_of_closed_rows_follow_their_open_partners() -> None:
    """J1, J2: netted within an epoch, where the partner is only updated."""
    run = Run("left", -10, 10)
    run.left("+I", 5)
    run.watermark(16)
    assert run.right("+I", 14) == [("-D", 5, None), ("+I", 5, 14)]
    update = [["right", "-U", [14, "k", 0, ""]], ["right", "+U", [14, "k", 1, ""]]]
    assert run.batch(*update) == [("-U", 5, 14), ("+U", 5, 14)]
    assert run.right("-D", 14, value=1) == [("-D", 5, 14), ("+I", 5, None)]


def test_rows_stay_until_no_open_row_can_be_their_partner() -> None:
    """J6: the width of the window, and the minimum cleanup interval."""
    run = Run("full", -10, 20, min_cleanup=7)
    run.left("+I", 100)
    run.right("+I", 100)
    assert run.watermark(136) == []
    assert run.rows == [1, 1]
    assert run.watermark(137) == []
    assert run.rows == [0, 0]
    assert run.machine.stateCells() == 1


def test_late_row_meets_open_rows_and_is_kept_for_their_changes() -> None:
    """J8, J9."""
    run = Run("left", -10, 10)
    run.right("+I", 12)
    run.watermark(20)
    assert run.left("+I", 9) == [("+I", 9, 12)]
    assert run.right("-D", 12) == [("-D", 9, 12), ("+I", 9, None)]
    assert run.left("+I", 8) == [("+I", 8, None)]
    assert run.right("+I", 1) == []
    assert run.counts == (1, 0)


def test_no_change_of_a_closed_row_is_lost_silently() -> None:
    """J7: +U as well, whose -U was late, too; to the topic for late rows where there is one."""
    node = Join("left", True, -10, 10).node() | {"changes": True}
    node["output"] = {**node["output"], "lateTopic": "late"}
    run = Run("left", -10, 10)
    run.machine = new_machine(json.dumps(node))
    run.machine.run(json.dumps([[["watermark", "left", 50], ["watermark", "right", 50]]]))
    rows = [["left", "-U", [5, "k", 1, ""]], ["left", "+U", [5, "k", 2, ""]]]
    [found] = json.loads(run.machine.run(json.dumps([[*rows, ["right", "-D", [5, "k", 3, ""]]]])))
    assert [(f[0], f[1], f[2], json.loads(f[3])) for f in found] == [
        ("reject", "late", "late", {"l_t": 5, "l_k": "k", "l_v": 1, "l_id": ""}),
        ("reject", "late", "late", {"l_t": 5, "l_k": "k", "l_v": 2, "l_id": ""}),
        ("reject", "late", "late", {"r_t": 5, "r_k": "k", "r_v": 3, "r_id": ""}),
    ]
    assert run.counts == (3, 0)


def test_equal_rows_are_taken_back_one_by_one() -> None:
    """J10: a fourth retraction of three equal rows is unknown."""
    run = Run("inner", -10, 10)
    run.batch(*[["left", "+I", [5, "k", 0, ""]]] * 3)
    assert run.right("+I", 5) == [("+I", 5, 5)] * 3
    assert run.left("-D", 5) == [("-D", 5, 5)]
    assert run.batch(*[["left", "-D", [5, "k", 0, ""]]] * 3) == [("-D", 5, 5)] * 2
    assert run.counts == (0, 1)


def test_row_that_comes_and_goes_in_an_epoch_leaves_no_trace() -> None:
    run = Run("full", -10, 10)
    run.right("+I", 5)
    both = [["left", "+I", [5, "k", 0, ""]], ["left", "-D", [5, "k", 0, ""]]]
    assert run.batch(*both) == []
    assert run.rows == [0, 1]


@pytest.mark.parametrize(("lower", "late"), [(-10, 2), (20, 0)])
def test_rows_without_partners_are_padded_without_state(lower: int, late: int) -> None:
    """J11, J12: no time, or no time that could match."""
    run = Run("left", lower, 10)
    time = None if late else 5
    assert run.left("+I", time) == [("+I", time, None)]
    assert run.left("-U", time) == [("-D", time, None)]
    assert run.right("+I", time) + run.right("-D", time) == []
    assert (run.rows, run.counts) == ([0, 0], (late, 0))


def test_null_keys_match_nothing() -> None:
    """J13."""
    run = Run("left", -10, 10)
    assert run.left("+I", 1, None) + run.right("+I", 1, None) + run.right("-D", 1, None) == []
    assert (run.rows, run.counts) == ([1, 0], (0, 0))
    assert run.watermark(11) == [("+I", 1, None)]


def test_watermark_waits_for_the_last_correction() -> None:
    run = Run("inner", -10, 20, min_cleanup=5)
    assert run.batch(["watermark", "left", 100], ["watermark", "right", 100]) == [65]
    assert run.batch(["end"]) == [END]


def test_hot_key_costs_the_pages_that_a_change_touches() -> None:
    run = Run("left", -10, 10)
    run.batch(*[["left", "+I", [t * 100, "k", t, "x" * 200]] for t in range(2_000)])
    before = json.loads(run.machine.stateTraffic())
    run.left("-U", 100_000, value=1_000)
    run.batch(["left", "-D", [100_000, "k", 1_000, "x" * 200]])
    after = json.loads(run.machine.stateTraffic())
    assert after[1] - before[1] < 12
