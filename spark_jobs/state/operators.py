"""The stateful operators of a plan, their sides and columns, and which of them to show."""

from dataclasses import dataclass
from typing import Any

from spark_jobs.plan.nodes.physical import MultiJoin, Stateful, TwoSided
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
        return self.node.side_names

    @property
    def counted(self) -> tuple[str, ...]:
        """What the two row counts of a key group count: the first input, and all others."""
        if isinstance(self.node.machine, MultiJoin):
            return ("side 1", f"sides 2 to {len(self.sides)}")
        return self.sides

    @property
    def structs(self) -> tuple[Any, ...]:
        """Spark's JSON schemas of the rows of each side."""
        machine = self.node.machine
        if isinstance(machine, TwoSided | MultiJoin):
            return tuple(side.schema.spark_json() for side in self.node.sides)
        return (machine.schema.spark_json(),)


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
