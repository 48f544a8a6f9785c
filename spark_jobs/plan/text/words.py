"""What an operator is, in words: `temporal join, left`."""

from typing import assert_never

from spark_jobs.plan.nodes.physical import (
    Aggregate,
    Deduplicate,
    IntervalJoin,
    KeyChanges,
    LookupJoin,
    Machine,
    MultiJoin,
    Normalize,
    Rank,
    RegularJoin,
    SinkMaterializer,
    TemporalJoin,
    Unnest,
)


def in_words(machine: Machine) -> str:
    """The name of a box on the live page; everything else about the operator is in its details."""
    match machine:
        case RegularJoin():
            return f"regular join, {machine.join_type}"
        case MultiJoin():
            return f"join of {len(machine.join_types) + 1} tables, {', '.join(machine.join_types)}"
        case IntervalJoin() | TemporalJoin():
            kind = "interval" if isinstance(machine, IntervalJoin) else "temporal"
            time = ", processing time" if machine.time == "processing" else ""
            return f"{kind} join, {machine.join_type}{time}"
        case LookupJoin():
            return f"lookup join with {machine.lookup.table}, {machine.join_type}"
        case Unnest():
            name = machine.schema.fields[machine.collection].name
            return f"unnest of {name}, {machine.join_type}"
        case _:
            return _of_one_input(machine)


def _of_one_input(
    machine: Normalize | KeyChanges | Deduplicate | Rank | Aggregate | SinkMaterializer,
) -> str:
    match machine:
        case Normalize() | KeyChanges():
            key = ", ".join(machine.schema.fields[i].name for i in machine.key)
            kind = "changes" if isinstance(machine, Normalize) else "changes of the key"
            return f"{kind} by {key}"
        case Deduplicate():
            time = ", processing time" if machine.time == "processing" else ""
            return f"{machine.keep} row of each key{time}"
        case Rank():
            return f"Top-N, rows {machine.first} to {machine.last}"
        case Aggregate():
            return "aggregate of groups" if machine.key.fields else "aggregate of all rows"
        case SinkMaterializer():
            return "rows by key of the sink"
        case _:
            assert_never(machine)
