"""Which dead-letter topics there are, on which cluster, and what is known of the tables behind."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path

from spark_jobs.access.librdkafka import admin_config
from spark_jobs.access.topics import resolved
from spark_jobs.errors import ConfigError
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink, Physical, inputs_of
from spark_jobs.plan.planner import plan
from spark_jobs.settings import read_sql
from spark_jobs.sql.bind.binder import bind


@dataclass(slots=True)
class LetterTopic:
    """A dead-letter topic. `config` is librdkafka's for its cluster.

    `changelogs`: by table, how its rows change. `elsewhere`: tables whose own topics are on another
    cluster, by its address: no transaction spans the two.
    """

    name: str
    config: Mapping[str, str]
    changelogs: dict[str, str] = field(default_factory=dict)
    elsewhere: dict[str, str] = field(default_factory=dict)


def topics_of_job(job: Path) -> list[LetterTopic]:
    """Of each table that is read or written with a dead-letter topic. Connects to nothing."""
    found: dict[tuple[str, str], LetterTopic] = {}

    def letters(name: str, sink: KafkaSink) -> LetterTopic:
        config = admin_config(sink.properties)
        return found.setdefault((config["bootstrap.servers"], name), LetterTopic(name, config))

    for query in plan(bind(read_sql(job), str(job))):
        sink = query.root
        if not isinstance(sink, KafkaSink):
            continue
        if sink.dead_letter_topic is not None:
            letters(sink.dead_letter_topic, sink)
        for scan in _scans(sink):
            if scan.dead_letter_topic is not None:
                topic = letters(scan.dead_letter_topic, sink)
                topic.changelogs[scan.table] = scan.changelog
                servers = resolved(scan.properties["bootstrap.servers"])
                if servers != topic.config["bootstrap.servers"]:
                    topic.elsewhere[scan.table] = servers
    if not found:
        raise ConfigError(
            "DLQ_NO_TOPIC",
            f"no table of {job} that is read or written has a 'rejoin.dead-letter.topic'",
            hint="name the topic: --topic NAME --bootstrap-server HOST:PORT",
        )
    return list(found.values())


def topic_by_name(name: str, servers: str, properties: Path | None) -> LetterTopic:
    """Without a job: `properties` are the Java client's, a `name=value` in each line."""
    given: dict[str, str] = {}
    for line in read_sql(properties).splitlines() if properties is not None else ():
        name_of, separator, value = line.strip().partition("=")
        if separator and not name_of.startswith("#"):
            given[name_of.strip()] = value.strip()
    return LetterTopic(name, admin_config({**given, "bootstrap.servers": servers}))


def find_topics(
    job: Path | None, name: str | None, servers: str | None, properties: Path | None
) -> list[LetterTopic]:
    """What the command line says: a job's topics, one of them, or one by name and address."""
    if job is None:
        if name is None or servers is None:
            raise ConfigError(
                "DLQ_NO_TOPIC",
                "neither a JOB.sql nor a dead-letter topic",
                hint="rejoin dlq ls JOB.sql, or --topic NAME --bootstrap-server HOST:PORT",
            )
        return [topic_by_name(name, servers, properties)]
    found = topics_of_job(job)
    chosen = [topic for topic in found if name is None or topic.name == name]
    if not chosen:
        raise ConfigError(
            "DLQ_NO_TOPIC",
            f"{job} has no dead-letter topic '{name}'",
            hint=f"it has {', '.join(sorted(topic.name for topic in found))}",
        )
    return chosen


def _scans(node: Physical) -> Iterator[KafkaScan]:
    if isinstance(node, KafkaScan):
        yield node
    for below in inputs_of(node):
        yield from _scans(below)
