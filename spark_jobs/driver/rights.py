"""The rights that a job needs at the broker, computed from its plans (see docs/security.md)."""

import json
from collections.abc import Iterator, Mapping

from spark_jobs.access.acls import Need, check_topics, check_writer, topic_missing
from spark_jobs.access.topics import resolved
from spark_jobs.driver.topics.topic_patterns import topic_names
from spark_jobs.errors import AccessError, RejoinError
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink
from spark_jobs.plan.nodes.walk import scans, stateful_nodes


def check_access(sinks: Mapping[str, KafkaSink]) -> None:
    """Check all topics of the job, before Spark starts.

    Raises KafkaError with all topics that do not exist, AccessError with the missing rights.
    """
    missing: dict[str, dict[str, str]] = {}
    for servers, need in _missing_topics(sinks):
        missing.setdefault(servers, {}).setdefault(need.name, need.why)
    if missing:
        places = (
            ", ".join(f"{name} ({why})" for name, why in topics.items()) + f" at {servers}"
            for servers, topics in missing.items()
        )
        raise topic_missing("no topic " + ", nor ".join(places))


def missing_acl(error: RejoinError, sinks: Mapping[str, KafkaSink], job: str) -> AccessError | None:
    """The error with the names of the missing ACLs; None if that was not the cause, or unknown."""
    if error.code != "KAFKA_ACL_MISSING":
        return None
    try:
        _missing_topics(sinks)
        for sink in sinks.values():
            if sink.guarantee == "exactly-once":
                check_writer(sink.properties, *writer_needs(sink, job))
    except AccessError as named:
        return named
    return None


def writer_needs(sink: KafkaSink, job: str) -> tuple[Need, Need, Need]:
    """The rights of one query's writers: transactional ids, ledger groups, the ledgers' topic."""
    prefix = f"{sink.transactional_id_prefix or job}-{sink.name}-"
    return (
        Need("Write", "transactional-id", prefix, "a transaction per epoch", prefixed=True),
        Need("Read", "group", prefix, "the ledger of epochs", prefixed=True),
        Need("Read", "topic", sink.topic, f"the ledger of epochs of sink {sink.table}"),
    )


def topic_needs(sink: KafkaSink) -> Iterator[tuple[Mapping[str, str], Need]]:
    """The rights on topics of one query, each with the properties of its connection."""
    for scan in scans(sink):
        for name in topic_names(scan):
            yield scan.properties, Need("Read", "topic", name, f"source {scan.table}")
        yield from _dead_letters(sink, scan)
    yield sink.properties, Need("Write", "topic", sink.topic, f"sink {sink.table}")
    yield from _dead_letters(sink, sink)
    if sink.guarantee == "exactly-once":
        yield sink.properties, writer_needs(sink, "")[2]
    for node in stateful_nodes(sink):
        if (late := node.output.late_topic) is not None:
            yield sink.properties, Need("Write", "topic", late, "'rejoin.late.topic'")


def _dead_letters(
    sink: KafkaSink, of: KafkaScan | KafkaSink
) -> Iterator[tuple[Mapping[str, str], Need]]:
    """The connection of the sink also writes the dead-letter records of its sources."""
    if of.on_error == "dead-letter" and of.dead_letter_topic is not None:
        why = f"dead-letter records of {of.table}"
        yield sink.properties, Need("Write", "topic", of.dead_letter_topic, why)


def _missing_topics(sinks: Mapping[str, KafkaSink]) -> list[tuple[str, Need]]:
    """Topics that do not exist, by broker; raises AccessError for rights on the others."""
    needs: dict[str, list[Need]] = {}
    for sink in sinks.values():
        for properties, need in topic_needs(sink):
            needs.setdefault(json.dumps(dict(properties), sort_keys=True), []).append(need)
    found: list[tuple[str, Need]] = []
    for text, at_broker in sorted(needs.items()):
        properties = json.loads(text)
        servers = resolved(properties["bootstrap.servers"])
        missing = check_topics(properties, list(dict.fromkeys(at_broker)))
        found += [(servers, need) for need in missing]
    return found
