"""What a temporal join needs of its two sides."""

from collections.abc import Iterator

from spark_jobs.errors import PositionedError
from spark_jobs.plan.check.problems import wrong
from spark_jobs.plan.facts.changelog import INSERT
from spark_jobs.plan.facts.facts import as_of_time, facts
from spark_jobs.plan.facts.keys import Key, smallest
from spark_jobs.plan.facts.sources import peel
from spark_jobs.plan.facts.times import is_versioned
from spark_jobs.sql.logical import Filter, Join, Logical, Project, Unnest
from spark_jobs.sql.types.expr import Column, columns

JOIN_NAMES = {
    "inner": "INNER JOIN",
    "left": "LEFT JOIN",
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "semi join (IN, EXISTS)",
    "anti": "anti join (NOT IN, NOT EXISTS)",
}


def kind_refusals(join: Join) -> Iterator[PositionedError]:
    """The kind of join that the text names counts, not what WHERE makes of it."""
    if is_versioned(join) and join.kind not in ("inner", "left"):
        yield wrong(
            "TEMPORAL_JOIN_KIND",
            f"{_name(join)} is either INNER JOIN or LEFT JOIN, but this is {JOIN_NAMES[join.kind]}",
            join.position,
            "the left table must be the one whose rows are looked up in the versioned table",
        )


def temporal_refusals(join: Join) -> Iterator[PositionedError]:
    """What the optimised join lacks."""
    if join.snapshot is not None:
        yield from _snapshot(join)
        return
    time = as_of_time(join)
    if time is None:
        yield _no_time(join)
    if time == "proctime":
        yield from _needs_equality(join)
    else:
        yield from _versioned_table(join)


def _no_time(join: Join) -> PositionedError:
    lost = isinstance(join.as_of, Column) and any(
        f.name == join.as_of.name and f.time is not None for f in join.left.fields
    )
    if lost and isinstance(join.as_of, Column):
        return wrong(
            "TEMPORAL_JOIN_TIME",
            f"{join.as_of.name} is no time attribute any more: a regular join, an aggregate or a"
            " cast before this join has made it a plain timestamp",
            join.position,
            "make the temporal join first, or bound the times of the join before it from both"
            " sides (an interval join keeps them)",
        )
    return wrong(
        "TEMPORAL_JOIN_TIME",
        "FOR SYSTEM_TIME AS OF takes the left table's time attribute, which this is not",
        join.position,
        "declare WATERMARK FOR that column in the left table and name the column itself, or a"
        " column of the left table that is PROCTIME()",
    )


def _snapshot(join: Join) -> Iterator[PositionedError]:
    yield from _needs_equality(join)
    waits = join.snapshot is not None and join.snapshot.at_ms is not None
    if waits and "rowtime" not in facts(join.right).times:
        yield wrong(
            "SNAPSHOT_NO_WATERMARK",
            "the build side of a LATERAL SNAPSHOT join counts as loaded when its watermark reaches"
            " a time, but it has no watermark",
            join.position,
            "declare WATERMARK FOR one of its columns",
        )


def _needs_equality(join: Join) -> Iterator[PositionedError]:
    if not facts(join).condition.keys:
        yield wrong(
            "TEMPORAL_JOIN_NO_EQUALITY",
            f"{_name(join)} needs an equality with a column of the right table",
            join.position,
            "compare a column of the right table by = in ON",
        )


def _versioned_table(join: Join) -> Iterator[PositionedError]:
    needs = "an event-time temporal join needs primary key and event time of the versioned table, "
    time = facts(join.right).version_time
    if time is None:
        yield wrong(
            "TEMPORAL_JOIN_NO_WATERMARK",
            needs + "but no event time is declared",
            join.position,
            "declare WATERMARK FOR one of its columns; a versioned view must select the event time"
            " by which its ROW_NUMBER() is ordered",
        )
    elif isinstance(join.as_of, Column):
        yield from _time_types(join, join.as_of, time)
    key = smallest(facts(join.right).unique_keys)
    if key is None:
        yield wrong(
            "TEMPORAL_JOIN_NO_PRIMARY_KEY",
            needs + "but no primary key is declared",
            join.position,
            "declare PRIMARY KEY (...) NOT ENFORCED in the versioned table, or make it a view that"
            " keeps ROW_NUMBER() OVER (PARTITION BY key ORDER BY time DESC) = 1",
        )
        return
    yield from _whole_key(join, key)
    yield from _filtered_versions(join, key)


def _time_types(join: Join, as_of: Column, time: int) -> Iterator[PositionedError]:
    version = join.right.fields[time]
    if version.type.name != as_of.type.name:
        yield wrong(
            "TEMPORAL_JOIN_TIME",
            f"the left time {as_of.name} is {as_of.type.sql()}, the version time {version.name} is"
            f" {version.type.sql()}",
            join.position,
            "declare both times as TIMESTAMP or both as TIMESTAMP_LTZ",
        )


def _whole_key(join: Join, key: Key) -> Iterator[PositionedError]:
    compared = facts(join).condition.columns_of(1)
    missing = [join.right.fields[i].name for i in sorted(key - compared)]
    if missing:
        names = ", ".join(join.right.fields[i].name for i in sorted(key))
        yield wrong(
            "TEMPORAL_JOIN_KEY",
            f"the primary key ({names}) of the versioned table must be compared by = in the join"
            f" condition, but {', '.join(missing)} is not",
            join.position,
            f"add an equality for {', '.join(missing)} to ON",
        )


def _filtered_versions(join: Join, key: Key) -> Iterator[PositionedError]:
    """A version that a filter removes would leave its predecessor valid for longer than it was.

    A filter over the key alone removes whole keys, and one below a ROW_NUMBER() filters the
    history before there are versions. An element that a row has no more is taken back at the time
    at which it came, as one that a filter removes.
    """
    if facts(join.right).kinds == INSERT:
        return
    if isinstance(peel(join.right).base, Unnest):
        yield wrong(
            "TEMPORAL_JOIN_FILTERED_VERSIONS",
            "UNNEST below the versioned side of a temporal join would corrupt its versions",
            join.position,
            "join the rows with their collections, and write UNNEST behind the join",
        )
    elif not _filtered_columns(join.right) <= key:
        yield wrong(
            "TEMPORAL_JOIN_FILTERED_VERSIONS",
            "a filter below the versioned side of a temporal join would corrupt its versions",
            join.position,
            "move the condition into ON, or into the WHERE of the joined query",
        )


def _filtered_columns(node: Logical) -> frozenset[int]:
    """Output columns that a filter above the versions reads; -1 for one that is not selected."""
    match node:
        case Filter(condition=condition):
            return columns((condition,))
        case Project(input=Filter() as inner, exprs=exprs):
            places = {e.index: i for i, e in enumerate(exprs) if isinstance(e, Column)}
            return frozenset(places.get(i, -1) for i in _filtered_columns(inner))
        case _:
            return frozenset()


def _name(join: Join) -> str:
    return "a temporal join" if join.snapshot is None else "a LATERAL SNAPSHOT join"
