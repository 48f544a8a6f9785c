"""Changes of one row in one batch: only what is left of them meets the other side."""

import json
from typing import Any

import pytest

from tests.harness.gateway import new_machine
from tests.kernel.oracle.regular import Join
from tests.kernel.oracle.rows import ID, K
from tests.kernel.oracle.sides import Side

UPSERTS = Side("has-unique-key", (ID,), upsert=True)
KEYED = Side("has-unique-key", (ID,), upsert=False)
COUNTED = Side("no-unique-key", (), upsert=False)
MATCH = [1, 1, "b", 0, "y"]


def row(number: int, value: int) -> list[Any]:
    return [number, 1, "a", value, "x"]


def ran(left: Side, *batches: list[Any]) -> list[list[Any]]:
    """What the last batch emits, where one right row matches."""
    machine = new_machine(json.dumps(Join(left, COUNTED, "inner", (K,), (True,), None).node()))
    emitted: list[list[Any]] = json.loads(
        machine.run(json.dumps([[["right", "+I", MATCH]], *batches]))
    )[-1]
    return emitted


@pytest.mark.parametrize("rows", [1, 20])
def test_of_upserts_the_last_one_counts(rows: int) -> None:
    updates = [["left", "+U", row(n, value)] for value in range(5) for n in range(rows)]
    # met one by one, the row that came last would be the successor of others: +U
    assert ran(UPSERTS, updates) == [["+I", *row(n, 4), *MATCH] for n in range(rows)]


def test_an_upsert_that_is_deleted_again_takes_the_old_row_along() -> None:
    changes = [["left", "+U", row(1, 2)], ["left", "-D", row(1, 2)]]
    assert ran(UPSERTS, [["left", "+I", row(1, 1)]], changes) == [["-D", *row(1, 1), *MATCH]]
    assert ran(UPSERTS, changes) == []


@pytest.mark.parametrize("rows", [1, 20])
def test_of_a_changelog_the_first_and_the_last_row_count(rows: int) -> None:
    before = [["left", "+I", row(n, 0)] for n in range(rows)]
    updates = [
        change
        for value in range(3)
        for n in range(rows)
        for change in (["left", "-U", row(n, value)], ["left", "+U", row(n, value + 1)])
    ]
    assert ran(KEYED, before, updates) == [
        *(["-U", *row(n, 0), *MATCH] for n in range(rows)),
        *(["+U", *row(n, 3), *MATCH] for n in range(rows)),
    ]


def test_what_a_row_has_overwritten_is_taken_back() -> None:
    """Its old version was not retracted first, as it should have been."""
    changes = [["left", "+I", row(1, 2)], ["left", "-D", row(1, 2)]]
    assert ran(KEYED, [["left", "+I", row(1, 1)]], changes) == [["-U", *row(1, 1), *MATCH]]


def test_rows_without_a_key_are_folded_copy_by_copy() -> None:
    changes = [["left", kind, row(1, 1)] for kind in ("+I", "+I", "-D", "+I", "-D")]
    assert ran(COUNTED, changes) == [["+I", *row(1, 1), *MATCH]]


def test_a_partial_row_takes_values_from_the_one_before_it() -> None:
    partial = ["left", "+U", [1, 1, "a", 0, "new"], {"missing": [3]}]
    emitted = ran(UPSERTS, [["left", "+U", row(1, 2)], partial])
    assert [change[1:6] for change in emitted] == [[1, 1, "a", 2, "new"]]
