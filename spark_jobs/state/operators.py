"""The operators of a plan by what they keep: sides, columns, and what a person asks for."""

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
class KeptOperator:
    """An operator with state; `number` is Spark's of it within its query."""

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
        """What the two row counts of a key group are of: the first input, and all others."""
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
class Wanted:
    """Of which queries, operators and sides; None for all. `epoch` None: the last committed."""

    query: str | None = None
    operator: str | None = None
    side: str | None = None
    epoch: int | None = None

    def takes(self, operator: KeptOperator) -> bool:
        known = (operator.node.id, f"{operator.query}/{operator.node.id}")
        return self.operator in (None, *known) and self.side in (None, *operator.sides)
