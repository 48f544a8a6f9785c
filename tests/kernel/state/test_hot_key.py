"""Many rows under one join key: what a further change reads and writes, and how they expire."""

import json
from dataclasses import dataclass
from typing import Any

import pytest

from tests.harness.gateway import new_machine
from tests.kernel.oracle.regular import Join
from tests.kernel.oracle.rows import ID, RESIDUALS, K
from tests.kernel.oracle.sides import Side

pytestmark = pytest.mark.service  # it takes long

ROWS = 20_000
# the group's cell, the header, and the pages that a change, a split or a merge may touch
CELLS = 8
BYTES = 60_000

KEYED = Side("has-unique-key", (ID,), upsert=False)
COUNTED = Side("no-unique-key", (), upsert=False)


def row(number: int, value: int = 0) -> list[Any]:
    return [number, 1, "a", value, "text"]


@dataclass
class HotKey:
    """A machine with many rows of one side under the key 1."""

    machine: Any

    @classmethod
    def fill(cls, join: Join, side: str, rows: int = ROWS) -> "HotKey":
        machine = new_machine(json.dumps(join.node()))
        for start in range(0, rows, 5_000):
            batch = [[side, "+I", row(n)] for n in range(start, min(start + 5_000, rows))]
            machine.run(json.dumps([batch]))
        return cls(machine)

    def change(self, *events: list[Any]) -> list[Any]:
        """One batch; what it emits. Fails where it touches more state than a few pages."""
        before = json.loads(self.machine.stateTraffic())
        [emitted] = json.loads(self.machine.run(json.dumps([list(events)])))
        after = json.loads(self.machine.stateTraffic())
        reads, writes, read, written = (b - a for a, b in zip(before, after, strict=True))
        assert max(reads, writes) <= CELLS, f"{events} reads {reads} cells, writes {writes}"
        assert max(read, written) <= BYTES, f"{events} reads {read} bytes, writes {written}"
        return list(emitted)


def join_of(join_type: str, side: Side, **others: Any) -> Join:
    return Join(side, side, join_type, (K,), (True,), others.pop("residual", None), **others)


