"""What the temporal join machines keep, forget, hold back and refuse; results are the oracle's."""

import json
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.harness.gateway import new_machine
from tests.kernel.oracle import latest, temporal_events
from tests.kernel.oracle.check import Batch, Emitted
from tests.kernel.oracle.probes import Identity

SINGLE = "join-key-contains-unique-key"


class Driven:
    """A machine of the kernel that takes one batch at a time."""

    def __init__(self, node: dict[str, Any]) -> None:
        self._machine = new_machine(json.dumps(node))

    def run(self, *events: list[Any]) -> Emitted:
        [emitted] = json.loads(self._machine.run(json.dumps([list(events)])))
        return list(emitted)

    def restart(self) -> None:
        self._machine.restart()

    @property
    def rows(self) -> list[int]:
        return list(json.loads(self._machine.stateRows()))

    def traffic_of(self, *events: list[Any]) -> tuple[int, int]:
        """The most cells and bytes that one batch reads, or writes."""
        before = json.loads(self._machine.stateTraffic())
        self.run(*events)
        after = json.loads(self._machine.stateTraffic())
        reads, writes, read, written = (b - a for a, b in zip(before, after, strict=True))
        return max(reads, writes), max(read, written)

    def kept(self, key: str) -> list[Any]:
        return list(json.loads(self._machine.kept(json.dumps([key]))))

    @property
    def size(self) -> int:
        return int(self._machine.stateBytes())

    @property
    def cells(self) -> int:
        return int(self._machine.stateCells())


def event_time(**changed: Any) -> Driven:
    given: dict[str, Any] = {
        "is_left": True,
        "nulls_never_match": True,
        "residual": False,
        "where": False,
        "policy": "min",
        "idle_timeout_ms": 0,
        "paired": False,
    }
    return Driven(temporal_events.Join(**{**given, **changed}).node())


def processing_time(fails: bool = False, **changed: Any) -> Driven:
    given: dict[str, Any] = {"is_left": True, "layout": SINGLE}
    node = latest.Join(**{**given, **changed}).node()
    if fails:
        node["gate"]["onTimeout"] = "fail"
    return Driven(node)


def marks(time: int) -> Batch:
    return [["watermark", "left", time], ["watermark", "right", time]]


def test_idle_retention_of_event_time() -> None:
    """Flink's numbers: 4 to 6 ms, prolonged by rows and by the watermark that reaches them."""
    join = event_time(ttl_ms=4)
    join.run(["clock", 3], ["right", "+I", [3, "k1", 30]])
    join.run(["clock", 6], ["left", "+I", [6, "k1", 0, "a"]])
    assert join.run(*marks(7)) == [["+I", 6, "k1", 0, "a", 3, "k1", 30]]
    join.run(["right", "+U", [3, "k1", 50]])
    join.run(["clock", 9], ["left", "+I", [9, "k1", 0, "b"]])
    assert join.run(*marks(13)) == [["+I", 9, "k1", 0, "b", 3, "k1", 50]]
    join.run(["clock", 15], ["left", "+I", [15, "k1", 0, "c"]])
    assert join.run(*marks(16)) == [["+I", 15, "k1", 0, "c", None, None, None]]


def test_idle_keys_are_found_without_rows_of_theirs() -> None:
    join = event_time(ttl_ms=1_000)
    join.run(["clock", 0], *(["right", "+I", [1, f"k{i}", i]] for i in range(50)))
    join.run(["left", "+I", [9, "k0", 0, "waits"]])
    assert join.rows == [1, 50]
    join.run(["clock", 10_000])
    assert join.rows == [0, 0]
    assert join.run(*marks(20)) == []
    assert join.cells == 1


def test_versions_of_a_key_in_pages() -> None:
    join = event_time()
    order = sorted(range(500), key=lambda i: i * 7919 % 500)
    join.run(*(["right", "+I", [10 * i - 2_000, "k", i]] for i in order))
    join.restart()
    assert join.cells > 3
    probes = [["left", "+I", [10 * i - 1_995, "k", 0, str(i)]] for i in order]
    found = join.run(*probes, *marks(5_000))
    assert [(row[4], row[7]) for row in found] == [(str(i), i) for i in order]
    join.restart()
    assert join.rows == [0, 1]
    assert join.cells == 2


