"""What cannot be planned: what Flink rejects, and what rejoin cannot run yet.

Each problem is named with its place and a way out; all problems of a query are found at once.
"""

from collections.abc import Iterator
from typing import assert_never

from spark_jobs.errors import PositionedError, SqlError, UnsupportedError
from spark_jobs.plan.changelog import INSERT, kinds, sink_mode, why_updating
from spark_jobs.plan.intervals import is_interval_join
from spark_jobs.plan.keys import key_order, smallest, split_condition, unique_keys
from spark_jobs.plan.logical import Filter, Join, Logical, Position, Project, Scan, Sink
from spark_jobs.plan.sources import source_of, sources
from spark_jobs.sql.expr import Call, Column, Expr, walk

JOIN_NAMES = {
    "right": "RIGHT JOIN",
    "full": "FULL JOIN",
    "semi": "semi join (IN, EXISTS)",
    "anti": "anti join (NOT IN, NOT EXISTS)",
    "left": "LEFT JOIN",
    "inner": "INNER JOIN",
}

JOIN_HINTS = {
    "right": "swap the tables and write LEFT JOIN",
    "semi": "write an inner JOIN on a table whose primary key is compared",
    "anti": "write a LEFT JOIN and keep the rows whose right key IS NULL",
}


def refusals(bound: Logical, optimized: Logical) -> Iterator[PositionedError]:
    """Every reason not to run the query; `optimized` is `bound` after the rules."""
    joins = [n for n in nodes(optimized) if isinstance(n, Join)]
    found = [problem for join in joins for problem in _join(join)]
    yield from found
    for join in (n for n in nodes(bound) if isinstance(n, Join) and n.as_of is not None):
        yield from _filtered_versions(join)
    if len(joins) > 1:
        yield _unsupported(
            "MULTI_JOIN",
            f"{len(joins)} joins in one query: a chain of joins is not supported yet",
            joins[0].position,
            "write the result of the first join to a topic and join that topic in a second job",
        )
    if not found:
        yield from _processing_time(optimized)
    if isinstance(optimized, Sink):
        yield from _sink(optimized)


def nodes(node: Logical) -> Iterator[Logical]:
    """The node and all below it, parents first."""
    yield node
    match node:
        case Scan():
            return
        case Filter(input=inner) | Project(input=inner) | Sink(input=inner):
            yield from nodes(inner)
        case Join(left=left, right=right):
            yield from nodes(left)
            yield from nodes(right)
        case _:
            assert_never(node)


def _join(join: Join) -> Iterator[PositionedError]:
    if join.as_of is not None:
        yield from _temporal_join(join)
    elif is_interval_join(join):
        yield _unsupported(
            "INTERVAL_JOIN",
            f"interval {JOIN_NAMES[join.kind]}: joins with bounds on time attributes are not"
            " supported yet",
            join.position,
            "leave out one bound to get a regular join, which keeps its rows for ever",
        )
    elif join.kind not in ("inner", "left"):
        yield _unsupported(
            "JOIN_KIND",
            f"{JOIN_NAMES[join.kind]} is not supported yet",
            join.position,
            JOIN_HINTS.get(join.kind, "INNER JOIN and LEFT JOIN are supported"),
        )


def _temporal_join(join: Join) -> Iterator[PositionedError]:
    at = join.position
    if join.kind not in ("inner", "left"):
        yield _wrong(
            "TEMPORAL_JOIN_KIND",
            "a temporal join is either INNER JOIN or LEFT JOIN, but this is "
            + JOIN_NAMES[join.kind],
            at,
            "the left table must be the one whose rows are looked up in the versioned table",
        )
    time = _time_of(join)
    if time == "proctime":
        yield _unsupported(
            "PROCESSING_TIME_TEMPORAL_JOIN",
            "a temporal join FOR SYSTEM_TIME AS OF processing time is not supported yet",
            at,
            "use an event time: a column with WATERMARK FOR, of the left table",
        )
    else:
        if time is None:
            yield _wrong(
                "TEMPORAL_JOIN_TIME",
                "FOR SYSTEM_TIME AS OF takes the left table's time attribute, which this is not",
                at,
                "declare WATERMARK FOR that column in the left table and name the column itself",
            )
        yield from _versioned_table(join)


def _time_of(join: Join) -> str | None:
    match join.as_of:
        case Column(index=index) if index < len(join.left.fields):
            return join.left.fields[index].time
        case _:
            return None


