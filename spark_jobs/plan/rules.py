"""Rewrites of the logical plan. Each rule is a function of the whole tree; RULES is their order.

What they leave behind is one shape: `Sink?(Project(Filter?(source)))` where source is a scan or a
join whose inputs are `Project?(Filter?(Scan))`. A predicate only moves where every row it removes
could not have reached the result, for changes of either sign. Expressions may be moved and
repeated freely: the binder lets no call through that may differ from one evaluation to the next.
"""

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import assert_never

from spark_jobs.plan.changelog import changelog_of
from spark_jobs.plan.keys import and_all, shift, side_of, split_condition, unique_keys
from spark_jobs.plan.logical import Field, Filter, Join, Logical, Project, Scan, Sink
from spark_jobs.sql.expr import (
    Call,
    Column,
    Expr,
    FieldAccess,
    Literal,
    columns,
    conjuncts,
    transform,
)

Rule = Callable[[Logical], Logical]

NULL_REJECTING = frozenset({"=", "<>", "<", "<=", ">", ">=", "LIKE", "IS NOT NULL"})
"""Predicates that are never true where an argument is NULL."""


def optimize(node: Logical) -> Logical:
    """The plan after all rules."""
    for rule in RULES:
        node = rule(node)
    return node


def project_root(node: Logical) -> Logical:
    """Give the result a projection of its own, which says its names."""
    match node:
        case Sink(input=inner):
            return replace(node, input=project_root(inner))
        case Project():
            return node
        case _:
            return Project(node, _refs(node.fields, range(len(node.fields))), node.fields)


def null_safe_equalities(node: Logical) -> Logical:
    """`a = b OR (a IS NULL AND b IS NULL)` is how people write `a IS NOT DISTINCT FROM b`."""
    node = _map_inputs(node, null_safe_equalities)
    if isinstance(node, (Filter, Join)) and node.condition is not None:
        return replace(node, condition=_null_safe(node.condition))
    return node


def _null_safe(expr: Expr) -> Expr:
    match expr:
        case Call(op="AND", args=args):
            return replace(expr, args=tuple(_null_safe(a) for a in args))
        case Call(
            op="OR", args=(Call(op="=", args=pair) as equality, Call(op="AND", args=nulls))
        ) | (Call(op="OR", args=(Call(op="AND", args=nulls), Call(op="=", args=pair) as equality))):
            tested = {n.args[0] for n in nulls if isinstance(n, Call) and n.op == "IS NULL"}
            if len(nulls) == len(pair) and tested == set(pair):
                kind = replace(equality.type, nullable=False)
                return Call("IS NOT DISTINCT FROM", pair, kind)
    return expr


def push_filters(node: Logical) -> Logical:
    """Move every predicate as far down as it stays correct; a comma join becomes an inner join."""
    return _push(node, ())


def _push(node: Logical, predicates: tuple[Expr, ...]) -> Logical:
    match node:
        case Sink(input=inner):
            return replace(node, input=_push(inner, ()))
        case Filter(input=inner, condition=condition):
            return _push(inner, (*conjuncts(condition), *predicates))
        case Project(input=inner, exprs=exprs):
            below = tuple(_inline(p, exprs) for p in predicates)
            return replace(node, input=_push(inner, _flat(below)))
        case Scan():
            return _filtered(node, predicates)
        case Join():
            return _push_join(node, _without_true(predicates))
        case _:
            assert_never(node)


