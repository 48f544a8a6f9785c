"""The two inputs of a join: key facts, the rows that state keeps, and how each side enters."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal, TypeAlias

from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.keys import (
    JoinCondition,
    Key,
    by_processing_time,
    is_unique,
    smallest,
)
from spark_jobs.plan.facts.sources import Source, peel, source_of
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.nodes.parts import Pair, Side, SideLayout
from spark_jobs.plan.strategy.building import Building, Input, Shape
from spark_jobs.plan.strategy.healing import is_taken_as_it_is
from spark_jobs.plan.strategy.scans import row_type, text_of
from spark_jobs.sql.logical import Deduplicate, Field, Join, Logical, Project, column
from spark_jobs.sql.types.data_types import DataType
from spark_jobs.sql.types.expr import Column, Expr, and_all, columns

JoinTime: TypeAlias = Literal["event", "processing"]


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One input; `kept` are the positions in its fields whose values state and result need.

    `upsert` means that its rows may come without their old versions: every join key column is part
    of the primary key, so the old row is found where the new one goes. `source` is the table where
    the input is one.
    """

    node: Logical
    source: Source | None
    layout: SideLayout
    unique_key: Key | None
    kept: tuple[int, ...]
    keys: tuple[Expr, ...]
    upsert: bool

    @property
    def fields(self) -> tuple[Field, ...]:
        return self.node.fields

    def described(self, names: Sequence[str]) -> Side:
        """The side as the machine knows it; `names` are those of the kept columns."""
        by_key = self.layout == "has-unique-key"
        key = sorted(self.unique_key or ()) if by_key else []
        is_stored = set(key) <= set(self.kept)
        return Side(
            schema=row_type(
                (n, self.fields[i].type) for n, i in zip(names, self.kept, strict=True)
            ),
            layout=self.layout if is_stored else "no-unique-key",
            unique_key=tuple(self.kept.index(i) for i in key) if is_stored else (),
            upsert=self.upsert,
        )


@dataclass(frozen=True, slots=True)
class JoinSides:
    """Both inputs and the names of the joined row, one per field ("" where it is not kept)."""

    condition: JoinCondition
    left: JoinSide
    right: JoinSide
    names: tuple[str, ...]

    def kept_names(self, side: int) -> tuple[str, ...]:
        if side == 0:
            return tuple(self.names[i] for i in self.left.kept)
        width = len(self.left.fields)
        return tuple(self.names[i + width] for i in self.right.kept)

    def pair(self) -> Pair:
        return Pair(
            left=self.left.described(self.kept_names(0)),
            right=self.right.described(self.kept_names(1)),
            key=key_type(self.left.keys),
            filter_nulls=tuple(not k.null_safe for k in self.condition.keys),
            residual=text_of(and_all(self.condition.residual), self.names),
        )


def key_type(keys: Iterable[Expr]) -> DataType:
    """The type of an operator's key."""
    return row_type((f"k{i}", e.type) for i, e in enumerate(keys))


def join_time(join: Join) -> JoinTime | None:
    """By which time a join looks versions up; None where it is no temporal join."""
    if not is_versioned(join):
        return None
    return "processing" if by_processing_time(join) else "event"


def join_sides(
    join: Join,
    read: Sequence[Expr],
    building: Building,
    condition: JoinCondition | None = None,
) -> JoinSides:
    """Decide for both inputs; `read` are the expressions over the joined row.

    `condition` is what is left of an interval join's without its bounds. Its rows are found by
    time and content, so that no unique key is kept and upserts are normalised first.
    """
    by_time = condition is not None and facts(join).kinds != INSERT
    condition = condition or facts(join).condition
    used = columns([*read, *condition.residual])
    width = len(join.left.fields)
    left_used = frozenset(i for i in used if i < width)
    right_used = frozenset(i - width for i in used if i >= width)
    if by_time:
        left = _side_by_time(join.left, [k.left for k in condition.keys], left_used, building)
        right = _side_by_time(join.right, [k.right for k in condition.keys], right_used, building)
    else:
        left = _side(join, 0, condition, left_used, building)
        right = _side(join, 1, condition, right_used, building)
    kept = {*left.kept, *(i + width for i in right.kept)}
    fields = (*join.left.fields, *join.right.fields)
    names = unique_names([f.name if i in kept else "" for i, f in enumerate(fields)])
    return JoinSides(condition, left, right, names)


def _side(
    join: Join, side: int, condition: JoinCondition, used: Key, building: Building
) -> JoinSide:
    node = join.left if side == 0 else join.right
    time = join_time(join)
    keys = tuple(k.left if side == 0 else k.right for k in condition.keys)
    probes = time is not None and side == 0
    fed = versions(node, time) if time is not None and side == 1 else node
    valid_from = facts(node).version_time if time == "event" and side == 1 else None
    times = () if valid_from is None else (valid_from,)
    keeps_key = time != "event" or (probes and facts(node).kinds != INSERT)
    known = input_side(node, keys, used, building, keeps_key=keeps_key, times=times)
    return replace(known, node=fed, source=source_of(fed), upsert=known.upsert and not probes)


