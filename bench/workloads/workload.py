"""A workload, and its SQL as rejoin and Flink run it: the same text but for SET and the sink."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from string import Template
from typing import Literal

from bench.job_settings import set_statements
from bench.workloads.records import BenchData, Expected, Row

Guarantee = Literal["exactly-once", "at-least-once"]
SinkKind = Literal["append", "upsert", "retract", "signed"]

# What a producer sends goes in large batches, from every engine alike: defaults favour latency.
PRODUCER = {"linger.ms": "20", "batch.size": "262144", "compression.type": "lz4"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Workload:
    """A join with its data. The first `key_columns` of `columns` tell the rows of a result apart.

    What the sink has: each row once (append), a row as the last record of its key (upsert), rows
    that are taken back by Debezium's changes (retract) or by a sign in a header (signed). `times`
    are columns of type TIMESTAMP. `keys` is the number of distinct keys for a number of records.
    """

    name: str
    title: str
    sql: str
    sink: SinkKind
    columns: tuple[str, ...]
    key_columns: int = 1
    times: tuple[str, ...] = ()
    keys: Callable[[int], int]
    data: Callable[[int, int], BenchData]

    def key(self, row: Row) -> object:
        """What tells this row of the result from the others."""
        return row[0] if self.key_columns == 1 else row[: self.key_columns]

    def in_micros(self, expected: Expected) -> Expected:
        """The expected rows with times in microseconds, as in rows that are read back."""
        places = [self.columns.index(name) for name in self.times]
        if not places:
            return expected
        found = {}
        for key, row in expected.items():
            cells = list(row)
            for at in places:
                ms = cells[at]
                cells[at] = ms * 1000 if isinstance(ms, int) else ms
            found[key] = tuple(cells)
        return found


def render(
    workload: Workload,
    settings: Mapping[str, str],
    sink_topic: str,
    bootstrap_servers: str,
    registry_url: str,
    guarantee: Guarantee = "exactly-once",
) -> str:
    """The SQL for one engine, with its settings and its own sink topic."""
    broker = {"properties.bootstrap.servers": bootstrap_servers}
    bounded = {"scan.bounded.mode": "latest-offset"}
    earliest = {**bounded, "scan.startup.mode": "earliest-offset"}
    value, key, changes = (
        {f"{part}.format": kind, f"{part}.{kind}.url": registry_url}
        for part, kind in (
            ("value", "avro-confluent"),
            ("key", "avro-confluent"),
            ("value", "debezium-avro-confluent"),
        )
    )
    sink = {"topic": sink_topic, **_sink_settings(sink_topic, guarantee)}
    append = {"connector": "kafka", **broker, **value}
    upsert = {"connector": "upsert-kafka", **broker, **value, **key}
    retract = {"connector": "kafka", **broker, **changes}
    body = Template(workload.sql).substitute(
        append_source=_options({**append, **earliest}),
        upsert_source=_options({**upsert, **bounded}),
        debezium_source=_options({**retract, **earliest}),
        append_sink=_options({**append, **sink}),
        upsert_sink=_options({**upsert, **sink}),
        retract_sink=_options({**retract, **sink}),
    )
    sets = set_statements(settings)
    return f"{sets}\n{body}" if sets else body


def _sink_settings(topic: str, guarantee: Guarantee) -> dict[str, str]:
    found: dict[str, str] = {"sink.delivery-guarantee": guarantee}
    if guarantee == "exactly-once":
        found["sink.transactional-id-prefix"] = topic
        # Flink's default of an hour exceeds the broker's limit
        found["properties.transaction.timeout.ms"] = "600000"
    return found | {f"properties.{name}": value for name, value in PRODUCER.items()}


def _options(options: Mapping[str, str]) -> str:
    return ", ".join(f"'{name}' = '{value}'" for name, value in options.items())
