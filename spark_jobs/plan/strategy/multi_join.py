"""Chains of joins that share one join key, as one operator over all their inputs.

`(A JOIN B ON a = b) LEFT JOIN C ON a = c` sends every row of A, B and C by the same value, so one
operator sees all that a result row is made of, and what the inner joins would store and send on
between them is never made. The chain is left-deep; a side joins by columns that equal the shared
key in every row of what is left of it, hence not by those of a side that may be padded.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from typing import Literal

from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.keys import EquiKey, Key, shift
from spark_jobs.plan.facts.sources import Peeled, inline, peel
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.nodes.physical import MultiJoin
from spark_jobs.plan.strategy.building import Building, Input, Planned, Required, Shape
from spark_jobs.plan.strategy.join_operators import growth
from spark_jobs.plan.strategy.join_sides import (
    JoinSide,
    input_side,
    key_type,
    side_row,
    unique_names,
)
from spark_jobs.plan.strategy.operator import operator
from spark_jobs.plan.strategy.scans import row_type, text_of
from spark_jobs.plan.strategy.timing import state_ttl, timing
from spark_jobs.sql.logical import Field, Join, Logical, all_columns, column
from spark_jobs.sql.types.data_types import with_nullable
from spark_jobs.sql.types.expr import Column, Expr, and_all, columns, conjuncts, transform

MIN_SIDES = 3


@dataclass(frozen=True, slots=True)
class Chain:
    """Joins as one: positions go through the fields of all sides, left to right.

    `exprs` are the fields of the last join, `top`, over these. `kinds`, `residuals` are those of
    the sides from the second on; `keys` are over each side's own fields. `where` stood between the
    joins: what a later join adds to a row does not change it.
    """

    top: Join
    sides: tuple[Logical, ...]
    keys: tuple[tuple[Expr, ...], ...]
    null_safe: tuple[bool, ...]
    kinds: tuple[Literal["inner", "left"], ...]
    residuals: tuple[tuple[Expr, ...], ...]
    ttl_ms: tuple[int | None, ...]
    exprs: tuple[Expr, ...]
    where: tuple[Expr, ...] = ()

    @property
    def offsets(self) -> tuple[int, ...]:
        """Where each side's fields begin."""
        return tuple(accumulate((len(s.fields) for s in self.sides[:-1]), initial=0))

    @property
    def fields(self) -> tuple[Field, ...]:
        return tuple(f for side in self.sides for f in side.fields)

    @property
    def unique_keys(self) -> frozenset[Key]:
        """Those of the last join, as far as its fields are fields of the sides."""
        found = [[self.exprs[i] for i in key] for key in facts(self.top).unique_keys]
        plain = [[e.index for e in key if isinstance(e, Column)] for key in found]
        pairs = zip(found, plain, strict=True)
        return frozenset(frozenset(p) for f, p in pairs if len(f) == len(p))


def peel_chain(above: Peeled) -> tuple[Chain, Peeled] | None:
    """The chain below projections and filters, and those over the fields of all its sides."""
    chain = _chain(above.base) if isinstance(above.base, Join) else None
    if chain is None or len(chain.sides) < MIN_SIDES:
        return None
    where = and_all((*chain.where, *(inline(e, chain.exprs) for e in conjuncts(above.where))))
    return chain, replace(
        above, where=where, exprs=tuple(inline(e, chain.exprs) for e in above.exprs)
    )


def _chain(join: Join) -> Chain | None:
    """The longest chain that ends in this join; None where it cannot be part of one."""
    if join.kind not in ("inner", "left") or is_versioned(join) or facts(join).interval is not None:
        return None
    condition = facts(join).condition
    if not condition.keys:
        return None
    left = peel(join.left)
    below = _chain(left.base) if isinstance(left.base, Join) else None
    if below is not None and join.ttl_ms[0] is None:
        exprs = tuple(inline(e, below.exprs) for e in left.exprs)
        ordered = _in_key_order(below, exprs, condition.keys)
        if ordered is not None:
            where = tuple(inline(e, below.exprs) for e in conjuncts(left.where))
            below = replace(below, where=(*below.where, *where))
            return _longer(below, join, exprs, ordered, condition.residual)
    return _first(join, condition.keys, condition.residual)


def _first(join: Join, keys: tuple[EquiKey, ...], residual: tuple[Expr, ...]) -> Chain:
    fields = (*join.left.fields, *join.right.fields)
    return Chain(
        top=join,
        sides=(join.left, join.right),
        keys=(tuple(k.left for k in keys), tuple(k.right for k in keys)),
        null_safe=tuple(k.null_safe for k in keys),
        kinds=("left" if join.kind == "left" else "inner",),
        residuals=(residual,),
        ttl_ms=join.ttl_ms,
        exprs=tuple(column(fields, i) for i in range(len(fields))),
    )


