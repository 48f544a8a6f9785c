"""Moves predicates to where the fewest rows pass them; comma joins become inner joins.

A changelog may be filtered anywhere below an operator that treats rows one by one: a row and its
retraction pass or fail together. Below an operator that holds rows against each other (versions,
groups, the first or last of a key) a predicate may only go if all rows of one such set pass or
fail together, that is, if it reads nothing but the set's key.
"""

from collections.abc import Iterable
from dataclasses import replace
from typing import assert_never

from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.keys import by_processing_time, shift, side_of
from spark_jobs.plan.facts.sources import inline
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.rules.rewriting import filtered, without_true
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    JoinType,
    Logical,
    NoRows,
    Project,
    Rank,
    RowNumber,
    Scan,
    Sink,
    Union,
    Unnest,
)
from spark_jobs.sql.types.expr import (
    Call,
    Column,
    Expr,
    FieldAccess,
    and_all,
    columns,
    conjuncts,
    python_calls,
    transform,
)

NULL_REJECTING = frozenset({"=", "<>", "<", "<=", ">", ">=", "LIKE", "IS NOT NULL", "BETWEEN"})
"""Predicates that are never true where a (for BETWEEN: the first) argument is NULL."""

WHERE_MOVES: dict[JoinType, tuple[bool, bool]] = {
    "inner": (True, True),
    "left": (True, False),
    "right": (False, True),
    "full": (False, False),
    "semi": (True, False),
    "anti": (True, False),
}
"""Whether WHERE may go to the left, the right: to the side that is never padded."""

ON_MOVES: dict[JoinType, tuple[bool, bool]] = {
    "inner": (True, True),
    "left": (False, True),
    "right": (True, False),
    "full": (False, False),
    "semi": (True, True),
    "anti": (False, True),
}
"""Whether predicates of ON may go to the left, the right: to a side that only serves to match."""


def push_filters(node: Logical) -> Logical:
    """Move every predicate as far down as it stays correct."""
    return _push(node, ())


def _push(node: Logical, predicates: tuple[Expr, ...]) -> Logical:
    """Calls of Python functions stay above all operators, where they can be computed."""
    if not isinstance(node, Filter | Project | Sink):
        kept = tuple(p for p in predicates if python_calls((p,)))
        if kept:
            rest = tuple(p for p in predicates if p not in kept)
            return filtered(_push(node, rest), kept)
    return _pushed(node, predicates)


def _pushed(node: Logical, predicates: tuple[Expr, ...]) -> Logical:
    match node:
        case Sink(input=inner):
            return replace(node, input=_push(inner, ()))
        case Filter(input=inner, condition=condition):
            return _push(inner, (*conjuncts(condition), *predicates))
        case Project(input=inner, exprs=exprs):
            below = tuple(inline(p, exprs) for p in predicates)
            return replace(node, input=_push(inner, _flat(below)))
        case Scan() | NoRows():
            return filtered(node, predicates)
        case Union(inputs=inputs):
            return replace(node, inputs=tuple(_push(i, predicates) for i in inputs))
        case Join():
            return _push_join(node, without_true(predicates))
        case Unnest():
            return _push_unnest(node, predicates)
        case Aggregate(keys=keys):
            below, above = _split(predicates, frozenset(range(len(keys))))
            inner = _push(node.input, _flat(inline(p, keys) for p in below))
            return filtered(replace(node, input=inner), above)
        case (
            Deduplicate(partition=partition)
            | RowNumber(partition=partition)
            | Rank(partition=partition)
        ):
            below, above = _split(predicates, frozenset(partition))
            return filtered(replace(node, input=_push(node.input, below)), above)
        case _:
            assert_never(node)


