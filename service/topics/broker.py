"""Queries Kafka for the ends of topics and for the latest records of a sink."""

import json
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from confluent_kafka import Consumer, KafkaException, Message, TopicPartition

from service.masking import masked
from service.models import LagBody, PartitionLag, Reason, SampleRow
from service.topics.row_links import state_links
from spark_jobs.job_record import JobRecord, QueryRecord
from spark_jobs.status import JobStatus, QueryStatus

TIMEOUT_S = 3.0
FRESH_S = 2.0
_MOST_TEXT = 2000
# errors of a query; the last three occur if a status file names an impossible topic
_QUERY_ERRORS = (KafkaException, OSError, ValueError, TypeError, LookupError, OverflowError)


class BrokerClient:
    """A Kafka client that connects at the first query and returns failures as `Reason`.

    `config_file` has librdkafka's properties (lines `name=value`), if the brokers need credentials;
    without it, the client connects to the servers in the job record.
    """

    def __init__(self, config_file: Path | None) -> None:
        self._config_file = config_file
        self._lock = threading.Lock()
        self._client: Consumer | None = None
        self._ends: dict[tuple[str, int], int] = {}
        self._queried_s = float("-inf")
        self._problem: Reason | None = None

    def lag(self, status: JobStatus | None, job: JobRecord | None) -> LagBody:
        """The lag of every source partition; as of the last epoch if the broker does not answer."""
        from_driver = _driver_lag(status)
        places = [(p.topic, p.partition) for p in from_driver]
        ends, problem = self._latest(places, job)
        measured = tuple(
            p
            if (end := ends.get((p.topic, p.partition))) is None
            else p.model_copy(
                update={"end_offset": max(end, p.offset), "lag_records": max(end - p.offset, 0)}
            )
            for p in from_driver
        )
        return LagBody(
            measured="broker" if problem is None and measured else "driver",
            problem=problem,
            partitions=measured,
            lag_records=sum(p.lag_records for p in measured),
        )

    def latest_rows(
        self, query: QueryStatus, count: int, hidden: Iterable[str], job: JobRecord | None
    ) -> tuple[tuple[SampleRow, ...], Reason | None]:
        """The newest committed records of a query's sink topic, newest first."""
        topic = query.sink
        with self._lock:
            try:
                client = self._open(job)
                known = client.list_topics(topic, timeout=TIMEOUT_S).topics[topic].partitions
                found = _tail(client, topic, sorted(known), count)
            except _QUERY_ERRORS as error:
                return (), self._reset_client(error)
        records = (q for q in (job.queries if job else ()) if q.name == query.name)
        record = next(records, QueryRecord(name=query.name, nodes=(), edges=()))
        rows = sample_rows(found, frozenset(hidden), record)
        newest = sorted(rows, key=lambda row: (row.timestamp_ms, row.offset), reverse=True)
        return tuple(newest[:count]), None

    def _latest(
        self, places: Sequence[tuple[str, int]], job: JobRecord | None
    ) -> tuple[dict[tuple[str, int], int], Reason | None]:
        with self._lock:
            if time.monotonic() - self._queried_s < FRESH_S:
                return dict(self._ends), self._problem
            try:
                client = self._open(job)
                self._ends = {
                    place: client.get_watermark_offsets(
                        TopicPartition(*place), timeout=TIMEOUT_S, cached=False
                    )[1]
                    for place in places
                }
                self._problem = None
            except _QUERY_ERRORS as error:
                self._problem = self._reset_client(error)
            self._queried_s = time.monotonic()
            return dict(self._ends), self._problem

    def _open(self, job: JobRecord | None) -> Consumer:
        if self._client is None:
            self._client = Consumer(
                {
                    **self._config(job),
                    "group.id": "rejoin-sidecar",
                    "enable.auto.commit": False,
                    "isolation.level": "read_committed",
                    "log_level": 0,
                    "socket.timeout.ms": int(TIMEOUT_S * 1000),
                }
            )
        return self._client

    def _config(self, job: JobRecord | None) -> dict[str, str]:
        if self._config_file is not None:
            lines = self._config_file.read_text(encoding="utf-8").splitlines()
            pairs = [line.split("=", 1) for line in lines if "=" in line and line[0] != "#"]
            return {name.strip(): value.strip() for name, value in pairs}
        if job is None or not job.servers:
            raise ValueError("the driver has not written yet which brokers it uses")
        if job.secured:
            raise ValueError("the brokers need credentials: start the sidecar with --kafka-config")
        return {"bootstrap.servers": ",".join(job.servers)}

    def _reset_client(self, error: Exception) -> Reason:
        """Drop the client, so that the next query opens one with the settings of that time."""
        self._client = None
        text = error.args[0] if isinstance(error, KafkaException) else error
        return Reason(code="broker_unreachable", message=str(text)[:500])