@pytest.mark.parametrize("side", [KEYED, COUNTED], ids=["has-unique-key", "no-unique-key"])
@pytest.mark.parametrize("join_type", ["inner", "left", "right", "full", "semi", "anti"])
@pytest.mark.parametrize("hot", ["left", "right"])
def test_changes_of_the_hot_side_touch_a_few_pages(join_type: str, side: Side, hot: str) -> None:
    key = HotKey.fill(join_of(join_type, side), hot)
    for number in (0, 1, ROWS // 2, ROWS - 1):
        key.change([hot, "-U", row(number)], [hot, "+U", row(number, 1)])
        key.change([hot, "-D", row(number, 1)])
        key.change([hot, "+I", row(number)])
    for number in range(ROWS, ROWS + 200):
        key.change([hot, "+I", row(number)])
    assert sum(json.loads(key.machine.stateRows())) == ROWS + 200


@pytest.mark.parametrize("join_type", ["semi", "anti"])
@pytest.mark.parametrize("ttl_ms", [(0, 0), (60_000, 0)], ids=["for ever", "left TTL"])
def test_semi_and_anti_join_ask_a_hot_right_side_nothing(
    join_type: str, ttl_ms: tuple[int, int]
) -> None:
    key = HotKey.fill(join_of(join_type, KEYED, ttl_ms=ttl_ms), "right")
    arrived = key.change(["left", "+I", row(7)])
    assert [change[0] for change in arrived] == (["+I"] if join_type == "semi" else [])
    assert key.change(["right", "-D", row(3)]) == []
    assert key.change(["right", "+I", row(3)]) == []
    assert len(key.change(["left", "-D", row(7)])) == len(arrived)


@pytest.mark.parametrize("join_type", ["semi", "anti"])
@pytest.mark.parametrize("ttl_ms", [(0, 0), (60_000, 0)], ids=["for ever", "left TTL"])
def test_further_matches_of_hot_left_rows_touch_none(
    join_type: str, ttl_ms: tuple[int, int]
) -> None:
    key = HotKey.fill(join_of(join_type, KEYED, ttl_ms=ttl_ms), "left")
    key.machine.run(json.dumps([[["right", "+I", row(1)]]]))
    assert key.change(["right", "+I", row(2)]) == []
    assert key.change(["right", "-D", row(1)]) == []


@pytest.mark.parametrize(("residual", "reads"), [(RESIDUALS[0], True), (None, False)])
def test_a_residual_predicate_reads_the_other_sides_rows(residual: str | None, reads: bool) -> None:
    """Which of them are matches cannot be known otherwise; NOT IN of columns with NULLs is one."""
    key = HotKey.fill(join_of("anti", KEYED, residual=residual), "right", rows=5_000)
    before = json.loads(key.machine.stateTraffic())
    key.machine.run(json.dumps([[["left", "+I", row(7)]]]))
    cells = json.loads(key.machine.stateTraffic())[0] - before[0]
    assert (cells > 40) == reads


def test_an_inner_step_without_rows_costs_a_hot_side_nothing() -> None:
    side = KEYED.spec("s0")
    specs = [side, KEYED.spec("s1"), KEYED.spec("s2")]
    columns = [field for spec in specs for field in spec["schema"]["fields"]]
    joined = join_of("inner", KEYED).node()
    node = {name: joined[name] for name in ("key", "filterNulls", "output", "timing")} | {
        "kind": "multi-join",
        "joinTypes": ["left", "inner"],
        "sides": specs,
        "schema": {"type": "struct", "fields": columns},
        "residuals": [None, None],
        "rows": [{"schema": spec["schema"], "key": [K]} for spec in specs],
    }
    machine = new_machine(json.dumps(node))
    machine.run(json.dumps([[[0, "+I", row(n)] for n in range(5_000)]]))
    key = HotKey(machine)
    assert key.change([1, "+I", row(1)]) == []
    assert key.change([0, "-D", row(7)]) == []
    assert len(json.loads(machine.run(json.dumps([[[2, "+I", row(1)]]])))[0]) == 4_999


@pytest.mark.parametrize("hot", ["left", "right"])
def test_expired_rows_leave_page_by_page(hot: str) -> None:
    key = HotKey.fill(join_of("left", KEYED, ttl_ms=(60_000, 60_000)), hot)
    assert key.machine.stateCells() > ROWS // 200
    key.machine.run(json.dumps([[["clock", 30_000]], [[hot, "+I", row(ROWS)]]]))
    key.machine.run(json.dumps([[["clock", 65_537]]]))
    assert sum(json.loads(key.machine.stateRows())) == 1
    key.change(["clock", 65_538])
    key.machine.run(json.dumps([[["clock", 98_304]]]))
    assert sum(json.loads(key.machine.stateRows())) == 0
    assert key.machine.stateCells() == 1


@pytest.mark.parametrize(("refreshed", "left_over"), [(89_999, ROWS), (90_000, 0)])
def test_a_refresh_of_all_rows_revives_none(refreshed: int, left_over: int) -> None:
    key = HotKey.fill(join_of("semi", KEYED, ttl_ms=(60_000, 0)), "left")
    key.machine.run(json.dumps([[["right", "+I", row(1)]]]))
    assert key.change(["clock", 30_000], ["right", "+I", row(2)]) == []
    late = [["clock", refreshed], ["right", "+I", row(3)]]  # and a visit of every page that was due
    assert json.loads(key.machine.run(json.dumps([late]))) == [[]]
    deletions = [["right", "-D", row(number)] for number in (1, 2, 3)]
    [emitted] = json.loads(key.machine.run(json.dumps([[["clock", 91_000], *deletions]])))
    assert [change[0] for change in emitted] == ["-D"] * left_over


def test_a_refresh_before_the_clean_up_revives_none() -> None:
    key = HotKey.fill(join_of("semi", KEYED, ttl_ms=(60_000, 0)), "left", 2_000)
    key.machine.run(json.dumps([[["right", "+I", row(1)]]]))
    assert key.change(["clock", 60_500], ["right", "+I", row(2)]) == []
    deletions = [["right", "-D", row(number)] for number in (1, 2)]
    assert json.loads(key.machine.run(json.dumps([deletions]))) == [[]]


def test_rows_grow_only_where_they_expire() -> None:
    def size(ttl_ms: tuple[int, int]) -> int:
        rows = HotKey.fill(join_of("left", KEYED, ttl_ms=ttl_ms), "left", 50)
        return int(rows.machine.stateBytes())

    assert size((0, 60_000)) < size((60_000, 0))
    assert size((0, 0)) <= size((0, 60_000))