def _versioned_table(join: Join) -> Iterator[PositionedError]:
    needs = "an event-time temporal join needs primary key and event time of the versioned table, "
    times = [f for f in join.right.fields if f.time == "rowtime"]
    if not times:
        yield _wrong(
            "TEMPORAL_JOIN_NO_WATERMARK",
            needs + "but no event time is declared",
            join.position,
            "declare WATERMARK FOR one of its columns",
        )
    elif isinstance(join.as_of, Column) and times[0].type.name != join.as_of.type.name:
        yield _wrong(
            "TEMPORAL_JOIN_TIME",
            f"the left time {join.as_of.name} is {join.as_of.type.sql()}, the version time"
            f" {times[0].name} is {times[0].type.sql()}",
            join.position,
            "declare both times as TIMESTAMP or both as TIMESTAMP_LTZ",
        )
    key = smallest(unique_keys(join.right))
    if key is None:
        yield _wrong(
            "TEMPORAL_JOIN_NO_PRIMARY_KEY",
            needs + "but no primary key is declared",
            join.position,
            "declare PRIMARY KEY (...) NOT ENFORCED in the versioned table",
        )
        return
    compared = split_condition(join).columns_of(1)
    missing = [join.right.fields[i].name for i in sorted(key - compared)]
    if missing:
        names = ", ".join(join.right.fields[i].name for i in sorted(key))
        yield _wrong(
            "TEMPORAL_JOIN_KEY",
            f"the primary key ({names}) of the versioned table must be compared by = in the join"
            f" condition, but {', '.join(missing)} is not",
            join.position,
            f"add an equality for {', '.join(missing)} to ON",
        )


def _filtered_versions(join: Join) -> Iterator[PositionedError]:
    if kinds(join.right) == INSERT or not any(isinstance(n, Filter) for n in nodes(join.right)):
        return
    yield _wrong(
        "TEMPORAL_JOIN_FILTERED_VERSIONS",
        "a filter below the versioned side of a temporal join would corrupt its versions",
        join.position,
        "move the condition into ON, or into the WHERE of the joined query",
    )


def _processing_time(root: Logical) -> Iterator[PositionedError]:
    """PROCTIME() where its value is read; a declared column that nobody reads does no harm."""
    read = list(sources(root))
    for source in read:
        exprs = (*source.exprs, source.filter) if source.filter else source.exprs
        if any(map(_reads_clock, exprs)):
            yield _clock_read(source.position, f" of table {source.table.name}")
    above = (e for n in nodes(root) if source_of(n) is None for e in _exprs(n))
    if any(map(_reads_clock, above)):
        yield _clock_read(root.position if isinstance(root, Sink) else read[0].position, "")


def _clock_read(at: Position, what: str) -> PositionedError:
    return _unsupported(
        "PROCESSING_TIME",
        f"the query reads the processing time (PROCTIME()){what}, which is not supported yet",
        at,
        "leave it out, or use a timestamp of the record: METADATA FROM 'timestamp'",
    )


def _reads_clock(expr: Expr) -> bool:
    return any(isinstance(e, Call) and e.op == "PROCTIME" for e in walk(expr))


def _exprs(node: Logical) -> tuple[Expr, ...]:
    match node:
        case Filter(condition=condition):
            return (condition,)
        case Join(condition=condition):
            return () if condition is None else (condition,)
        case Project(exprs=exprs):
            return exprs
        case _:
            return ()


def _sink(sink: Sink) -> Iterator[PositionedError]:
    table = sink.table
    mode = sink_mode(table)
    if kinds(sink) == INSERT:
        return
    if mode == "append":
        value_format = table.value_format
        name = value_format.name if value_format else "?"
        yield _wrong(
            "UPDATES_INTO_APPEND_SINK",
            f"table {table.name} ({table.connector}, {name}) takes insertions only, but the query"
            f" updates its rows: {why_updating(sink.input)}",
            sink.position,
            "write to an upsert-kafka table with a PRIMARY KEY, or to a kafka table with format"
            " debezium-json or changelog-json",
        )
    if mode == "upsert":
        yield from _upsert_key(sink)


def _upsert_key(sink: Sink) -> Iterator[PositionedError]:
    names = [c.name for c in sink.table.columns if c.writable]
    wanted = frozenset(names.index(n) for n in sink.table.primary_key if n in names)
    found = unique_keys(sink)
    if any(key <= wanted for key in found):
        return
    keys = [
        "(" + ", ".join(names[i] for i in sorted(k)) + ")" for k in sorted(found, key=key_order)
    ]
    known = " or ".join(keys[:3])
    yield _unsupported(
        "UPSERT_KEY",
        f"the primary key ({', '.join(sink.table.primary_key)}) of {sink.table.name} does not"
        " determine the rows of the query: "
        + (f"unique is {known}" if known else "the query has no unique key"),
        sink.position,
        f"declare PRIMARY KEY {keys[0]} NOT ENFORCED in {sink.table.name}"
        if keys
        else "select the primary keys of the joined tables, or write to a kafka table with format"
        " debezium-json or changelog-json",
    )


def _wrong(code: str, message: str, at: Position, hint: str) -> SqlError:
    return SqlError(code, message, hint, line=at.line, column=at.column)


def _unsupported(code: str, message: str, at: Position, hint: str) -> UnsupportedError:
    return UnsupportedError(code, message, hint, line=at.line, column=at.column)
