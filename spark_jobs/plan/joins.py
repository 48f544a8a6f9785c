"""The two inputs of a join: key facts, the rows that state keeps, and how each side enters."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from spark_jobs.plan.changelog import changelog_of
from spark_jobs.plan.keys import (
    EquiKey,
    JoinCondition,
    Key,
    is_unique,
    key_order,
    smallest,
    split_condition,
    unique_keys,
)
from spark_jobs.plan.logical import Join, Logical
from spark_jobs.plan.physical import JoinInput, Side, SideLayout
from spark_jobs.plan.scans import Shape, rekeyed, row_type, scan
from spark_jobs.plan.sources import Source, source_of
from spark_jobs.sql.expr import Expr, columns, transform
from spark_jobs.sql.types import DataType


@dataclass(frozen=True, slots=True)
class JoinSide:
    """One input; `kept` are the positions in its fields whose values state and result need.

    `upsert` means that its rows may come without their old versions: every join key column is part
    of the primary key, so the old row is found where the new one goes.
    """

    source: Source
    layout: SideLayout
    unique_key: Key | None
    kept: tuple[int, ...]
    keys: tuple[Expr, ...]
    upsert: bool


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
        width = len(self.left.source.fields)
        return tuple(self.names[i + width] for i in self.right.kept)

    @property
    def key_type(self) -> DataType:
        return row_type((f"k{i}", e.type) for i, e in enumerate(self.left.keys))

    def named(self, keys: frozenset[Key]) -> tuple[tuple[str, ...], ...]:
        """Keys of the joined row by name, those that are all kept."""
        ordered = sorted(keys, key=key_order)
        return tuple(
            tuple(self.names[i] for i in sorted(k))
            for k in ordered
            if all(self.names[i] for i in k)
        )


def join_sides(join: Join, read: Sequence[Expr]) -> JoinSides:
    """Decide for both inputs; `read` are the expressions over the joined row."""
    condition = split_condition(join)
    used = columns([*read, *condition.residual])
    width = len(join.left.fields)
    left = _side(join.left, condition, 0, frozenset(i for i in used if i < width), join)
    right = _side(join.right, condition, 1, frozenset(i - width for i in used if i >= width), join)
    kept = {*left.kept, *(i + width for i in right.kept)}
    fields = (*join.left.fields, *join.right.fields)
    names = unique_names([f.name if i in kept else "" for i, f in enumerate(fields)])
    return JoinSides(condition, left, right, names)


def _side(
    node: Logical, condition: JoinCondition, side: int, used: frozenset[int], join: Join
) -> JoinSide:
    source = source_of(node)
    if source is None:
        raise ValueError("a join input is not a source")
    unique = unique_keys(node)
    layout, unique_key = input_spec(unique, condition.columns_of(side))
    reads = condition.columns_read(side)
    known = changelog_of(node) == "upsert" and any(reads <= key for key in unique)
    upsert = known and not (join.as_of is not None and side == 0)
    kept = set(used)
    if layout == "has-unique-key" and join.as_of is None:
        kept |= unique_key or frozenset()
    # an empty row would be a case of its own everywhere
    kept = kept or {min(reads, default=0)}
    keys = tuple(k.left if side == 0 else k.right for k in condition.keys)
    return JoinSide(source, layout, unique_key, tuple(sorted(kept)), keys, upsert)


def input_spec(unique: frozenset[Key], join_key: Key) -> tuple[SideLayout, Key | None]:
    """Which of the three state layouts fits, and the unique key it goes by."""
    if not unique:
        return "no-unique-key", None
    if is_unique(unique, join_key):
        return "join-key-contains-unique-key", smallest(k for k in unique if k <= join_key)
    return "has-unique-key", smallest(unique)


def regular_side(side: JoinSide, names: Sequence[str]) -> Side:
    """What the machine is told of one input of a regular join."""
    by_key = side.layout == "has-unique-key" and side.unique_key is not None
    return Side(
        schema=_schema(side, names),
        layout=side.layout,
        unique_key=tuple(side.kept.index(i) for i in sorted(side.unique_key or ()))
        if by_key
        else (),
        upsert=side.upsert,
    )


def _schema(side: JoinSide, names: Sequence[str]) -> DataType:
    fields = side.source.fields
    return row_type((n, fields[i].type) for n, i in zip(names, side.kept, strict=True))


def join_inputs(
    join: Join, sides: JoinSides, settings: Mapping[str, str]
) -> tuple[JoinInput, JoinInput]:
    """Both inputs as they run; topics are numbered through."""
    left = _input(sides, 0, join, settings, 0)
    right = _input(sides, 1, join, settings, len(sides.left.source.table.topics))
    return left, right


def _input(
    sides: JoinSides, side: int, join: Join, settings: Mapping[str, str], first_topic: int
) -> JoinInput:
    facts = sides.left if side == 0 else sides.right
    is_outer = side == 0 and join.kind == "left"
    shape = Shape(
        row=tuple(
            (name, facts.source.exprs[i])
            for name, i in zip(sides.kept_names(side), facts.kept, strict=True)
        ),
        key=tuple(transform(e, lambda c: facts.source.exprs[c.index]) for e in facts.keys),
        drop_null_keys=() if is_outer else _strict(sides.condition.keys),
        timed=join.as_of is not None,
    )
    make = rekeyed if facts.source.table.changelog == "upsert" and not facts.upsert else scan
    return make(facts.source, shape, settings, side, first_topic)


def _strict(keys: Sequence[EquiKey]) -> tuple[int, ...]:
    """Places in the join key where NULL equals nothing."""
    return tuple(i for i, key in enumerate(keys) if not key.null_safe)


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