def _longer(
    below: Chain,
    join: Join,
    exprs: tuple[Expr, ...],
    keys: tuple[EquiKey, ...],
    residual: tuple[Expr, ...],
) -> Chain:
    """The chain with one more side; `exprs` are the join's left fields over the chain's."""
    width = len(below.fields)
    all_exprs = (*exprs, *(shift(c, width) for c in all_columns(join.right)))
    return replace(
        below,
        top=join,
        sides=(*below.sides, join.right),
        keys=(*below.keys, tuple(k.right for k in keys)),
        kinds=(*below.kinds, "left" if join.kind == "left" else "inner"),
        residuals=(*below.residuals, tuple(inline(r, all_exprs) for r in residual)),
        ttl_ms=(*below.ttl_ms, join.ttl_ms[1]),
        exprs=all_exprs,
    )


def _in_key_order(
    chain: Chain, exprs: Sequence[Expr], keys: Sequence[EquiKey]
) -> tuple[EquiKey, ...] | None:
    """Each equality at its place of the shared key; None if they are of other values."""
    lefts = {k: (_bare(inline(k.left, exprs)), k.null_safe) for k in keys}
    found: list[EquiKey] = []
    for place, null_safe in enumerate(chain.null_safe):
        same = {(_bare(e), null_safe) for e in _equal_to_key(chain, place)}
        matches = [k for k, left in lefts.items() if left in same and k not in found]
        if len(matches) != 1:
            return None
        found += matches
    return tuple(found) if len(found) == len(keys) else None


def _equal_to_key(chain: Chain, place: int) -> Iterator[Expr]:
    """What equals the shared key's column in every row: not what a left join may have padded."""
    joined = zip(chain.keys, chain.offsets, ("inner", *chain.kinds), strict=True)
    for keys, offset, kind in joined:
        if kind == "inner":
            yield shift(keys[place], offset)


def _bare(expr: Expr) -> Expr:
    """The expression for comparison: a column's name and nullability do not change its value."""
    return transform(expr, lambda c: Column(c.index, "", with_nullable(c.type, True)))


def multi_join(chain: Chain, required: Required, building: Building) -> Planned:
    """`required` is over the fields of all sides."""
    residuals = [e for residual in chain.residuals for e in residual]
    used = columns([*required.exprs, *residuals])
    sides = [_side(chain, i, used, building) for i in range(len(chain.sides))]
    placed = list(zip(sides, chain.offsets, strict=True))
    kept = {offset + i for side, offset in placed for i in side.kept}
    names = unique_names([f.name if i in kept else "" for i, f in enumerate(chain.fields)])
    labels = [tuple(names[offset + i] for i in side.kept) for side, offset in placed]
    described = tuple(s.described(n) for s, n in zip(sides, labels, strict=True))
    ttl_ms = state_ttl(building, chain.ttl_ms)
    machine = MultiJoin(
        join_types=chain.kinds,
        sides=described,
        schema=row_type((f.name, f.type) for side in described for f in side.schema.fields),
        key=key_type(chain.keys[0]),
        filter_nulls=tuple(not safe for safe in chain.null_safe),
        residuals=tuple(text_of(and_all(r), names) for r in chain.residuals),
        input_faults=building.input_faults,
    )
    return operator(
        machine,
        required,
        names,
        replace(facts(chain.top), unique_keys=chain.unique_keys),
        timing(building, ttl_ms=ttl_ms, forwards=required.forwards),
        building,
        tuple(_inputs(chain, sides, labels, required)),
        growth(chain.sides, ttl_ms),
    )


def _side(chain: Chain, side: int, used: Key, building: Building) -> JoinSide:
    node, offset = chain.sides[side], chain.offsets[side]
    own = frozenset(i - offset for i in used if offset <= i < offset + len(node.fields))
    return input_side(node, chain.keys[side], own, building, keeps_key=True)


def _inputs(
    chain: Chain, sides: Sequence[JoinSide], labels: Sequence[tuple[str, ...]], required: Required
) -> Iterator[Input]:
    """A row whose key is NULL can only show on the first side, and there only if it is padded."""
    strict = tuple(i for i, safe in enumerate(chain.null_safe) if not safe)
    for i, (side, names) in enumerate(zip(sides, labels, strict=True)):
        shows = i == 0 and "inner" not in chain.kinds
        shape = Shape(
            row=side_row(side, names),
            key=side.keys,
            drop_null_keys=() if shows else strict,
            marks=required.forwards,
            upsert=side.upsert,
        )
        yield Input(side.node, shape, i)
