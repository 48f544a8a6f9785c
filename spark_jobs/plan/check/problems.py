"""What refusals share: their two kinds, at a place in the SQL text, and why rows change."""

from spark_jobs.errors import SqlError, UnsupportedError
from spark_jobs.plan.facts.bounds import fires_early
from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.facts import facts
from spark_jobs.sql.logical import (
    Aggregate,
    Deduplicate,
    Join,
    Logical,
    Position,
    Rank,
    Scan,
    inputs_of,
)


def wrong(code: str, message: str, at: Position, hint: str) -> SqlError:
    """What Flink refuses too."""
    return SqlError(code, message, hint, line=at.line, column=at.column)


def unsupported(code: str, message: str, at: Position, hint: str) -> UnsupportedError:
    """What Flink runs and rejoin does not."""
    return UnsupportedError(code, message, hint, line=at.line, column=at.column)


def why_updating(node: Logical) -> str:
    """The first reason why the node's rows change, for error messages."""
    match node:
        case Scan(table=table):
            return f"table {table.name} has changelog mode {table.changelog}"
        case Aggregate() if facts(node.input).kinds == INSERT:
            return "an aggregate updates its group with every row"
        case Deduplicate(keep="last"):
            return "keeping the last row of a key replaces the row before"
        case Deduplicate():
            return "the first row of a key is corrected while mini-batches are on"
        case Rank() if facts(node.input).kinds == INSERT:
            return "a row that comes before others in order takes their places"
        case Join(kind=kind) if fires_early(node, facts(node).interval):
            return f"the EARLY_FIRE hint lets a {kind} interval join take its paddings back"
        case Join(kind=kind) if facts(node.left).kinds == facts(node.right).kinds == INSERT:
            return f"{'an' if kind == 'anti' else 'a'} {kind} join {_retracts(kind)}"
        case _:
            return why_updating(next(i for i in inputs_of(node) if facts(i).kinds != INSERT))


def _retracts(kind: str) -> str:
    if kind == "anti":
        return "retracts rows for which a match comes"
    return "retracts rows that it padded with NULL"
