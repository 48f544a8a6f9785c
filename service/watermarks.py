"""Finds the partitions that hold a query's watermark back, with advice."""

from collections.abc import Iterator

from service.history import END_MS
from service.models import HeldBack, PartitionWatermark, QueryWatermarks
from spark_jobs.job_record import GraphNode, JobRecord
from spark_jobs.status import JobStatus, QueryStatus


def watermarks(status: JobStatus | None, job: JobRecord | None) -> tuple[QueryWatermarks, ...]:
    """The watermarks of every query; the job record says which tables count."""
    if status is None:
        return ()
    return tuple(_query_watermarks(query, _nodes(job, query.name)) for query in status.queries)


def _nodes(job: JobRecord | None, query: str) -> dict[str, GraphNode]:
    found = [q for q in (job.queries if job else ()) if q.name == query]
    return {n.table: n for q in found for n in q.nodes if n.kind == "source" and n.table}


def _query_watermarks(query: QueryStatus, nodes: dict[str, GraphNode]) -> QueryWatermarks:
    partitions = tuple(_partitions(query, nodes))
    counting = [p for p in partitions if p.counts]
    counted = [p for p in counting if not p.idle]
    silent = [p for p in counted if p.watermark_ms is None]
    slowest = min((p.watermark_ms for p in counted if p.watermark_ms is not None), default=None)
    # a partition without a watermark holds back more than any with one
    holding = silent or [p for p in counted if p.watermark_ms == slowest and slowest is not None]
    if not counted:
        holding = counting[:1]
    ended = slowest is not None and slowest >= END_MS
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
                lag_records=part.lag_records,
                records_read=part.offset,
                counts=part.watermark_ms is not None if node is None else node.tells_time,
            )


def _held_back(part: PartitionWatermark, node: GraphNode | None) -> HeldBack:
    place = f"partition {part.partition} of topic {part.topic} (table {part.table})"
    advice = _advice(node)
    if part.idle:
        reason = "is idle like all others: event time stops until a record arrives"
        advice = "send a record; no setting helps"
    elif part.lag_records > 0:
        reason = f"has {part.lag_records} unread records"
        advice = "the job is catching up; more cores or fewer records per epoch help"
    elif part.watermark_ms is None:
        reason = "has sent no event time yet"
    else:
        reason = "has the lowest watermark and no unread records"
    return HeldBack(partition=part, reason=f"{place} {reason}", advice=advice)


def _advice(node: GraphNode | None) -> str:
    option = "'scan.watermark.idle-timeout'"
    if node is not None and node.idle_timeout_ms:
        seconds = node.idle_timeout_ms / 1000
        return f"{option} lets the others continue once it has been silent for {seconds:g} s"
    return (
        f"set {option} = '30 s' in the table's WITH clause: a partition that is silent for 30 s no"
        " longer holds the others back, but rows that it sends later may be late"
    )
