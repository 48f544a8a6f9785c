"""Which kinds of change a node may produce, as Flink's changelog mode inference has it."""

from collections.abc import Sequence
from typing import assert_never

from spark_jobs.plan.facts.bounds import Interval, fires_early
from spark_jobs.plan.facts.emptiness import is_row_of_nothing
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.sql.catalog import ChangelogMode, Table
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
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
)

Kinds = frozenset[str]

INSERT: Kinds = frozenset({"I"})
ALL: Kinds = frozenset({"I", "U", "D"})


def kinds(node: Logical, below: Sequence[Kinds], interval: Interval | None) -> Kinds:
    """Insertions, updates, deletions: what the node may produce of what its inputs do."""
    match node:
        case Scan(table=table):
            return INSERT if table.changelog == "append" else ALL
        case Filter() | Project() | Sink() | RowNumber() | Unnest():
            return below[0]
        case Union() | NoRows():
            return INSERT.union(*below)
        case Join():
            return _joined(node, below, interval)
        case Rank():
            return ALL
        case Aggregate() if is_row_of_nothing(node):
            return INSERT
        case Aggregate(calls=calls):
            # a group is updated with every row; without calls (DISTINCT) it only comes and goes
            found = INSERT | {"U"} if calls else INSERT
            return found | {"D"} if below[0] != INSERT else found
        case Deduplicate(keep=keep, corrects=corrects):
            return INSERT if keep == "first" and not corrects else INSERT | {"U"}
        case _:
            assert_never(node)


def _joined(join: Join, below: Sequence[Kinds], interval: Interval | None) -> Kinds:
    left, right = below
    if is_versioned(join):
        return left
    if join.kind in ("inner", "semi"):
        return left | right
    if interval is None or not left == right == INSERT:
        return ALL
    # an interval join pads a row when no match can come any more, or early
    return INSERT | {"U"} if fires_early(join, interval) else INSERT


def changelog_of(node: Logical) -> ChangelogMode | None:
    """The changelog mode of the one table whose rows these still are; None after an operator."""
    match node:
        case Scan(table=table):
            return table.changelog
        case Filter(input=inner) | Project(input=inner) | Sink(input=inner):
            return changelog_of(inner)
        case Join() | Union() | RowNumber() | Rank() | Deduplicate() | Aggregate() | Unnest():
            return None
        case NoRows():
            return None
        case _:
            assert_never(node)


def mode_text(kinds: Kinds, update_before: bool) -> str:
    """Flink's text of a changelog mode.

    >>> mode_text(ALL, update_before=False)
    'I,UA,D'
    """
    updates = (["UB"] if update_before else []) + ["UA"]
    return ",".join([*(kinds & {"I"}), *(updates if "U" in kinds else []), *(kinds & {"D"})])


def sink_mode(table: Table) -> ChangelogMode:
    """What a table takes when it is written: append, upsert or retract."""
    if table.connector == "upsert-kafka":
        return "upsert"
    value_format = table.value_format
    reads = value_format.changelog if value_format is not None else "append"
    return "append" if reads == "append" else "retract"