def test_extreme_times() -> None:
    first, last = -(2**63) + 1, 2**63 - 1
    join = event_time()
    join.run(["right", "+I", [first, "k", 1]], ["left", "+I", [last, "k", 0, "b"]])
    join.run(["left", "+I", [first, "k", 0, "a"]], ["right", "+I", [last, "k", 2]])
    assert join.run(*marks(first)) == [["+I", first, "k", 0, "a", first, "k", 1]]
    join.restart()
    assert join.run(*marks(last - 1)) == []
    assert join.run(["end"]) == [["+I", last, "k", 0, "b", last, "k", 2]]


def test_late_probe_rows_go_somewhere() -> None:
    join = event_time(late_topic="orders-late")
    join.run(["right", "+I", [1, "k", 10]], *marks(5))
    value = '{"l_t":5,"l_k":"k","l_v":null,"l_id":"a"}'
    late = ["left", "-D", [5, "k", None, "a"]]
    assert join.run(late, *marks(6)) == [["reject", "orders-late", "late", value]]
    assert join.rows == [0, 1]


def test_rows_wait_until_the_build_side_is_loaded() -> None:
    join = processing_time(gate=latest.Gate("loaded"))
    join.run(*(["left", "+I", [str(i), "k", 0]] for i in range(3)))
    join.run(["right", "+I", [1, "k", 10]], ["left", "+I", ["3", "other", 0]])
    join.restart()
    assert join.rows == [4, 1]
    join.run(["right", "+U", [1, "k", 20]])
    found = join.run(["left", "+I", ["4", "k", 0]], ["loaded", "right"])
    of_key = [row for row in found if row[2] == "k"]
    assert of_key == [["+I", str(i), "k", 0, 1, "k", 20] for i in (0, 1, 2, 4)]
    assert [row for row in found if row[2] != "k"] == [["+I", "3", "other", 0, None, None, None]]
    assert join.rows == [0, 1]
    assert join.run(["right", "-D", [1, "k", 20]]) == []
    assert join.run(["left", "+U", ["5", "k", 0]]) == [["+U", "5", "k", 0, None, None, None]]


def test_many_waiting_rows_under_one_key() -> None:
    join = processing_time(gate=latest.Gate("watermark", at_ms=100))
    for start in range(0, 5_000, 500):
        join.run(*(["left", "+I", [str(start + i), "k", 0]] for i in range(500)))
        join.restart()
    assert join.rows == [5_000, 0]
    assert join.cells > 50
    found = join.run(["right", "+I", [1, "k", 10]], ["watermark", "right", 100])
    assert [row[1] for row in found] == [str(i) for i in range(5_000)]
    assert {row[6] for row in found} == {10}
    assert join.cells == 3


def test_watermark_stays_behind_rows_that_wait() -> None:
    join = processing_time(gate=latest.Gate("loaded"), forwards=True)
    assert join.run(["left", "+I", ["1", "k", 0]], ["watermark", "left", 50]) == []
    assert join.run(["watermark", "right", 70]) == []
    found = join.run(["loaded", "right"])
    assert found == [["+I", "1", "k", 0, None, None, None], ["watermark", 50]]
    assert join.run(["watermark", "right", 90]) == []
    assert join.run(["watermark", "left", 60]) == [["watermark", 60]]


def test_says_that_it_is_loaded_once_nothing_waits() -> None:
    join = processing_time(gate=latest.Gate("watermark", at_ms=10), forwards=True)
    assert join.run(["loaded", "right"], ["left", "+I", ["1", "k", 0]]) == []
    assert join.run(["loaded", "left"]) == []
    found = join.run(["watermark", "right", 10])
    assert found == [["+I", "1", "k", 0, None, None, None], ["loaded"]]
    join.restart()
    assert join.run(["loaded", "left"], ["watermark", "right", 11]) == []


@pytest.mark.parametrize(
    ("kind", "aim"),
    [("loaded", "the end that it had at the first start"), ("watermark", "the watermark 100 ms")],
)
def test_a_build_side_that_does_not_load(kind: str, aim: str) -> None:
    gate = latest.Gate(kind, at_ms=100, timeout_ms=60_000)
    join = processing_time(fails=True, gate=gate)
    join.run(["clock", 1_000], ["left", "+I", ["1", "k", 0]])
    join.run(["clock", 60_999])
    with pytest.raises(Py4JJavaError, match="'rates' is not loaded after 60000 ms") as failed:
        join.run(["clock", 61_000])
    told = str(failed.value)
    assert f"not at {aim}: partition 0" in told
    assert "'rejoin.bootstrap.timeout'" in told
    assert "'rejoin.bootstrap.on-timeout' = 'go'" in told


