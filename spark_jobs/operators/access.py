"""The least rights of a job at the broker: docs/security.md's table, computed from its plans."""

import json
from collections.abc import Iterator, Mapping
from itertools import groupby

from spark_jobs.errors import AccessError, RejoinError
from spark_jobs.operators.running import scans
from spark_jobs.plan.fingerprint import stateful_nodes
from spark_jobs.plan.physical import KafkaScan, KafkaSink, TemporalJoin
from spark_jobs.streaming.access import Need, check_topics, check_writer


def check_access(sinks: Mapping[str, KafkaSink]) -> None:
    """Raise AccessError for rights on topics that the job lacks; fast, and before Spark starts."""
    needs = sorted(
        ((json.dumps(dict(p), sort_keys=True), need) for p, need in _all_topics(sinks)),
        key=lambda told: told[0],
    )
    for properties, told in groupby(needs, key=lambda told: told[0]):
        check_topics(json.loads(properties), list(dict.fromkeys(need for _, need in told)))


def missing_acl(error: RejoinError, sinks: Mapping[str, KafkaSink], job: str) -> AccessError | None:
    """What a running job was refused, by name; None if it was not, or cannot be told."""
    if error.code != "KAFKA_ACL_MISSING":
        return None
    try:
        check_access(sinks)
        for sink in sinks.values():
            if sink.guarantee == "exactly-once":
                check_writer(sink.properties, *writer_needs(sink, job))
    except AccessError as named:
        return named
    return None


def writer_needs(sink: KafkaSink, job: str) -> tuple[Need, Need, Need]:
    """Of the transactional writers of one query: their ids, ledgers, and the ledgers' place."""
    prefix = f"{sink.transactional_id_prefix or job}-{sink.name}-"
    return (
        Need("Write", "transactional-id", prefix, "a transaction per epoch", prefixed=True),
        Need("Read", "group", prefix, "the ledger of epochs", prefixed=True),
        Need("Read", "topic", sink.topic, f"the ledger of epochs stands at sink {sink.table}"),
    )


def topic_needs(sink: KafkaSink) -> Iterator[tuple[Mapping[str, str], Need]]:
    """Of one query, each with the properties of the connection on which it is needed."""
    for scan in scans(sink):
        for topic in scan.node.topics:
            table = scan.node.table
            yield scan.node.properties, Need("Read", "topic", topic.name, f"source {table}")
        if scan.node.on_error == "dead-letter" and scan.node.dead_letter_topic:
            yield sink.properties, _letters(scan.node, scan.node.dead_letter_topic)
    yield sink.properties, Need("Write", "topic", sink.topic, f"sink {sink.table}")
    if sink.guarantee == "exactly-once":
        yield sink.properties, writer_needs(sink, "")[2]
    for node in stateful_nodes(sink):
        if isinstance(node, TemporalJoin) and node.output.late_topic is not None:
            late = node.output.late_topic
            yield sink.properties, Need("Write", "topic", late, "'rejoin.late.topic'")


def _letters(scan: KafkaScan, topic: str) -> Need:
    return Need("Write", "topic", topic, f"dead letters of {scan.table}")


def _all_topics(sinks: Mapping[str, KafkaSink]) -> Iterator[tuple[Mapping[str, str], Need]]:
    for sink in sinks.values():
        yield from topic_needs(sink)