def _driver_lag(status: JobStatus | None) -> list[PartitionLag]:
    """The lag in the status; of two queries that read a topic, that of the slower one."""
    found: dict[tuple[str, str, int], PartitionLag] = {}
    for query in status.queries if status is not None else ():
        for source in query.sources:
            for part in source.partitions:
                place = (source.table, source.topic, part.partition)
                lag = PartitionLag(
                    table=source.table,
                    topic=source.topic,
                    partition=part.partition,
                    offset=part.offset,
                    end_offset=part.latest_offset,
                    lag_records=part.lag_records,
                )
                if place not in found or found[place].offset > part.offset:
                    found[place] = lag
    return list(found.values())


def _tail(client: Consumer, topic: str, partitions: Sequence[int], count: int) -> list[Message]:
    """The last records. Reads more than `count` offsets, because transaction markers have some."""
    starts = []
    for partition in partitions:
        at = TopicPartition(topic, partition)
        low, high = client.get_watermark_offsets(at, timeout=TIMEOUT_S, cached=False)
        starts.append(TopicPartition(topic, partition, max(low, high - 2 * count - 10)))
    client.assign(starts)
    found: list[Message] = []
    deadline = time.monotonic() + TIMEOUT_S
    try:
        while time.monotonic() < deadline:
            polled = client.consume(500, timeout=0.3)
            if not polled:
                break
            found += [message for message in polled if message.error() is None]
    finally:
        client.unassign()
    return found


def sample_rows(
    messages: Sequence[Message], hidden: frozenset[str], query: QueryRecord
) -> Iterator[SampleRow]:
    """The records of a topic as rows, with what each takes back and the keys of its state."""
    mode = query.plan.get("mode")  # `append`, `upsert` or `retract`
    present: dict[object, str | None] = {}  # the newest value of each key so far
    for message in sorted(messages, key=lambda m: (m.partition() or 0, m.offset() or 0)):
        value = _text(message.value(), hidden)
        before = None
        if mode == "upsert":
            before = present.get(message.key())
            present[message.key()] = value
        is_gone = value is None if mode == "upsert" else mode == "retract" and _is_deletion(message)
        yield SampleRow(
            change="taken back" if is_gone else "written" if before is None else "corrected",
            before=before,
            topic=message.topic() or "",
            partition=message.partition() or 0,
            offset=message.offset() or 0,
            timestamp_ms=message.timestamp()[1],
            key=_text(message.key(), hidden),
            value=value,
            state=tuple(
                state_links(
                    message.key(),
                    message.value(),
                    query.nodes,
                    hidden,
                    is_changelog=mode == "retract",
                )
            ),
        )


def _is_deletion(message: Message) -> bool:
    """Whether a record of a changelog in JSON takes a row back, in the words of its format."""
    try:
        parsed = json.loads(message.value() or b"")
    except (ValueError, RecursionError):
        return False
    if not isinstance(parsed, dict):
        return False
    return parsed.get("op") in ("d", "-U", "-D") or parsed.get("type") in ("DELETE", "delete")


def _text(data: bytes | str | None, hidden: frozenset[str]) -> str | None:
    """JSON with masked columns; only the size if it is not JSON, or no object while masking."""
    if data is None:
        return None
    raw = data.encode() if isinstance(data, str) else data
    try:
        parsed = json.loads(raw)
    except (ValueError, RecursionError):
        return f"{len(raw)} bytes"
    if hidden and not isinstance(parsed, dict):
        return f"{len(raw)} bytes"
    return json.dumps(masked(parsed, hidden), ensure_ascii=False)[:_MOST_TEXT]