def test_a_build_watermark_that_moves_prolongs_the_wait() -> None:
    join = processing_time(gate=latest.Gate("watermark", at_ms=100, timeout_ms=10))
    join.run(["clock", 0], ["left", "+I", ["1", "k", 0]])
    join.run(["clock", 9], ["watermark", "right", 50])
    assert join.run(["clock", 18]) == []
    assert join.run(["clock", 19]) == [["+I", "1", "k", 0, None, None, None]]


def test_lookup_by_columns_that_are_no_key() -> None:
    """A probe row joins all rows of the moment; NULL equals nothing."""
    join = processing_time(layout="no-unique-key")
    rows = [[i, "k", i] for i in range(1_000)]
    join.run(*(["right", "+I", row] for row in [*rows, rows[7], [1, None, 1]]))
    assert join.rows == [0, 1_001]
    found = join.run(["left", "+I", ["1", "k", 0]], ["left", "+I", ["2", None, 0]])
    assert sorted(row[6] for row in found if row[1] == "1") == sorted([*range(1_000), 7])
    assert [row for row in found if row[1] == "2"] == [["+I", "2", None, 0, None, None, None]]
    join.run(*(["right", "-D", row] for row in rows))
    assert join.run(["left", "+I", ["3", "k", 0]]) == [["+I", "3", "k", 0, 7, "k", 7]]
    assert join.cells == 2


def test_idle_retention_of_processing_time() -> None:
    """Flink's numbers: 10 to 15 ms."""
    join = processing_time(is_left=False, ttl_ms=10)
    join.run(["clock", 1], ["left", "+I", ["1", "1", 0]])
    join.run(["clock", 2], ["right", "+I", [2, "2", 22]])
    assert len(join.run(["clock", 3], ["left", "+I", ["2", "2", 0]])) == 1
    assert join.run(["clock", 18], ["left", "+I", ["3", "2", 0]]) == []


def test_nothing_expires_while_the_gate_is_closed() -> None:
    join = processing_time(ttl_ms=10, gate=latest.Gate("loaded"))
    join.run(["clock", 0], ["right", "+I", [1, "k", 10]], ["left", "+I", ["1", "k", 0]])
    join.run(["clock", 100_000])
    found = join.run(["clock", 200_000], ["loaded", "right"])
    assert found == [["+I", "1", "k", 0, 1, "k", 10]]
    assert len(join.run(["clock", 200_014], ["left", "+I", ["2", "k", 0]])) == 1
    assert join.run(["clock", 300_000]) == []
    assert join.rows == [0, 0]


@pytest.mark.parametrize("side", ["left", "right"])
def test_a_change_among_many_rows_of_a_key_touches_a_few_pages(side: str) -> None:
    """Versions and rows that wait, in the middle and at the end; rows at a closed gate."""
    timed = event_time()
    gated = processing_time(layout="no-unique-key", gate=latest.Gate("loaded"))
    name = ["i"] if side == "left" else []
    for start in range(0, 20_000, 5_000):
        rows = range(start, start + 5_000)
        timed.run(*([side, "+I", [10 * i, "k", 1, *name]] for i in rows))
        gated.run(*([side, "+I", [str(i) if name else i, "k", 1]] for i in rows))
    for time in (99_995, 0, 300_000):
        cells, size = timed.traffic_of([side, "+I", [time, "k", 2, *name]])
        assert cells <= 8
        assert size <= 30_000
    cells, size = gated.traffic_of([side, "+I", ["x" if name else -1, "k", 1]])
    assert cells <= 8
    assert size <= 30_000


@pytest.mark.parametrize("probes", ["key", "row"])
def test_probe_rows_that_change_are_remembered_until_they_are_deleted(probes: Identity) -> None:
    join = processing_time(probes=probes)
    join.run(["right", "+I", [1, "k", 10]])
    rows = [[str(i), "k", 0] for i in range(500)]
    join.run(*(["left", "+I", row] for row in rows))
    join.restart()
    assert join.rows == [500, 1]
    join.run(["right", "+U", [1, "k", 20]])
    found = join.run(*(["left", "-D", row] for row in rows))
    assert found == [["-D", *row, 1, "k", 10] for row in rows]
    assert join.rows == [0, 1]
    assert join.cells == 2


