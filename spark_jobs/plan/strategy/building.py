"""What the planners of operators hand to each other, and the settings that they read."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from spark_jobs.options.settings import REAL_TIME, DeclaredSettings
from spark_jobs.plan.facts.sources import inline, peel
from spark_jobs.plan.nodes.parts import Advice, InputFaults
from spark_jobs.plan.nodes.physical import Stateful
from spark_jobs.sql.logical import Join, Logical, NoRows, Scan, inputs_of
from spark_jobs.sql.types.expr import Expr

EVENT_TIME = "WATERMARK FOR t AS t - INTERVAL '5' SECOND  -- in each table, and use t in the query"
BOUND_ALL = "SET 'table.exec.state.ttl' = '30 d';  -- a row that nothing touched for so long goes"
BOUND_ONE = "SELECT /*+ STATE_TTL('alias' = '30 d') */ ...  -- the same for one side"


@dataclass(frozen=True, slots=True)
class Shape:
    """What an operator wants of one of its inputs: expressions over that input's fields.

    `row` and `key` are what leaves; `drop_null_keys` are the places in the key whose NULL means
    that the row can neither match nor show. `rowtime` is the event time of a row. `marks`:
    watermarks are needed. `upsert`: rows may come without their old versions.
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
class Input:
    """One input of an operator: a logical node, in the shape that the operator wants."""

    node: Logical
    shape: Shape
    side: int = 0


@dataclass(frozen=True, slots=True)
class Required:
    """What the nodes above an operator need of it, over its fields.

    `read` is evaluated over its rows, `where` filters them, `pair_by` is the key of an upsert sink
    that follows. `forwards`: its watermark is needed. `update_before`: old rows are needed.
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
class Planned:
    """An operator before its inputs are planned: what it wants of them, and its warnings.

    `names` are those of its columns, one per logical field ("": not kept). `ordered`: several
    changes of one row may leave in one batch, and their order counts.
    """

    node: Stateful
    names: tuple[str, ...]
    inputs: tuple[Input, ...]
    warnings: tuple[Advice, ...] = ()
    ordered: bool = False


@dataclass(slots=True)
class Building:
    """One query while it is planned."""

    settings: DeclaredSettings
    warnings: list[Advice] = field(default_factory=list)

    @property
    def input_faults(self) -> InputFaults:
        return self.settings.input_faults

    @property
    def is_real_time(self) -> bool:
        return self.settings.mode == REAL_TIME

    @property
    def groups(self) -> int:
        return self.settings.key_groups

    @property
    def time_zone(self) -> str:
        return self.settings.time_zone

    def warn(self, *warnings: Advice) -> None:
        """Add those that are not there yet."""
        self.warnings += [w for w in dict.fromkeys(warnings) if w not in self.warnings]


def warning(text: str, *add: str) -> Advice:
    """What may go wrong; `add` are the lines of SQL that would help."""
    return Advice(text, add, is_warning=True)


def not_repeatable(why: str) -> Advice:
    return warning(f"processing time is not repeatable: {why}", EVENT_TIME)


def tables(node: Logical) -> str:
    """What an input is made of, for people."""
    match peel(node).base:
        case Scan(table=table):
            return table.name
        case NoRows():
            return "constants"
        case Join(left=left, right=right):
            return f"({tables(left)} join {tables(right)})"
        case base:
            below = inputs_of(base)
            names = " union ".join(tables(i) for i in below)
            return f"({names})" if len(below) > 1 else names
