"""What the broker says of the topics that a job reads and writes; nothing is written."""

from collections.abc import Iterator
from datetime import UTC, datetime

from confluent_kafka import Message

from spark_jobs.check.finding import Finding
from spark_jobs.errors import EXIT_CODES
from spark_jobs.plan.physical import KafkaScan, KafkaSink
from spark_jobs.streaming.kafka import KafkaEdge, Limit

SAMPLE = 100


def check_source(scan: KafkaScan) -> tuple[list[Finding], list[Message]]:
    """What there is to read, and its newest records. Raises KafkaError."""
    topics = [topic.name for topic in scan.topics]
    about = f"table {scan.table}"
    with KafkaEdge(scan.table, topics, scan.properties) as edge:
        counts = edge.partition_counts()
        starts, ends = edge.exact_starts(Limit("earliest-offset")), edge.latest()
        newest = edge.newest(max(SAMPLE // max(sum(counts.values()), 1), 1))
        settings = edge.topic_settings()
    found = [
        Finding("ok", about, _held(topic, n, starts[topic], ends[topic]))
        for topic, n in counts.items()
    ]
    if newest:
        found.append(Finding("ok", about, _pace(newest)))
    found += _retention(scan, about, settings)
    return found, newest


def check_sink(sink: KafkaSink) -> Iterator[Finding]:
    """Whether the topic exists, and keeps what the sink's changelog needs. Raises KafkaError."""
    about = f"sink {sink.table}"
    with KafkaEdge(sink.table, [sink.topic], sink.properties) as edge:
        count = edge.partition_counts()[sink.topic]
        settings = edge.topic_settings()[sink.topic]
    policy = str(settings.get("cleanup.policy"))
    largest = settings.get("max.message.bytes")
    told = f"topic {sink.topic}: {count} partitions, cleanup.policy {policy}, records up to "
    yield Finding("ok", about, f"{told}{largest} bytes")
    if sink.mode == "upsert" and "compact" not in policy:
        yield Finding(
            "warning",
            about,
            f"an upsert sink into a topic with cleanup.policy {policy}: old rows are deleted by "
            "age, current ones among them",
            "set cleanup.policy=compact",
        )
    if sink.mode != "upsert" and "compact" in policy:
        yield Finding(
            "error",
            about,
            f"a sink of changes ({sink.mode}) into a topic with cleanup.policy {policy}: compaction"
            " would take changes away that readers need",
            "set cleanup.policy=delete, or make the sink an upsert-kafka table",
            EXIT_CODES["user"],
        )


def _held(topic: str, partitions: int, starts: dict[int, int], ends: dict[int, int]) -> str:
    offsets = sum(ends[p] - starts[p] for p in ends)
    oldest = "" if not any(starts.values()) else ", the oldest are deleted already"
    return f"topic {topic}: {partitions} partitions, {offsets} offsets in use{oldest}"


def _pace(newest: list[Message]) -> str:
    """A sample's own pace, with its formula; it says nothing of other times of day."""
    times = [message.timestamp()[1] for message in newest]
    size = sum(len(m.key() or b"") + len(m.value() or b"") for m in newest) // len(newest)
    spans = f"{_time(min(times))} to {_time(max(times))}"
    told = f"{len(newest)} newest records: {spans}, {size} bytes each"
    hours = (max(times) - min(times)) / 3_600_000
    if hours <= 0:
        return told
    per_hour = round(len(newest) / hours)
    return (
        f"{told}; at that pace {per_hour} records/h (records / hours between the first and the "
        f"last), at most {per_hour * size / 2**20:.1f} MiB of state per hour if every record is a "
        "new row (records/h * bytes each)"
    )


def _time(ms: int) -> str:
    return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%d %H:%M:%S")


def _retention(
    scan: KafkaScan, about: str, settings: dict[str, dict[str, str | None]]
) -> Iterator[Finding]:
    """A table that starts at the beginning needs a beginning that stays."""
    for topic, values in settings.items():
        policy, kept_ms = str(values.get("cleanup.policy")), int(values.get("retention.ms") or -1)
        if scan.changelog == "upsert" and policy == "delete" and kept_ms >= 0:
            hours = kept_ms / 3_600_000
            yield Finding(
                "warning",
                about,
                f"topic {topic} deletes records after {hours:.0f} h: a new checkpoint would not "
                "see rows that are older",
                "set cleanup.policy=compact for the topic of an upsert table",
            )
