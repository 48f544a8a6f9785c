"""What the three state layouts of a regular join store and touch; docs/seeds.md has the figures."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.harness.gateway import new_machine
from tests.kernel.oracle.regular import Join
from tests.kernel.oracle.rows import ID, RESIDUALS, K
from tests.kernel.oracle.sides import Side

PAGE = Path(__file__).parents[3] / "docs" / "seeds.md"
LAYOUTS = {
    "JoinKeyContainsUniqueKey": Side("join-key-contains-unique-key", (K,), upsert=False),
    "InputSideHasUniqueKey": Side("has-unique-key", (ID,), upsert=False),
    "InputSideHasNoUniqueKey": Side("no-unique-key", (), upsert=False),
}
OTHER = Side("no-unique-key", (), upsert=False)
MANY = 1_000


def row(number: int, key: int = 1, value: int = 0) -> list[Any]:
    return [number, key, "a", value, "text"]


class Measured:
    """A join with rows on its left side; figures leave out the operator's own cell."""

    def __init__(
        self,
        side: Side,
        rows: list[list[Any]],
        join_type: str = "inner",
        residual: str | None = None,
    ) -> None:
        join = Join(side, OTHER, join_type, (K,), (True,), residual)
        self._machine = new_machine(json.dumps(join.node()))
        self.run()
        own = self._machine.stateBytes()
        self.run(*(["left", "+I", r] for r in rows))
        self.cells = self._machine.stateCells() - 1
        self.row_bytes = (self._machine.stateBytes() - own) / len(rows)

    def run(self, *events: list[Any]) -> None:
        self._machine.run(json.dumps([list(events)]))

    def touched(self, *events: list[Any]) -> tuple[int, int]:
        """Cells that a batch reads and writes."""
        before = json.loads(self._machine.stateTraffic())
        self.run(*events)
        after = json.loads(self._machine.stateTraffic())
        return after[0] - before[0] - 1, after[1] - before[1]

    def updated(self, number: int) -> tuple[int, int]:
        return self.touched(["left", "-U", row(number)], ["left", "+U", row(number, value=1)])

    def queried(self) -> int:
        """Cells that a row of the other side reads."""
        return self.touched(["right", "+I", row(0)])[0]


def line(name: str) -> str:
    """A layout's line of the table: figures with one row per key, and with many under one key."""
    side = LAYOUTS[name]
    apart = Measured(side, [row(n, key=n) for n in range(MANY)])
    assert apart.cells == MANY
    figures = [Measured(side, [row(0)])]
    sizes = [f"{apart.row_bytes:.0f} B"]
    if name != "JoinKeyContainsUniqueKey":
        figures.append(Measured(side, [row(n) for n in range(MANY)]))
        sizes.append(f"{figures[1].row_bytes:.0f} B")
    cells = " / ".join(str(m.cells) for m in figures)
    updates = " / ".join("{} and {}".format(*m.updated(0)) for m in figures)
    queries = " / ".join(str(m.queried()) for m in figures)
    return f"| {cells} | {' / '.join(sizes)} | {updates} | {queries} |"


@pytest.mark.parametrize("name", LAYOUTS)
def test_the_page_has_what_is_measured(name: str) -> None:
    [found] = [text for text in PAGE.read_text().splitlines() if text.startswith(f"| {name} ")]
    assert found.endswith(line(name))


@pytest.mark.parametrize("name", LAYOUTS)
def test_associated_rows_are_counted_per_row_with_a_residual_predicate_only(name: str) -> None:
    """Without one, the count is the number of rows of the other side: nothing is stored for it."""
    rows = [row(n, key=n) for n in range(MANY)]
    side = LAYOUTS[name]
    inner, outer = (Measured(side, rows, join_type).row_bytes for join_type in ("inner", "left"))
    assert inner == outer
    assert Measured(side, rows, "left", RESIDUALS[0]).row_bytes == outer + 1
