"""What Spark's real-time mode cannot run, and what would come out wrong there."""

from collections.abc import Iterator, Sequence

from spark_jobs.errors import PositionedError
from spark_jobs.plan.check.problems import unsupported
from spark_jobs.plan.nodes.parts import and_words
from spark_jobs.plan.nodes.physical import (
    KafkaScan,
    KafkaSink,
    LookupJoin,
    Rekey,
    Results,
    Stateful,
)
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.sql.logical import Logical, Sink

MICRO_BATCH = "SET 'rejoin.mode' = 'micro-batch' runs it"
_GUARANTEE, _PREFIX = "sink.delivery-guarantee", "sink.transactional-id-prefix"


def query_refusals(inserts: Sequence[Sink]) -> Iterator[PositionedError]:
    """A query in real-time mode holds its task slots for as long as it runs."""
    for insert in inserts[1:]:
        yield unsupported(
            "REAL_TIME_QUERIES",
            "a job in real-time mode has one INSERT, because its query occupies the task slots of"
            " Spark for as long as it runs",
            insert.position,
            "give each INSERT a job file of its own",
        )


def real_time_refusals(bound: Logical, planned: KafkaSink | Results) -> Iterator[PositionedError]:
    """Every reason why a planned query cannot run in real-time mode."""
    if not isinstance(bound, Sink) or not isinstance(planned, KafkaSink):
        return
    yield from _delivery(bound, planned)
    yield from _tables(bound, planned)
    yield from _operators(bound, planned)


def _delivery(sink: Sink, planned: KafkaSink) -> Iterator[PositionedError]:
    if planned.guarantee == "exactly-once":
        yield from _transactions(sink, planned)
    elif _PREFIX in sink.table.options.given:
        yield unsupported(
            "REAL_TIME_DELIVERY",
            f"'{_PREFIX}' of {sink.table.name} has no effect: real-time mode writes at-least-once"
            " unless it is told otherwise",
            sink.position,
            f"leave it out; or add '{_GUARANTEE}' = 'exactly-once'",
        )
    elif planned.mode == "retract":
        yield unsupported(
            "REAL_TIME_DELIVERY",
            f"the changes in {sink.table.name} ({planned.value_format.name}) would count twice"
            " where real-time mode repeats them after a failure",
            sink.position,
            "write to an upsert-kafka table with a PRIMARY KEY, where a repetition changes nothing;"
            f" or add '{_GUARANTEE}' = 'exactly-once'",
        )


def _transactions(sink: Sink, planned: KafkaSink) -> Iterator[PositionedError]:
    """Barriers go from the readers through the operators, and the last one's tasks write."""
    if not stateful_nodes(planned):
        reason = "behind an operator with state, and this query has none"
    elif planned.exchange:
        reason = (
            "where the changes of a record key come from one task, and here they come from many"
        )
    else:
        return
    yield unsupported(
        "REAL_TIME_DELIVERY",
        f"'{_GUARANTEE}' of {sink.table.name} asks for transactions; real-time mode has them"
        f" {reason}",
        sink.position,
        f"leave out '{_GUARANTEE}', and results come at least once; or {MICRO_BATCH}",
    )


def _tables(sink: Sink, planned: KafkaSink) -> Iterator[PositionedError]:
    read = scans(planned)
    if bounded := dict.fromkeys(s.table for s in read if s.bounded.mode != "unbounded"):
        yield unsupported(
            "REAL_TIME_BOUNDED",
            f"'scan.bounded.mode' of {and_words(bounded)}: a query in real-time mode does not end",
            sink.position,
            f"leave the option out; or {MICRO_BATCH}",
        )
    if aligned := dict.fromkeys(s.table for s in read if s.alignment is not None):
        yield unsupported(
            "REAL_TIME_ALIGNMENT",
            f"'scan.watermark.alignment.group' of {and_words(aligned)}: what an epoch reads in"
            " real-time mode is not known before it ends, so that no table can wait for another",
            sink.position,
            f"leave the option out; or {MICRO_BATCH}",
        )
    if found := dict.fromkeys(s.table for s in read if s.pattern is not None):
        yield unsupported(
            "REAL_TIME_TOPICS",
            f"'topic-pattern' of {and_words(found)}: how many task slots a query occupies in"
            " real-time mode has to be known before its topics are found",
            sink.position,
            f"list the topics in 'topic', separated by semicolons; or {MICRO_BATCH}",
        )


def _operators(sink: Sink, planned: KafkaSink) -> Iterator[PositionedError]:
    found = stateful_nodes(planned)
    if any(isinstance(node.machine, LookupJoin) for node in found):
        yield unsupported(
            "REAL_TIME_LOOKUP",
            "rows of a database are looked up for all rows of an epoch at once, and in real-time"
            " mode rows do not wait for an epoch",
            sink.position,
            MICRO_BATCH,
        )
    elif reason := _arrangement(planned, found):
        yield unsupported(
            "REAL_TIME_PLAN",
            f"Spark's real-time mode has no union behind an operator with state, and {reason}",
            sink.position,
            "write the inner result to a topic of its own with one job, and read it with another;"
            f" or {MICRO_BATCH}",
        )


def _arrangement(planned: KafkaSink, found: Sequence[Stateful]) -> str | None:
    """Where rows of an operator would have to meet others on their way."""
    if len(planned.inputs) > 1 and found:
        return f"{' and '.join(node.id for node in found)} would be part of one"
    for node in found:
        below = [read.input.id for read in node.inputs if isinstance(read, Rekey)]
        others = [read.id for read in node.inputs if isinstance(read, KafkaScan)]
        if below and (len(node.inputs) > 1 or node.timing.tick_ms is not None):
            clock = ["the clock"] if node.timing.tick_ms is not None else []
            return f"the rows of {' and '.join([*below, *others, *clock])} meet in {node.id}"
    return None
