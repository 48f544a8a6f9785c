"""The joins whose latency is measured, as job files that rejoin and Flink run alike."""

from collections.abc import Mapping
from dataclasses import dataclass

from bench.job_settings import set_statements

RESULT = "joined"

_UPSERT = "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'"
_APPEND = "'connector' = 'kafka', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset'"
_TABLE = "CREATE TABLE {name} ({columns}) WITH ('topic' = '{name}', {options});\n"
_AT = "`at` TIMESTAMP_LTZ(3), WATERMARK FOR `at` AS `at` - INTERVAL '0.001' SECOND"
_SINK = "id BIGINT, sent BIGINT, amount INT, PRIMARY KEY (id) NOT ENFORCED"


@dataclass(frozen=True, slots=True)
class Workload:
    """A join and its two tables: columns and connector of each; the left one is stamped.

    `moves`: records of the right table go on coming, to move the watermark.
    """

    left: tuple[str, str]
    right: tuple[str, str]
    query: str
    moves: bool


WORKLOADS = {
    "regular": Workload(
        ("id BIGINT, sent BIGINT, PRIMARY KEY (id) NOT ENFORCED", _UPSERT),
        ("id BIGINT, amount INT, PRIMARY KEY (id) NOT ENFORCED", _UPSERT),
        "SELECT l.id, l.sent, r.amount FROM l LEFT JOIN r ON l.id = r.id",
        moves=False,
    ),
    "temporal": Workload(
        (f"id BIGINT, sent BIGINT, {_AT}", _APPEND),
        (f"id BIGINT, amount INT, {_AT}, PRIMARY KEY (id) NOT ENFORCED", _UPSERT),
        "SELECT l.id, l.sent, r.amount FROM l LEFT JOIN r FOR SYSTEM_TIME AS OF l.`at`"
        " ON l.id = r.id",
        moves=True,
    ),
    "interval": Workload(
        (f"id BIGINT, sent BIGINT, {_AT}", _APPEND),
        (f"id BIGINT, amount INT, {_AT}", _APPEND),
        "SELECT l.id, l.sent, r.amount FROM l JOIN r ON l.id = r.id"
        " AND r.`at` BETWEEN l.`at` - INTERVAL '1' HOUR AND l.`at`",
        moves=True,
    ),
}


def job(
    workload: Workload, servers: str, settings: Mapping[str, str], sink: Mapping[str, str]
) -> str:
    """The job file; `sink` are further options of the sink's table."""
    kafka = f"'properties.bootstrap.servers' = '{servers}'"
    written = ", ".join([_UPSERT, *(f"'{name}' = '{value}'" for name, value in sink.items())])
    tables = [("l", *workload.left), ("r", *workload.right), (RESULT, _SINK, written)]
    return (
        set_statements(settings)
        + "".join(
            _TABLE.format(name=name, columns=columns, options=f"{options}, {kafka}")
            for name, columns, options in tables
        )
        + f"INSERT INTO {RESULT} {workload.query};\n"
    )
