"""Leaves out columns that no node above reads: state and shuffles hold what is left."""

from dataclasses import replace
from typing import assert_never

from spark_jobs.plan.facts.changelog import INSERT, changelog_of
from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.keys import smallest
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.plan.rules.rewriting import moved
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Field,
    Filter,
    Join,
    Logical,
    NoRows,
    Project,
    Rank,
    RowNumber,
    Scan,
    Sink,
    Union,
    Unnest,
    column,
)
from spark_jobs.sql.types.expr import columns

Needed = frozenset[int]
Places = dict[int, int]


def prune_columns(node: Logical) -> Logical:
    """The plan without columns that no node reads."""
    return _prune(node, frozenset(range(len(node.fields))))[0]


def _prune(node: Logical, needed: Needed) -> tuple[Logical, Places]:
    """The node with fewer fields, and where the needed ones went; more may be left."""
    match node:
        case Sink(input=inner):
            return replace(node, input=_prune(inner, needed)[0]), _identity(needed)
        case Project(input=inner, exprs=exprs, fields=fields):
            kept = sorted(needed)
            child, places = _prune(inner, columns(exprs[i] for i in kept))
            pruned = tuple(moved(exprs[i], places) for i in kept)
            return Project(child, pruned, tuple(fields[i] for i in kept)), _places(kept)
        case Filter(input=inner, condition=condition):
            child, places = _prune(inner, needed | columns((condition,)))
            return Filter(child, moved(condition, places)), places
        case Scan() | NoRows():
            return node, _identity(needed)
        case Join():
            return _prune_join(node, needed)
        case Union():
            return _prune_union(node, needed)
        case RowNumber() | Rank() | Deduplicate():
            return _prune_ordered(node, needed)
        case Aggregate():
            return _prune_aggregate(node, needed)
        case Unnest():
            return _prune_unnest(node, needed)
        case _:
            assert_never(node)


def _input(node: Logical, needed: Needed) -> tuple[Logical, Places]:
    """An input of a node that keeps state: exactly the needed fields, at least one."""
    needed = needed or _any(node.fields)
    child, places = _prune(node, needed)
    kept = sorted(needed)
    if [places[i] for i in kept] == list(range(len(child.fields))):
        return child, places
    fields = tuple(child.fields[places[i]] for i in kept)
    exprs = tuple(column(child.fields, places[i]) for i in kept)
    return Project(child, exprs, fields), _places(kept)


def _prune_join(join: Join, needed: Needed) -> tuple[Logical, Places]:
    width = len(join.left.fields)
    read = needed | columns(e for e in (join.condition, join.as_of) if e is not None)
    left, left_places = _input(join.left, frozenset(i for i in read if i < width) | _kept(join, 0))
    right_read = frozenset(i - width for i in read if i >= width)
    right, right_places = _input(join.right, right_read | _kept(join, 1))
    shifted = {i + width: to + len(left.fields) for i, to in right_places.items()}
    places = left_places | shifted
    pruned = replace(
        join,
        left=left,
        right=right,
        condition=join.condition and moved(join.condition, places),
        as_of=join.as_of and moved(join.as_of, places),
    )
    return pruned, places


def _kept(join: Join, side: int) -> Needed:
    """Columns that the join needs although the query does not name them.

    An upsert input without its primary key could only be stored as a multiset, after a
    normaliser; the version side of a temporal join is made of its key and its time, and its probe
    rows, if they change, are known by their key.
    """
    node = join.left if side == 0 else join.right
    keys: Needed = frozenset().union(*facts(node).unique_keys)
    if not is_versioned(join):
        return keys if changelog_of(node) == "upsert" else frozenset()
    if side == 0:
        return _identity_key(node) if facts(node).kinds != INSERT else frozenset()
    time = facts(node).version_time
    return keys if time is None else keys | {time}


def _identity_key(node: Logical) -> Needed:
    """The key by which the changes of a row are recognised; nothing where there is none."""
    keys = facts(node).unique_keys, facts(node).upsert_keys
    return frozenset().union(*(smallest(found) or () for found in keys))


