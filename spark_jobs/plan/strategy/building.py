"""What the builders of physical nodes hand to each other, and what is numbered through a query."""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import TypeAlias

from spark_jobs.options.settings import DeclaredSettings
from spark_jobs.plan.facts.keys import and_all
from spark_jobs.plan.nodes.logical import Filter, Logical, Project
from spark_jobs.plan.nodes.parts import Advice, InputFaults, Topic, TopicTime
from spark_jobs.plan.nodes.physical import JoinInput, Stateful
from spark_jobs.sql.types.expr import Column, Expr, conjuncts, transform

FIRST_FORWARD = 1 << 14
"""Topic indexes from here on are operators whose watermark goes on (kernel/Spec.scala, Timing)."""

EVENT_TIME = "WATERMARK FOR t AS t - INTERVAL '5' SECOND  -- in each table, and use t in the query"
BOUND_ALL = "SET 'table.exec.state.ttl' = '30 d';  -- a row that nothing touched for so long goes"
BOUND_ONE = "SELECT /*+ STATE_TTL('alias' = '30 d') */ ...  -- the same for one side"


@dataclass(frozen=True, slots=True)
class Shape:
    """What an operator wants of one of its inputs: expressions over that input's fields.

    `row` and `key` are what leaves; `drop_null_keys` are the places in the key whose NULL means
    that the row can neither match nor show. `rowtime` is the event time of a row; `marks` asks for
    watermarks; `upsert` says that rows may come without their old versions.
    """

    row: tuple[tuple[str, Expr], ...]
    key: tuple[Expr, ...]
    drop_null_keys: tuple[int, ...] = ()
    rowtime: Expr | None = None
    marks: bool = False
    upsert: bool = False

    @property
    def exprs(self) -> tuple[Expr, ...]:
        times = () if self.rowtime is None else (self.rowtime,)
        return (*self.key, *(e for _, e in self.row), *times)

    def over(self, exprs: Sequence[Expr]) -> "Shape":
        """The same of what these expressions are made of."""
        return replace(
            self,
            row=tuple((name, inline(e, exprs)) for name, e in self.row),
            key=tuple(inline(e, exprs) for e in self.key),
            rowtime=self.rowtime and inline(self.rowtime, exprs),
        )


@dataclass(frozen=True, slots=True)
class Feed:
    """The inputs of one side of an operator.

    `streams` are whose watermarks speak for it, where it asked for marks; `topics` is what it is
    read from, however many operators lie between.
    """

    inputs: tuple[JoinInput, ...]
    streams: tuple[TopicTime, ...]
    topics: tuple[TopicTime, ...]


def all_of(feeds: Iterable[Feed]) -> Feed:
    """Several feeds as one side."""
    found = tuple(feeds)
    return Feed(
        inputs=tuple(i for f in found for i in f.inputs),
        streams=tuple(s for f in found for s in f.streams),
        topics=tuple(t for f in found for t in f.topics),
    )


@dataclass(frozen=True, slots=True)
class Wanted:
    """What is asked of an operator: `read`, `where` and `pair_by` are over its fields.

    `forwards`: somebody above needs its watermark. `update_before`: somebody needs old rows.
    """

    read: tuple[Expr, ...]
    where: Expr | None = None
    pair_by: tuple[Expr, ...] | None = None
    forwards: bool = False
    update_before: bool = True

    @property
    def exprs(self) -> tuple[Expr, ...]:
        """Everything that is evaluated over its rows."""
        where = () if self.where is None else (self.where,)
        return (*self.read, *where, *(self.pair_by or ()))


@dataclass(frozen=True, slots=True)
class Rows:
    """An operator, the names of its columns, one per logical field ("": not kept), its topics.

    `ordered`: several changes of one row may leave in one batch, and their order counts.
    """

    node: Stateful
    names: tuple[str, ...]
    topics: tuple[TopicTime, ...]
    ordered: bool = False

    @property
    def streams(self) -> tuple[TopicTime, ...]:
        forward = self.node.timing.forward
        return () if forward is None else (TopicTime(forward, 0),)


@dataclass(slots=True)
class Building:
    """One query while it is planned."""

    settings: DeclaredSettings
    warnings: list[Advice] = field(default_factory=list)
    _topics: int = 0
    _forwards: int = 0
    _operators: Counter[str] = field(default_factory=Counter)

    def topics(self, names: Sequence[str]) -> tuple[Topic, ...]:
        """The topics with their places in the query, which restarts and changes keep."""
        first = self._topics
        self._topics += len(names)
        return tuple(Topic(name, first + i) for i, name in enumerate(names))

    def forward(self) -> int:
        """The place of one more operator whose watermark goes on."""
        self._forwards += 1
        return FIRST_FORWARD + self._forwards - 1

    def operator_id(self, kind: str) -> str:
        """An operator is called after its kind; the second of a kind gets a number."""
        self._operators[kind] += 1
        count = self._operators[kind]
        return kind if count == 1 else f"{kind}-{count}"

    @property
    def input_faults(self) -> InputFaults:
        return self.settings.input_faults

    @property
    def groups(self) -> int:
        return self.settings.key_groups

    @property
    def time_zone(self) -> str:
        return self.settings.time_zone

    def warn(self, text: str, *add: str) -> None:
        """`add` are the lines of SQL that would help."""
        warning = Advice(text, add, is_warning=True)
        if warning not in self.warnings:
            self.warnings.append(warning)


Feeder: TypeAlias = Callable[[Logical, Shape, int, Building], Feed]
"""Plans a logical node as the input of the side with that number."""


@dataclass(frozen=True, slots=True)
class Peeled:
    """A node without the projections and filters on top: `exprs` and `where` are over `base`."""

    base: Logical
    where: Expr | None
    exprs: tuple[Expr, ...]


def peel(node: Logical) -> Peeled:
    """Take off `Project?(Filter?(...))`, however often."""
    match node:
        case Project(input=inner, exprs=exprs):
            below = peel(inner)
            return replace(below, exprs=tuple(inline(e, below.exprs) for e in exprs))
        case Filter(input=inner, condition=condition):
            below = peel(inner)
            both = (*conjuncts(below.where), *conjuncts(inline(condition, below.exprs)))
            return replace(below, where=and_all(both))
        case _:
            fields = enumerate(node.fields)
            return Peeled(node, None, tuple(Column(i, f.name, f.type) for i, f in fields))


def inline(expr: Expr, exprs: Sequence[Expr]) -> Expr:
    """The expression with columns replaced by what makes them."""
    return transform(expr, lambda c: exprs[c.index])
