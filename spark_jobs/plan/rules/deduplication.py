"""`ROW_NUMBER() OVER (PARTITION BY k ORDER BY t) = 1`: the first or last row of each key."""

from dataclasses import replace
from typing import Literal as OneOf

from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.facts import facts, waits_for_watermark
from spark_jobs.plan.facts.keys import is_unique
from spark_jobs.plan.rules.constants import integer
from spark_jobs.plan.rules.rewriting import filtered, map_inputs
from spark_jobs.sql.logical import Deduplicate, Filter, Logical, Project, RowNumber, all_columns
from spark_jobs.sql.types.data_types import BIGINT, with_nullable
from spark_jobs.sql.types.expr import FLIPPED, Call, Column, Expr, Literal, conjuncts, transform

RANK_ONE = frozenset({("=", 1), ("<=", 1), ("<", 2)})
ONE = Literal(1, with_nullable(BIGINT, False))


def deduplicate(node: Logical) -> Logical:
    """A filter that keeps row number 1 by a time attribute becomes a Deduplicate.

    The filter's other predicates stay above it, with 1 for the row number.
    """
    node = map_inputs(node, deduplicate)
    match node:
        case Deduplicate():
            return _needed(node)
        case Filter(input=RowNumber() as numbered, condition=condition):
            rest = _without_rank(conjuncts(condition), len(numbered.fields) - 1)
            if rest is None or not (_orders_by_time(numbered) and _may_deduplicate(numbered)):
                return node
        case _:
            return node
    ((order, descending, _),) = numbered.order
    keep: OneOf["first", "last"] = "last" if descending else "first"
    input_ = numbered.input
    rows = Deduplicate(input_, numbered.partition, order, keep, numbered.position)
    return Project(filtered(_needed(rows), rest), (*all_columns(input_), ONE), numbered.fields)


def correct_first_rows(node: Logical) -> Logical:
    """First rows by event time leave before they are known to be the first."""
    node = map_inputs(node, correct_first_rows)
    if isinstance(node, Deduplicate) and waits_for_watermark(node):
        return replace(node, corrects=True)
    return node


def _needed(node: Deduplicate) -> Logical:
    """A changelog that has one row per key by itself needs no deduplication.

    An append-only table has not: its rows are versions, and a primary key names what they are of.
    """
    updating = facts(node.input).kinds != INSERT
    one_row = is_unique(facts(node.input).unique_keys, frozenset(node.partition))
    return node.input if updating and one_row else node


def _may_deduplicate(node: RowNumber) -> bool:
    """Rows that change can be told by their order only if they are all kept."""
    known = facts(node.input)
    return known.kinds == INSERT or is_unique(known.unique_keys, frozenset(node.partition))


def _orders_by_time(node: RowNumber) -> bool:
    """Whether the order is by one time attribute, so that the first and last row are known."""
    return len(node.order) == 1 and facts(node.input).times[node.order[0].column] is not None


def _without_rank(predicates: tuple[Expr, ...], rank: int) -> tuple[Expr, ...] | None:
    """The predicates without the one that keeps row number 1; None if there is none."""
    rest = [p for p in predicates if not _is_rank_one(p, rank)]
    if len(rest) == len(predicates):
        return None
    return tuple(transform(p, lambda c: ONE if c.index == rank else c) for p in rest)


def _is_rank_one(predicate: Expr, rank: int) -> bool:
    match predicate:
        case Call(op=op, args=(a, b)) if op in FLIPPED:
            if _is_column(a, rank):
                return (op, integer(b)) in RANK_ONE
            return _is_column(b, rank) and (FLIPPED[op], integer(a)) in RANK_ONE
        case _:
            return False


def _is_column(expr: Expr, index: int) -> bool:
    match expr:
        case Column(index=found) | Call(op="CAST", args=(Column(index=found),)):
            return found == index
        case _:
            return False