def _prune_union(union: Union, needed: Needed) -> tuple[Logical, Places]:
    kept = sorted(needed or _any(union.fields))
    inputs = tuple(_input(i, frozenset(kept))[0] for i in union.inputs)
    fields = tuple(union.fields[i] for i in kept)
    return replace(union, inputs=inputs, fields=fields), _places(kept)


def _prune_ordered(node: RowNumber | Rank | Deduplicate, needed: Needed) -> tuple[Logical, Places]:
    match node:
        case RowNumber():
            return _prune_numbered(node, needed)
        case Rank():
            return _prune_rank(node, needed)
        case Deduplicate(partition=partition, order=order):
            child, places = _input(node.input, needed | {*partition, order})
            by = tuple(places[i] for i in partition)
            return replace(node, input=child, partition=by, order=places[order]), places


def _prune_numbered(node: RowNumber, needed: Needed) -> tuple[Logical, Places]:
    """A row number that is no deduplication keeps all columns: it is refused anyway."""
    child, places = _input(node.input, frozenset(range(len(node.input.fields))))
    places = {**places, len(child.fields): len(child.fields)}
    return replace(node, input=child), {i: places[i] for i in needed}


def _prune_rank(node: Rank, needed: Needed) -> tuple[Logical, Places]:
    """Without its number where nothing reads that."""
    width = len(node.input.fields)
    by = {*node.partition, *(key.column for key in node.order)}
    child, places = _input(node.input, (needed - {width}) | by)
    pruned = replace(
        node,
        input=child,
        partition=tuple(places[i] for i in node.partition),
        order=tuple(key._replace(column=places[key.column]) for key in node.order),
        number=node.number if width in needed else None,
    )
    return pruned, places if width not in needed else {**places, width: len(child.fields)}


def _prune_aggregate(node: Aggregate, needed: Needed) -> tuple[Logical, Places]:
    """Leave out unread calls; without keys one stays, because even no rows make a row."""
    keys = len(node.keys)
    kept = [i for i in range(len(node.calls)) if i + keys in needed]
    if not kept and not keys and node.calls:
        kept = [0]
    calls = tuple(node.calls[i] for i in kept)
    exprs = [*node.keys, *(e for c in calls for e in (c.argument, c.filter) if e is not None)]
    child, places = _input(node.input, columns(exprs))
    found = [*range(keys), *(i + keys for i in kept)]
    pruned = Aggregate(
        child,
        tuple(moved(k, places) for k in node.keys),
        tuple(
            replace(
                c,
                argument=c.argument and moved(c.argument, places),
                filter=c.filter and moved(c.filter, places),
            )
            for c in calls
        ),
        tuple(node.fields[i] for i in found),
        node.position,
    )
    return pruned, _places(found)


def _prune_unnest(node: Unnest, needed: Needed) -> tuple[Logical, Places]:
    """All columns of the elements stay, and the key of rows that change: they go by it."""
    width, elements = len(node.input.fields), len(node.elements)
    read = needed | columns(e for e in (node.collection, node.condition) if e is not None)
    key = _identity_key(node.input) if facts(node.input).kinds != INSERT else frozenset[int]()
    child, places = _input(node.input, frozenset(i for i in read if i < width) | key)
    places = places | {width + i: len(child.fields) + i for i in range(elements)}
    pruned = replace(
        node,
        input=child,
        collection=moved(node.collection, places),
        condition=node.condition and moved(node.condition, places),
    )
    return pruned, places


def _any(fields: tuple[Field, ...]) -> Needed:
    """One field, where none is read: rows need a column, and PROCTIME() has no value to keep."""
    return frozenset((next((i for i, f in enumerate(fields) if f.time != "proctime"), 0),))


def _places(kept: list[int]) -> Places:
    return {position: place for place, position in enumerate(kept)}


def _identity(needed: Needed) -> Places:
    return {i: i for i in needed}
