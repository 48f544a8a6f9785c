"""Retractions of rows that are not in state: which are counted, and which are passed on."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from tests.harness.gateway import new_machine
from tests.kernel.machine.test_keyed_machines import COUNT, aggregation, sink_row, value
from tests.kernel.oracle import latest, temporal_events
from tests.kernel.oracle.materializer import Materializer
from tests.kernel.oracle.regular import Join
from tests.kernel.oracle.rows import PADDING
from tests.kernel.oracle.sides import Side

KNOWN, OTHER = [1, 1, "a", 1, "x"], [2, 1, "a", 2, "x"]
COUNTED = Side("no-unique-key", (), upsert=False)
KEYED = Side("join-key-contains-unique-key", (1,), upsert=False)


def ran(node: dict[str, Any], *batches: list[Any]) -> tuple[list[list[Any]], int]:
    """What the last batch emits, and how many retractions have been counted."""
    machine = new_machine(json.dumps(node))
    emitted = json.loads(machine.run(json.dumps(batches)))
    return emitted[-1], int(machine.unknownRetractions())


def join(
    join_type: str = "left", left: Side = COUNTED, ttl_ms: Sequence[int] = (0, 0)
) -> dict[str, Any]:
    ttl = (ttl_ms[0], ttl_ms[1])
    return Join(left, COUNTED, join_type, (1,), (True,), None, ttl_ms=ttl).node()


@pytest.mark.parametrize("join_type", ["inner", "left", "full", "semi", "anti"])
@pytest.mark.parametrize("side", ["left", "right"])
def test_joins_ignore_and_count_them(join_type: str, side: str) -> None:
    rows = [["left", "+I", KNOWN], ["right", "+I", KNOWN]]
    assert ran(join(join_type), rows, [[side, "-D", OTHER]]) == ([], 1)


def test_joins_with_a_ttl_pass_them_on_and_count_none() -> None:
    emitted, counted = ran(
        join("inner", ttl_ms=(1000, 0)),
        [["clock", 1], ["right", "+I", KNOWN]],
        [["left", "-D", OTHER]],
    )
    assert (emitted, counted) == ([["-D", *OTHER, *KNOWN]], 0)


def test_joins_that_trust_their_inputs_pass_them_on() -> None:
    node = join() | {"inputFaults": "trust"}
    assert ran(node, [["left", "-D", OTHER]])[0] == [["-D", *OTHER, *PADDING]]


def test_joins_that_trust_their_inputs_leave_the_old_result() -> None:
    """A second insertion of a unique key, which otherwise replaces the row and its results."""
    again = [1, 1, "a", 9, "x"]
    batches = [["left", "+I", KNOWN]], [["left", "+I", again]]
    assert ran(join(left=KEYED) | {"inputFaults": "trust"}, *batches)[0] == [
        ["+I", *again, *PADDING]
    ]
    assert ran(join(left=KEYED), *batches)[0] == [
        ["-D", *KNOWN, *PADDING],
        ["+I", *again, *PADDING],
    ]


def test_groups_and_sink_keys_ignore_and_count_them() -> None:
    assert ran(aggregation(COUNT).node(), [value("-D", "a")]) == ([], 1)
    for conflict in ("deduplicate", "nothing", "error"):
        node = Materializer(conflict, (1,)).node()
        assert ran(node, [sink_row("+I", "a", 1)], [sink_row("-D", "a", 2)]) == ([], 1)


def test_build_sides_ignore_and_count_them() -> None:
    node = latest.Join(is_left=True, layout="no-unique-key").node()
    assert ran(node, [["right", "+I", [1, "k", 1]]], [["right", "-D", [2, "k", 1]]]) == ([], 1)


def test_temporal_joins_count_unknown_probe_rows_and_join_them_by_processing_time() -> None:
    found = ran(
        latest.Join(is_left=True, layout="join-key-contains-unique-key", probes="key").node(),
        [["right", "+I", [1, "k", 10]]],
        [["left", "-D", ["9", "k", 0]]],
    )
    assert found == ([["-D", "9", "k", 0, 1, "k", 10]], 1)


def test_temporal_joins_count_unknown_probe_rows_and_join_them_by_their_time() -> None:
    node = temporal_events.Join(
        is_left=True,
        nulls_never_match=True,
        residual=False,
        where=False,
        policy="min",
        idle_timeout_ms=0,
        paired=False,
        probes="key",
    ).node()
    marks = [["watermark", side, 5] for side in ("left", "right")]
    rows = [["right", "+I", [1, "k", 10]], ["left", "-D", [5, "k", 0, "a"]]]
    assert ran(node, rows, marks) == ([["-D", 5, "k", 0, "a", 1, "k", 10]], 1)
    assert ran(node, marks, rows, marks) == ([], 1)
