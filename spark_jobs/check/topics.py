"""Whether the topics of a job exist and have the settings that it needs; writes nothing."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from confluent_kafka import Message

from spark_jobs.access.topics import Limit, TableTopics, open_topics, resolved
from spark_jobs.check.finding import Finding
from spark_jobs.check.rate import HOUR_MS, FillRate, measure_rate
from spark_jobs.driver.topics.topic_patterns import at_broker
from spark_jobs.errors import EXIT_CODES, KafkaError
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink
from spark_jobs.plan.nodes.walk import stateful_nodes

SAMPLE = 100


@dataclass(frozen=True, slots=True)
class SampledTable:
    """A source table with a sample of its newest records and the rate at which it fills."""

    scan: KafkaScan
    partitions: int
    newest: Sequence[Message]
    rate: FillRate | None


def check_source(scan: KafkaScan, cores: int) -> tuple[list[Finding], SampledTable]:
    """Check a source's topics and sample their newest records. Raises KafkaError."""
    scan = at_broker(scan)
    topics = [topic.name for topic in scan.topics]
    about = f"table {scan.table}"
    with open_topics(scan.table, topics, scan.properties) as edge:
        policy = "compact" if scan.changelog == "upsert" else "delete"
        _require(edge, scan.properties, policy, cores)
        counts = edge.partition_counts()
        starts, ends = edge.exact_starts(Limit("earliest-offset")), edge.latest()
        newest = edge.newest(max(SAMPLE // max(sum(counts.values()), 1), 1))
        rate = measure_rate(edge, newest)
        settings = edge.topic_settings()
    found = [
        Finding("ok", "TOPIC_FOUND", about, _topic_text(topic, n, starts[topic], ends[topic]))
        for topic, n in counts.items()
    ]
    if rate is not None:
        found.append(Finding("ok", "TOPIC_PACE", about, rate.text()))
    found += _retention(scan, about, settings)
    return found, SampledTable(scan, sum(counts.values()), newest, rate)


def check_sink(sink: KafkaSink, before: int | None, cores: int) -> Iterator[Finding]:
    """Check that the sink's topic exists and keeps what its changelog needs. Raises KafkaError.

    `before` is its number of partitions when the checkpoint began.
    """
    about = f"sink {sink.table}"
    wanted = "compact" if sink.mode == "upsert" else "delete"
    with open_topics(sink.table, [sink.topic], sink.properties) as edge:
        _require(edge, sink.properties, wanted, cores)
        count = edge.partition_counts()[sink.topic]
        settings = edge.topic_settings()[sink.topic]
    if before is not None and before != count:
        yield _partitions_changed(sink, before, count)
    if not settings:
        yield Finding("ok", "TOPIC_FOUND", about, f"topic {sink.topic}: {count} partitions")
        yield _settings_unknown(about, sink.topic)
        return
    policy = str(settings.get("cleanup.policy"))
    largest = settings.get("max.message.bytes")
    text = f"topic {sink.topic}: {count} partitions, cleanup.policy {policy}, records up to "
    yield Finding("ok", "TOPIC_FOUND", about, f"{text}{largest} bytes")
    if sink.mode == "upsert" and "compact" not in policy:
        yield Finding(
            "warning",
            "SINK_NOT_COMPACTED",
            about,
            f"an upsert sink into a topic with cleanup.policy {policy}: the topic deletes rows by "
            "age, current ones too",
            "set cleanup.policy=compact",
        )
    if sink.mode != "upsert" and "compact" in policy:
        yield Finding(
            "error",
            "SINK_COMPACTED",
            about,
            f"a {sink.mode} sink into a topic with cleanup.policy {policy}: compaction would "
            "delete changes that readers need",
            "set cleanup.policy=delete, or make the sink an upsert-kafka table",
            EXIT_CODES["user"],
        )


def check_dead_letters(
    sink: KafkaSink, read: Sequence[KafkaScan], partitions: Mapping[str, int]
) -> Iterator[Finding]:
    """Topics of dead letters and late rows exist, are not compacted, and have enough partitions."""
    wanted = {sink.dead_letter_topic: 1} if sink.dead_letter_topic else {}
    for scan in read:
        topic = scan.dead_letter_topic
        if topic is not None and scan.on_error == "dead-letter":
            wanted[topic] = max(wanted.get(topic, 1), partitions.get(scan.table, 1))
    for node in stateful_nodes(sink):
        if node.output.late_topic is not None:
            wanted.setdefault(node.output.late_topic, 1)
    for topic, width in wanted.items():
        about = f"dead-letter topic {topic}"
        with open_topics(topic, [topic], sink.properties) as edge:
            _require(edge, sink.properties, "delete", width)
            count, settings = edge.partition_counts()[topic], edge.topic_settings()[topic]
        yield Finding("ok", "TOPIC_FOUND", about, f"{count} partitions")
        if "compact" in str(settings.get("cleanup.policy")):
            text = "compaction would delete all but one record of each key"
            hint = "set cleanup.policy=delete"
            yield Finding("error", "LETTERS_COMPACTED", about, text, hint, EXIT_CODES["user"])
        if count < width:
            text = f"{count} partitions for a source of {width}: records of several partitions mix"
            hint = f"give it {width} partitions (docs/dead-letters.md)"
            yield Finding("warning", "LETTERS_PARTITIONS", about, text, hint)


def _require(
    edge: TableTopics, properties: Mapping[str, str], policy: str, partitions: int
) -> None:
    """Raises KafkaError with the command that creates what is missing."""
    missing = edge.missing_topics()
    if missing:
        servers = resolved(properties["bootstrap.servers"])
        raise KafkaError(
            "TOPIC_MISSING",
            f"no topic {', '.join(missing)} at {servers}",
            hint="\n    ".join(
                f"kafka-topics --bootstrap-server {servers} --create --topic {topic} "
                f"--partitions {partitions} --config cleanup.policy={policy}"
                for topic in missing
            ),
        )


def _partitions_changed(sink: KafkaSink, before: int, count: int) -> Finding:
    counts = f"topic {sink.topic} has {count} partitions, {before} when the checkpoint began"
    if count > before:
        text = f"{counts}: the job keeps writing to the first {before}"
        hint = "start from a new checkpoint to use the others (docs/operations.md)"
        return Finding("warning", "SINK_PARTITIONS", f"sink {sink.table}", text, hint)
    hint = f"give the re-created topic {before} partitions, or start from a new checkpoint"
    code = EXIT_CODES["user"]
    return Finding("error", "SINK_PARTITIONS", f"sink {sink.table}", counts, hint, code)


def check_widths(query: str, tables: Sequence[SampledTable], cores: int) -> Iterator[Finding]:
    """Warn of tables with fewer partitions than tasks; inputs of a join may differ."""
    about = f"query {query}"
    if len(tables) > 1:
        sizes = ", ".join(f"{t.scan.table} {t.partitions}" for t in tables)
        groups = tables[0].scan.groups
        text = f"partitions: {sizes}; they need not be equal, rows go to {groups} key groups by key"
        yield Finding("ok", "PARTITIONS", about, text)
    for table in tables:
        if table.partitions < cores:
            text = (
                f"{table.scan.table} has {table.partitions} partitions and the job {cores} tasks: "
                f"only {table.partitions} of them read and decode it"
            )
            hint = "add partitions if reading is the bottleneck"
            yield Finding("warning", "PARTITIONS_FEW", about, text, hint)


def _settings_unknown(about: str, topic: str) -> Finding:
    text = f"topic {topic}: settings unknown, because the right DescribeConfigs is missing"
    return Finding("ok", "SETTINGS_UNKNOWN", about, text)


def _topic_text(topic: str, partitions: int, starts: dict[int, int], ends: dict[int, int]) -> str:
    offsets = sum(ends[p] - starts[p] for p in ends)
    oldest = "" if not any(starts.values()) else ", the oldest records have been deleted"
    return f"topic {topic}: {partitions} partitions, {offsets} offsets in use{oldest}"


def _retention(
    scan: KafkaScan, about: str, settings: dict[str, dict[str, str | None]]
) -> Iterator[Finding]:
    """Warn if the topic of an upsert table deletes records by age."""
    for topic, values in settings.items():
        if not values:
            yield _settings_unknown(about, topic)
            continue
        policy, kept_ms = str(values.get("cleanup.policy")), int(values.get("retention.ms") or -1)
        if scan.changelog == "upsert" and policy == "delete" and kept_ms >= 0:
            yield Finding(
                "warning",
                "TOPIC_RETENTION",
                about,
                f"topic {topic} deletes records after {kept_ms / HOUR_MS:.0f} h: a new checkpoint "
                "would miss older rows",
                "set cleanup.policy=compact for the topic of an upsert table",
            )
