"""The dead-letter topics of a command: of a job, or one by name, and the tables that use them."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.access.librdkafka import admin_config
from spark_jobs.access.topics import resolved
from spark_jobs.errors import ConfigError
from spark_jobs.options.client_properties import client_properties
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.plan.planner import plan
from spark_jobs.settings import read_sql
from spark_jobs.sql.bind.binder import bind


@dataclass(slots=True)
class DeadLetterTopic:
    """A dead-letter topic, with librdkafka's `config` of its cluster.

    `changelogs` has the changelog mode of each table that uses the topic. `elsewhere` has the
    tables whose own topics are on another cluster, with its address: a transaction cannot span
    both, so their records are not replayed.
    """

    name: str
    config: Mapping[str, str]
    changelogs: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)


def topics_of_job(job: Path) -> list[DeadLetterTopic]:
    """The dead-letter topics of all tables that the job reads or writes. Connects to nothing."""
    found: dict[tuple[str, str], DeadLetterTopic] = {}

    def topic_of(name: str, sink: KafkaSink) -> DeadLetterTopic:
        config = admin_config(sink.properties)
        return found.setdefault((config["bootstrap.servers"], name), DeadLetterTopic(name, config))

    for query in plan(bind(read_sql(job), str(job))):
        sink = query.root
        if not isinstance(sink, KafkaSink):
            continue
        if sink.dead_letter_topic is not None:
            topic_of(sink.dead_letter_topic, sink)
        for scan in scans(sink):
            if scan.dead_letter_topic is not None:
                topic = topic_of(scan.dead_letter_topic, sink)
                topic.changelogs[scan.table] = scan.changelog
                servers = resolved(scan.properties["bootstrap.servers"])
                if servers != topic.config["bootstrap.servers"]:
                    topic.elsewhere[scan.table] = servers
    if not found:
        raise ConfigError(
            "DLQ_NO_TOPIC",
            f"no table that {job} reads or writes has a 'rejoin.dead-letter.topic'",
            hint="name the topic: --topic NAME --bootstrap-server HOST:PORT",
        )
    return list(found.values())


def topic_by_name(name: str, servers: str, properties: Path | None) -> DeadLetterTopic:
    """A topic without a job. `properties`: a file of Java client properties, `name=value` lines."""
    given = {} if properties is None else client_properties(read_sql(properties))
    return DeadLetterTopic(name, admin_config({**given, "bootstrap.servers": servers}))


def find_topics(
    job: Path | None, name: str | None, servers: str | None, properties: Path | None
) -> list[DeadLetterTopic]:
    """The topics that the command line names: all of a job, one of them, or one by address."""
    if job is None:
        if name is None or servers is None:
            raise ConfigError(
                "DLQ_NO_TOPIC",
                "the command names neither a JOB.sql nor a dead-letter topic",
                hint="give rejoin dlq ls JOB.sql, or --topic NAME --bootstrap-server HOST:PORT",
            )
        return [topic_by_name(name, servers, properties)]
    options = {"--bootstrap-server": servers, "--properties": properties}
    if given := [option for option, value in options.items() if value is not None]:
        raise ConfigError(
            "DLQ_OPTIONS",
            f"{' and '.join(given)} cannot be given with {job}, whose tables name the brokers",
            hint="leave out the option; or leave out the file and name the topic with --topic",
        )
    found = topics_of_job(job)
    chosen = [topic for topic in found if name is None or topic.name == name]
    if not chosen:
        raise ConfigError(
            "DLQ_NO_TOPIC",
            f"{job} has no dead-letter topic '{name}'",
            hint=f"its dead-letter topics: {', '.join(sorted(topic.name for topic in found))}",
        )
    return chosen