def _push_join(join: Join, where: tuple[Expr, ...]) -> Logical:
    """WHERE goes to the side that is never padded, ON to the side whose rows only serve to match.

    In a temporal join nothing goes to the right side: a version that a filter removes would leave
    its predecessor valid for longer than it was.
    """
    if join.kind == "left" and any(_rejects_padding(p, len(join.left.fields)) for p in where):
        join = replace(join, kind="inner")
    temporal = join.as_of is not None
    on = _without_true(conjuncts(join.condition))
    if join.kind == "inner" and not temporal:
        on, where = (*on, *where), ()
    inner = join.kind == "inner"
    sides: tuple[list[Expr], list[Expr]] = ([], [])
    above = _divide(
        join, where, sides, left=join.kind in ("inner", "left"), right=join.kind == "right"
    )
    stay = _divide(
        join,
        on,
        sides,
        left=inner or join.kind == "right",
        right=not temporal and join.kind in ("inner", "left"),
    )
    join = replace(join, condition=and_all(stay))
    _mirror(join, sides)
    width = len(join.left.fields)
    left = _push(join.left, tuple(sides[0]))
    right = _push(join.right, tuple(shift(p, -width) for p in sides[1]))
    return _filtered(replace(join, left=left, right=right), above)


def _rejects_padding(predicate: Expr, left_width: int) -> bool:
    """Whether no row whose right columns are all NULL passes: its left join is an inner join."""
    match predicate:
        case Call(op="AND", args=args):
            return any(_rejects_padding(a, left_width) for a in args)
        case Call(op="OR", args=args):
            return all(_rejects_padding(a, left_width) for a in args)
        case Call(op=op, args=args) if op in NULL_REJECTING:
            return any(_is_null_with_padding(a, left_width) for a in args)
        case _:
            return False


def _is_null_with_padding(expr: Expr, left_width: int) -> bool:
    match expr:
        case Column(index=index):
            return index >= left_width
        case FieldAccess(row=row):
            return _is_null_with_padding(row, left_width)
        case Call(op="CAST" | "+" | "-" | "*" | "/" | "||", args=args):
            return any(_is_null_with_padding(a, left_width) for a in args)
        case _:
            return False


