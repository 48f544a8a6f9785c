"""Which partition holds a query's watermark back, and what can be done about it."""

from collections.abc import Iterator

from service.models import HeldBack, PartitionWatermark, QueryWatermarks
from spark_jobs.job_record import GraphNode, JobRecord
from spark_jobs.status import JobStatus, PartitionStatus, QueryStatus

_END_MS = 2**62  # the watermark of inputs that have ended lies beyond all times


def watermarks(status: JobStatus | None, job: JobRecord | None) -> tuple[QueryWatermarks, ...]:
    """Of every query; which tables' watermarks count is known from the job's record."""
    if status is None:
        return ()
    return tuple(_of_query(query, _nodes(job, query.name)) for query in status.queries)


def _nodes(job: JobRecord | None, query: str) -> dict[str, GraphNode]:
    found = [q for q in (job.queries if job else ()) if q.name == query]
    return {n.table: n for q in found for n in q.nodes if n.kind == "source" and n.table}


def _of_query(query: QueryStatus, nodes: dict[str, GraphNode]) -> QueryWatermarks:
    partitions = tuple(_partitions(query, nodes))
    counting = [p for p in partitions if p.counts]
    counted = [p for p in counting if not p.idle]
    silent = [p for p in counted if p.watermark_ms is None]
    slowest = min((p.watermark_ms for p in counted if p.watermark_ms is not None), default=None)
    # a partition that has never spoken holds back more than any that has
    holding = silent or [p for p in counted if p.watermark_ms == slowest and slowest is not None]
    if not counted:
        holding = counting[:1]
    ended = slowest is not None and slowest >= _END_MS
    return QueryWatermarks(
        query=query.name,
        watermark_ms=query.watermark_ms,
        partitions=partitions,
        held_back_by=() if ended else tuple(_held_back(p, nodes.get(p.table)) for p in holding),
    )


def _partitions(query: QueryStatus, nodes: dict[str, GraphNode]) -> Iterator[PartitionWatermark]:
    for source in query.sources:
        node = nodes.get(source.table)
        for part in source.partitions:
            yield PartitionWatermark(
                table=source.table,
                topic=source.topic,
                partition=part.partition,
                watermark_ms=part.watermark_ms,
                idle=part.idle,
                lag_records=max(part.latest_offset - part.offset, 0),
                records_read=part.offset,
                counts=_counts(node, part),
            )


def _counts(node: GraphNode | None, part: PartitionStatus) -> bool:
    return node.tells_time if node is not None else part.watermark_ms is not None


def _held_back(part: PartitionWatermark, node: GraphNode | None) -> HeldBack:
    place = f"partition {part.partition} of topic {part.topic} (table {part.table})"
    if part.idle:
        reason = f"{place} is idle, and so is every other: time stands still until a record comes"
        return HeldBack(
            partition=part, reason=reason, advice="one record moves it; no setting does"
        )
    if part.lag_records > 0:
        reason = f"{place} has {part.lag_records} records that are not read yet"
        advice = "it catches up by itself; more cores or fewer records per batch help"
        return HeldBack(partition=part, reason=reason, advice=advice)
    if part.watermark_ms is None:
        reason = f"{place} has sent nothing that tells the time"
    else:
        reason = f"{place} has the lowest watermark and nothing more to read"
    return HeldBack(partition=part, reason=reason, advice=_advice(node))


def _advice(node: GraphNode | None) -> str:
    option = "'scan.watermark.idle-timeout'"
    if node is not None and node.idle_timeout_ms:
        seconds = node.idle_timeout_ms / 1000
        return f"{option} lets the others go on once it has been silent for {seconds:g} s"
    return (
        f"with {option} = '30 s' in the table's WITH clause, a partition that is silent for 30 s"
        " would no longer hold the others back; rows that it sends later may then be late"
    )