def _split(
    predicates: tuple[Expr, ...], key: frozenset[int]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """Predicates that read key columns only, and the others.

    One that reads no column stays: a group of all rows exists even where no row does.
    """
    below = tuple(p for p in predicates if columns((p,)) and columns((p,)) <= key)
    return below, tuple(p for p in predicates if p not in below)


def _push_unnest(node: Unnest, where: tuple[Expr, ...]) -> Logical:
    """What WHERE asks of the elements makes an inner join of a left one where NULL fails it."""
    width = len(node.input.fields)
    if node.kind == "left" and any(_rejects(p, range(width, len(node.fields))) for p in where):
        where = (*conjuncts(node.condition), *where)
        node = replace(node, kind="inner", condition=None)
    below, above = _split(where, frozenset(range(width)))
    return filtered(replace(node, input=_push(node.input, below)), above)


def _push_join(join: Join, where: tuple[Expr, ...]) -> Logical:
    join = replace(join, kind=_without_padding(join, where))
    on = without_true(conjuncts(join.condition))
    if join.kind == "inner":
        into, where = _into_condition(join, where)
        on = (*on, *into)
    sides: tuple[list[Expr], list[Expr]] = ([], [])
    above = _divide(join, where, sides, WHERE_MOVES[join.kind])
    stay = _divide(join, on, sides, ON_MOVES[join.kind])
    join = replace(join, condition=and_all(stay))
    _mirror(join, sides)
    width = len(join.left.fields)
    left = _push(join.left, tuple(sides[0]))
    right = _push(join.right, tuple(shift(p, -width) for p in sides[1]))
    return filtered(replace(join, left=left, right=right), above)


def _into_condition(
    join: Join, where: tuple[Expr, ...]
) -> tuple[tuple[Expr, ...], tuple[Expr, ...]]:
    """What of WHERE may stand in ON, and the rest.

    In an event-time temporal join an equality in ON takes part in the choice of the version, one
    in WHERE does not. For the primary key that is the same.
    """
    if not is_versioned(join) or by_processing_time(join):
        return where, ()
    width = len(join.left.fields)
    key = frozenset(i + width for i in _primary(join.right))
    into = tuple(p for p in where if _compares(p, key))
    return into, tuple(p for p in where if p not in into)


def _compares(predicate: Expr, key: frozenset[int]) -> bool:
    match predicate:
        case Call(op="=", args=(a, b)):
            return any(isinstance(e, Column) and e.index in key for e in (a, b))
        case _:
            return False


def _primary(node: Logical) -> frozenset[int]:
    return frozenset().union(*facts(node).unique_keys)


def _without_padding(join: Join, where: Iterable[Expr]) -> JoinType:
    """The join that remains where WHERE lets no row pass whose one side is padded."""
    if join.kind not in ("left", "right", "full"):
        return join.kind
    width = len(join.left.fields)
    left, right = range(width), range(width, len(join.fields))
    keeps_left = join.kind in ("left", "full") and not any(_rejects(p, right) for p in where)
    keeps_right = join.kind in ("right", "full") and not any(_rejects(p, left) for p in where)
    if keeps_left:
        return "full" if keeps_right else "left"
    return "right" if keeps_right else "inner"


def _rejects(predicate: Expr, padded: range) -> bool:
    """Whether the predicate is never true where these columns are NULL."""
    match predicate:
        case Call(op="AND", args=args):
            return any(_rejects(a, padded) for a in args)
        case Call(op="OR", args=args):
            return all(_rejects(a, padded) for a in args)
        case Call(op="BETWEEN", args=(value, *_)):
            return _is_null(value, padded)
        case Call(op=op, args=args) if op in NULL_REJECTING:
            return any(_is_null(a, padded) for a in args)
        case _:
            return False


def _is_null(expr: Expr, padded: range) -> bool:
    match expr:
        case Column(index=index):
            return index in padded
        case FieldAccess(row=row):
            return _is_null(row, padded)
        case Call(op="CAST" | "+" | "-" | "*" | "/" | "||", args=args):
            return any(_is_null(a, padded) for a in args)
        case _:
            return False


def _divide(
    join: Join,
    predicates: Iterable[Expr],
    sides: tuple[list[Expr], list[Expr]],
    moves: tuple[bool, bool],
) -> tuple[Expr, ...]:
    """Hand predicates over one side to it where that is allowed; the others are returned.

    No version may go: its predecessor would be valid for longer than it was.
    """
    left, right = moves[0], moves[1] and not is_versioned(join)
    kept: list[Expr] = []
    for predicate in predicates:
        side = side_of(predicate, len(join.left.fields))
        if side is not None and (left, right)[side]:
            sides[side].append(predicate)
        else:
            kept.append(predicate)
    return tuple(kept)


def _mirror(join: Join, sides: tuple[list[Expr], list[Expr]]) -> None:
    """What holds for a key column on one side holds for its equal on the other.

    Of a versioned side only whole keys may be left out, with all their versions.
    """
    width = len(join.left.fields)
    pairs = [(k.left, shift(k.right, width)) for k in facts(join).condition.keys]
    plain = [(a, b) for a, b in pairs if isinstance(a, Column) and isinstance(b, Column)]
    exact = [(a, b) for a, b in plain if a.type.name not in ("FLOAT", "DOUBLE")]
    to_right = {a.index: b for a, b in exact}
    if is_versioned(join):
        primary = _primary(join.right)
        to_right = {i: b for i, b in to_right.items() if b.index - width in primary}
    to_left = {b.index: a for a, b in exact}
    left, right = ON_MOVES[join.kind]
    found_right = _translated(sides[0], to_right) if right else []
    found_left = _translated(sides[1], to_left) if left else []
    sides[1].extend(p for p in found_right if p not in sides[1])
    sides[0].extend(p for p in found_left if p not in sides[0])


def _translated(predicates: list[Expr], equals: dict[int, Column]) -> list[Expr]:
    return [
        transform(p, lambda c: equals[c.index])
        for p in predicates
        if columns((p,)) <= equals.keys()
    ]


def _flat(predicates: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(c for p in predicates for c in conjuncts(p))