def _divide(
    join: Join,
    predicates: Iterable[Expr],
    sides: tuple[list[Expr], list[Expr]],
    left: bool,
    right: bool,
) -> tuple[Expr, ...]:
    """Hand predicates over one side to it where that is allowed; the others are returned."""
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

    From the right side it may only be concluded where unmatched left rows do not show.
    """
    width = len(join.left.fields)
    pairs = [(k.left, shift(k.right, width)) for k in split_condition(join).keys]
    plain = [(a, b) for a, b in pairs if isinstance(a, Column) and isinstance(b, Column)]
    exact = [(a, b) for a, b in plain if a.type.name not in ("FLOAT", "DOUBLE")]
    to_right = {a.index: b for a, b in exact}
    to_left = {b.index: a for a, b in exact}
    found_right = [] if join.kind not in ("inner", "left") else _translated(sides[0], to_right)
    found_left = [] if join.kind not in ("inner", "right") else _translated(sides[1], to_left)
    sides[1].extend(p for p in found_right if p not in sides[1])
    sides[0].extend(p for p in found_left if p not in sides[0])


def _translated(predicates: list[Expr], equals: dict[int, Column]) -> list[Expr]:
    return [
        transform(p, lambda c: equals[c.index])
        for p in predicates
        if columns((p,)) <= equals.keys()
    ]


def merge_projects(node: Logical) -> Logical:
    """One projection instead of two."""
    node = _map_inputs(node, merge_projects)
    match node:
        case Project(input=Project(input=inner, exprs=below)):
            return replace(node, input=inner, exprs=tuple(_inline(e, below) for e in node.exprs))
        case _:
            return node


def prune_columns(node: Logical) -> Logical:
    """Let every input of a join carry only what somebody above it reads."""
    return merge_projects(_prune(node, frozenset(range(len(node.fields))))[0])


def _prune(node: Logical, needed: frozenset[int]) -> tuple[Logical, dict[int, int]]:
    """The node with fewer fields, and where the needed ones went."""
    match node:
        case Sink(input=inner):
            return replace(node, input=_prune(inner, needed)[0]), _identity(needed)
        case Project(input=inner, exprs=exprs, fields=fields):
            kept = sorted(needed)
            child, moved = _prune(inner, columns(exprs[i] for i in kept))
            pruned = tuple(_moved(exprs[i], moved) for i in kept)
            return Project(child, pruned, tuple(fields[i] for i in kept)), _places(kept)
        case Scan() | Filter(input=Scan()):
            if len(needed) == len(node.fields):
                return node, _identity(needed)
            kept = sorted(needed)
            return Project(node, _refs(node.fields, kept), _fields(node, kept)), _places(kept)
        case Filter(input=inner, condition=condition):
            child, moved = _prune(inner, needed | columns((condition,)))
            return Filter(child, _moved(condition, moved)), moved
        case Join():
            return _prune_join(node, needed)
        case _:
            assert_never(node)


def _prune_join(join: Join, needed: frozenset[int]) -> tuple[Logical, dict[int, int]]:
    width = len(join.left.fields)
    read = needed | columns(e for e in (join.condition, join.as_of) if e is not None)
    left, left_moved = _prune(join.left, frozenset(i for i in read if i < width) | _kept(join, 0))
    right_read = frozenset(i - width for i in read if i >= width)
    right, right_moved = _prune(join.right, right_read | _kept(join, 1))
    shifted = {i + width: to + len(left.fields) for i, to in right_moved.items()}
    moved = left_moved | shifted
    pruned = replace(
        join,
        left=left,
        right=right,
        condition=join.condition and _moved(join.condition, moved),
        as_of=join.as_of and _moved(join.as_of, moved),
    )
    return pruned, moved


def _kept(join: Join, side: int) -> frozenset[int]:
    """Columns that the join needs although nobody names them.

    An upsert input without its primary key could only be stored as a multiset, after a
    normaliser; the version side of a temporal join is made of its key and its time.
    """
    node = join.left if side == 0 else join.right
    keys: frozenset[int] = frozenset().union(*unique_keys(node))
    if join.as_of is None:
        return keys if changelog_of(node) == "upsert" else frozenset()
    if side == 0:
        return frozenset()
    return keys | {i for i, field in enumerate(node.fields) if field.time == "rowtime"}


def _map_inputs(node: Logical, rule: Rule) -> Logical:
    match node:
        case Scan():
            return node
        case Filter(input=inner) | Project(input=inner) | Sink(input=inner):
            return replace(node, input=rule(inner))
        case Join(left=left, right=right):
            return replace(node, left=rule(left), right=rule(right))
        case _:
            assert_never(node)


def _filtered(node: Logical, predicates: tuple[Expr, ...]) -> Logical:
    condition = and_all(_without_true(predicates))
    return node if condition is None else Filter(node, condition)


def _without_true(predicates: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(p for p in predicates if not (isinstance(p, Literal) and p.value is True))


def _flat(predicates: Iterable[Expr]) -> tuple[Expr, ...]:
    return tuple(c for p in predicates for c in conjuncts(p))


def _inline(expr: Expr, exprs: tuple[Expr, ...]) -> Expr:
    return transform(expr, lambda c: exprs[c.index])


def _moved(expr: Expr, places: dict[int, int]) -> Expr:
    return transform(expr, lambda c: replace(c, index=places[c.index]))


def _refs(fields: tuple[Field, ...], positions: Iterable[int]) -> tuple[Expr, ...]:
    return tuple(Column(i, fields[i].name, fields[i].type) for i in positions)


def _fields(node: Logical, positions: Iterable[int]) -> tuple[Field, ...]:
    return tuple(node.fields[i] for i in positions)


def _places(kept: list[int]) -> dict[int, int]:
    return {position: place for place, position in enumerate(kept)}


def _identity(needed: frozenset[int]) -> dict[int, int]:
    return {i: i for i in needed}


RULES: tuple[Rule, ...] = (
    project_root,
    null_safe_equalities,
    merge_projects,
    push_filters,
    merge_projects,
    prune_columns,
)