def _side_by_time(node: Logical, keys: Sequence[Expr], used: Key, building: Building) -> JoinSide:
    known = input_side(node, tuple(keys), used, building, keeps_key=False)
    return replace(known, layout="no-unique-key", unique_key=None, upsert=False)


def input_side(
    node: Logical,
    keys: tuple[Expr, ...],
    used: Key,
    building: Building,
    *,
    keeps_key: bool,
    times: tuple[int, ...] = (),
) -> JoinSide:
    """One input of a join by these keys; its columns `used` are read further on.

    `keeps_key`: state goes by unique key, whose columns it therefore stores. `times`: fields that
    are read as the rows' time.
    """
    source = source_of(node)
    unique = facts(node).upsert_keys if keeps_order(node) else facts(node).unique_keys
    layout, unique_key = input_spec(
        unique, frozenset(e.index for e in keys if isinstance(e, Column))
    )
    reads = columns(keys)
    is_upsert = source is not None and source.table.changelog == "upsert"
    kept = set(used)
    if layout == "has-unique-key" and keeps_key:
        kept |= unique_key or frozenset()
    # an empty row would be a case of its own everywhere
    kept = kept or {min(reads, default=0)}
    upsert = is_upsert and any(reads <= key for key in unique)
    if source is not None and upsert:
        sent = [source.exprs[i] for i in (*sorted(kept), *times)]
        upsert = is_taken_as_it_is(source, sent, building)
    return JoinSide(node, source, layout, unique_key, tuple(sorted(kept)), keys, upsert)


def keeps_order(node: Logical) -> bool:
    """Whether several changes of a row may come in one batch, so that their order counts.

    A temporal join passes the changes of its probe side on, each with its version. Only those of
    one join key leave in order, so rows may be addressed by keys that contain it.
    """
    base = peel(node).base
    return isinstance(base, Join) and is_versioned(base) and facts(base.left).kinds != INSERT


def versions(node: Logical, time: JoinTime) -> Logical:
    """The build side of a temporal join as it is fed.

    The last row of each key by time is what a temporal join makes of its build side anyway: the
    rows below such a deduplication are its versions.
    """
    above = peel(node)
    match above.base:
        case Deduplicate(input=inner, keep="last", order=order) if above.where is None:
            by = "event" if facts(inner).times[order] == "rowtime" else "processing"
            return Project(inner, above.exprs, node.fields) if by == time else node
        case _:
            return node


def input_spec(unique: frozenset[Key], join_key: Key) -> tuple[SideLayout, Key | None]:
    """Which of the three state layouts fits, and the unique key it goes by."""
    if not unique:
        return "no-unique-key", None
    if is_unique(unique, join_key):
        return "join-key-contains-unique-key", smallest(k for k in unique if k <= join_key)
    return "has-unique-key", smallest(unique)


def join_inputs(
    join: Join,
    sides: JoinSides,
    *,
    rowtimes: tuple[Expr | None, Expr | None] = (None, None),
    marks: tuple[bool, bool],
) -> tuple[Input, Input]:
    """What the join wants of both inputs; `rowtimes` are over their own fields."""
    # rows of a side that may be padded show without a match, whatever their key
    shows = join.kind in ("left", "full", "anti"), join.kind in ("right", "full")
    nulls = tuple(i for i, key in enumerate(sides.condition.keys) if not key.null_safe)

    def wanted(side: int, read: JoinSide) -> Input:
        shape = Shape(
            row=side_row(read, sides.kept_names(side)),
            key=read.keys,
            drop_null_keys=() if shows[side] else nulls,
            rowtime=rowtimes[side],
            marks=marks[side],
            upsert=read.upsert,
        )
        return Input(read.node, shape, side)

    return wanted(0, sides.left), wanted(1, sides.right)


def side_row(side: JoinSide, names: Sequence[str]) -> tuple[tuple[str, Expr], ...]:
    """The columns that a side sends, under the names of the joined row."""
    pairs = zip(names, side.kept, strict=True)
    return tuple((name, column(side.fields, i)) for name, i in pairs)


def unique_names(names: Sequence[str]) -> tuple[str, ...]:
    """Calcite's way to make names differ: `a`, `a0`, `a1`; "" stays. Spark ignores case."""
    taken: set[str] = set()
    found: list[str] = []
    for name in names:
        unique, n = name, 0
        while unique and unique.casefold() in taken:
            unique, n = f"{name}{n}", n + 1
        taken.add(unique.casefold())
        found.append(unique)
    return tuple(found)
