"""Which kinds of change a node may produce, as Flink's changelog mode inference says."""

from typing import assert_never

from spark_jobs.plan.facts.times import interval_bounds, is_versioned, times
from spark_jobs.plan.nodes.logical import (
    Aggregate,
    Deduplicate,
    Filter,
    Join,
    Logical,
    Project,
    RowNumber,
    Scan,
    Sink,
    Union,
    inputs_of,
)
from spark_jobs.sql.catalog import ChangelogMode, Table

Kinds = frozenset[str]

INSERT: Kinds = frozenset({"I"})
ALL: Kinds = frozenset({"I", "U", "D"})


def kinds(node: Logical) -> Kinds:
    """Insertions, updates, deletions: what of these the node may produce."""
    match node:
        case Scan(table=table):
            return INSERT if table.changelog == "append" else ALL
        case Filter(input=inner) | Project(input=inner) | Sink(input=inner):
            return kinds(inner)
        case RowNumber(input=inner):
            return kinds(inner)
        case Union(inputs=inputs):
            return INSERT.union(*map(kinds, inputs))
        case Join():
            return _joined(node)
        case Aggregate():
            return _aggregated(node)
        case Deduplicate(keep=keep, corrects=corrects):
            return INSERT if keep == "first" and not corrects else INSERT | {"U"}
        case _:
            assert_never(node)


def _joined(join: Join) -> Kinds:
    if is_versioned(join):
        return kinds(join.left)
    if join.kind in ("inner", "semi"):
        return kinds(join.left) | kinds(join.right)
    return INSERT if interval_bounds(join) is not None else ALL


def _aggregated(aggregate: Aggregate) -> Kinds:
    """A group is updated with every row; without calls (DISTINCT) it only comes and goes."""
    updating = kinds(aggregate.input) != INSERT
    found = INSERT | {"U"} if aggregate.calls else INSERT
    return found | {"D"} if updating else found


def waits_for_watermark(node: Deduplicate) -> bool:
    """The first row by event time is known when the watermark has passed it (FLINK-37005)."""
    is_first = node.keep == "first" and times(node.input)[node.order] == "rowtime"
    return is_first and not node.corrects


def changelog_of(node: Logical) -> ChangelogMode | None:
    """The changelog mode of the one table whose rows these still are; None after an operator."""
    match node:
        case Scan(table=table):
            return table.changelog
        case Filter(input=inner) | Project(input=inner) | Sink(input=inner):
            return changelog_of(inner)
        case _:
            return None


def mode_text(of: Kinds, update_before: bool) -> str:
    """Flink's text of a changelog mode.

    >>> mode_text(ALL, update_before=False)
    'I,UA,D'
    """
    updates = (["UB"] if update_before else []) + ["UA"]
    return ",".join([*("I" for _ in of & {"I"}), *(updates if "U" in of else []), *(of & {"D"})])


def sink_mode(table: Table) -> ChangelogMode:
    """What a table takes when it is written: append, upsert or retract."""
    if table.connector == "upsert-kafka":
        return "upsert"
    value_format = table.value_format
    reads = value_format.changelog if value_format is not None else "append"
    return "append" if reads == "append" else "retract"


def why_updating(node: Logical) -> str:
    """The first reason why the node's rows change, for error messages."""
    match node:
        case Scan(table=table):
            return f"table {table.name} has changelog mode {table.changelog}"
        case Aggregate() if kinds(node.input) == INSERT:
            return "an aggregate updates its group with every row"
        case Deduplicate(keep="last"):
            return "keeping the last row of a key replaces the row before"
        case Deduplicate():
            return "the first row of a key is corrected while mini-batches are on"
        case Join(kind=kind) if kinds(node.left) == kinds(node.right) == INSERT:
            return f"{'an' if kind == 'anti' else 'a'} {kind} join {_retracts(kind)}"
        case _:
            return why_updating(next(i for i in inputs_of(node) if kinds(i) != INSERT))


def _retracts(kind: str) -> str:
    if kind == "anti":
        return "retracts rows for which a match comes"
    return "retracts rows that it padded with NULL"
