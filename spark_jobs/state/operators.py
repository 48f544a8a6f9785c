"""The stateful operators of a plan, their sides and columns, and which of them to show."""

from dataclasses import dataclass
from typing import Any

from spark_jobs.plan.nodes.physical import (
    IntervalJoin,
    MultiJoin,
    RegularJoin,
    Stateful,
    TemporalJoin,
)
from spark_jobs.plan.text.nodes import node_tree


@dataclass(frozen=True, slots=True)
class StatefulOperator:
    """An operator with state; `number` is its operator id in Spark's checkpoint of the query."""

    query: str
    number: int
    node: Stateful

    @property
    def title(self) -> str:
        return node_tree(self.node).text

    @property
    def sides(self) -> tuple[str, ...]:
        if isinstance(self.node, MultiJoin):
            return tuple(f"side {i + 1}" for i in range(len(self.node.sides)))
        two_sided = isinstance(self.node, RegularJoin | IntervalJoin | TemporalJoin)
        return ("left", "right") if two_sided else ("input",)

    @property
    def counted(self) -> tuple[str, ...]:
        """What the two row counts of a key group count: the first input, and all others."""
        if isinstance(self.node, MultiJoin):
            return ("side 1", f"sides 2 to {len(self.node.sides)}")
        return self.sides

    @property
    def structs(self) -> tuple[Any, ...]:
        """Spark's JSON schemas of the rows of each side."""
        match self.node:
            case MultiJoin(sides=sides):
                rows = [side.schema for side in sides]
            case RegularJoin() | IntervalJoin() | TemporalJoin() as join:
                rows = [join.left.schema, join.right.schema]
            case node:
                rows = [node.schema]
        return tuple(row.spark_json() for row in rows)


@dataclass(frozen=True, slots=True)
class StateSelection:
    """Which query, operator and side to read; None for all. `epoch` None is the last committed."""

    query: str | None = None
    operator: str | None = None
    side: str | None = None
    epoch: int | None = None

    def takes(self, operator: StatefulOperator) -> bool:
        names = (operator.node.id, f"{operator.query}/{operator.node.id}")
        return self.operator in (None, *names) and self.side in (None, *operator.sides)