def test_a_probe_side_that_only_grows_leaves_nothing() -> None:
    join, timed = processing_time(), event_time()
    join.run(["right", "+I", [1, "k", 10]])
    timed.run(["right", "+I", [1, "k", 10]])
    for machine in (join, timed):
        before = machine.cells, machine.size
        rows = [[str(i), "k", 0] if machine is join else [2, "k", 0, str(i)] for i in range(500)]
        machine.run(*(["left", "+I", row] for row in rows), *marks(1))
        machine.run(*marks(3))
        assert machine.rows == [0, 1]
        assert machine.cells == before[0]
        assert machine.size < before[1] + 20  # the watermarks


def test_equal_rows_without_a_key_are_counted() -> None:
    join = processing_time(probes="row")
    row = ["x", "k", 0]
    join.run(["right", "+I", [1, "k", 10]])
    join.run(*(["left", "+I", row] for _ in range(1_000)))
    join.run(["right", "+U", [1, "k", 20]], *(["left", "+I", row] for _ in range(2)))
    assert join.rows == [1, 1]
    assert join.cells == 3
    found = join.run(*(["left", "-D", row] for _ in range(1_003)))
    assert [change[6] for change in found] == [20] * 2 + [10] * 1_000 + [20]


def test_remembered_rows_of_a_key_in_use_expire_by_themselves() -> None:
    join = processing_time(probes="key", ttl_ms=10_000)
    for second in range(30):
        row = [str(second), "k", 0]
        join.run(["clock", 1_000 * second], ["right", "+U", [1, "k", second]], ["left", "+I", row])
    join.restart()
    left, right = join.rows
    assert left < 20
    assert right == 1
    found = join.run(["left", "-D", ["25", "k", 0]], ["left", "-D", ["5", "k", 0]])
    assert found == [["-D", "25", "k", 0, 1, "k", 25], ["-D", "5", "k", 0, 1, "k", 29]]
    join.run(["clock", 1_000_000])
    assert join.rows == [0, 0]
    assert join.cells == 1


def test_rows_that_wait_are_taken_out_of_many_of_one_time() -> None:
    join = event_time(probes="key")
    times = [1_000 + i // 700 for i in range(3_000)]
    rows = [[time, "k", 0, str(i)] for i, time in enumerate(times)]
    join.run(["right", "+I", [0, "k", 10]], *(["left", "+I", row] for row in rows))
    join.restart()
    kept = set(range(0, 3_000, 7))
    join.run(*(["left", "-D", row] for i, row in enumerate(rows) if i not in kept))
    join.restart()
    assert join.rows == [len(kept), 1]
    found = join.run(*marks(2_000))
    assert [row[4] for row in found] == [str(i) for i in sorted(kept)]
    join.run(*(["left", "-D", rows[i]] for i in sorted(kept)))
    assert join.rows == [0, 1]
    assert join.cells == 2


@pytest.mark.parametrize("timed", [False, True])
def test_a_change_among_many_remembered_rows_touches_a_few_pages(timed: bool) -> None:
    join = event_time(probes="key") if timed else processing_time(probes="key")
    rows = [[0, "k", 1, str(i)] if timed else [str(i), "k", 1] for i in range(20_000)]
    join.run(["right", "+I", [0, "k", 1]], *(["left", "+I", row] for row in rows))
    join.run(*marks(5))
    assert join.rows == [20_000, 1]
    cells, size = join.traffic_of(["left", "-U", rows[77]], ["left", "+U", rows[77]])
    assert cells <= 8
    assert size <= 30_000


def test_what_rows_were_joined_with_is_shown() -> None:
    join, timed = processing_time(probes="row"), event_time(probes="key")
    join.run(["right", "+I", [1, "k", 10]], ["left", "+I", ["a", "k", 0]])
    join.run(["right", "+U", [2, "k", 20]], *(["left", "+I", ["a", "k", 0]] for _ in range(2)))
    assert join.kept("k") == [
        {"row": ["a", "k", 0], "joined": [[1, "k", 10], [2, "k", 20]], "equal": 3},
        {"row": [2, "k", 20]},
    ]
    timed.run(["left", "+I", [3, "k", 0, "a"]], ["left", "+I", [9, "k", 0, "b"]], *marks(5))
    assert timed.kept("k") == [
        {"row": [None, None, None, "a"], "time": 3, "joined": []},
        {"row": [9, "k", 0, "b"], "time": 9, "waiting": "+I"},
    ]
