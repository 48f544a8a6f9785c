"""The job file that an SQL case describes: settings, tables, views, functions, the query."""

import re
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.conformance.case import Case

SINK = "rejoin_result"
_CONNECTORS = {
    "append": {"connector": "kafka", "format": "json"},
    "retract": {"connector": "kafka", "format": "changelog-json"},
    "upsert": {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"},
}
_DAY_MS = 86_400_000


@dataclass(frozen=True, slots=True)
class Place:
    """Where the topics are: `prefix` before their names, `options` more for every table read."""

    servers: str = "localhost:9092"
    prefix: str = ""
    options: Mapping[str, str] = field(default_factory=dict)

    def topic(self, table: str) -> str:
        return f"{self.prefix}{table}"


def job_text(case: Case, place: Place | None = None) -> str:
    place = place or Place()
    config = case.get("config") or {}
    parts = [f"SET '{name}' = '{value}';" for name, value in _settings(config).items()]
    parts += [
        create_table(name, table, place, place.options) for name, table in case["tables"].items()
    ]
    parts += [f"CREATE VIEW `{name}` AS {query};" for name, query in case["views"].items()]
    functions = config.get("temporal_table_functions") or {}
    parts += [_temporal_function(name, of) for name, of in functions.items()]
    sink = {"columns": case["output_columns"], "primary_key": case.get("sink_primary_key")}
    sink["changelog"] = "upsert" if sink["primary_key"] else "retract"
    parts += [
        create_table(SINK, sink, place, {}),
        f"INSERT INTO `{SINK}` {_query(case['query'], config)};",
    ]
    return "\n".join(parts) + "\n"


def _settings(config: dict[str, Any]) -> dict[str, str]:
    found = {"rejoin.key-groups": "8"}
    if config.get("source_events_duplicate"):
        found["table.exec.source.cdc-events-duplicate"] = "true"
    if config.get("mini_batch"):
        found["table.exec.mini-batch.enabled"] = "true"
    ttl = config.get("state_ttl_ms")
    if isinstance(ttl, int):
        found["table.exec.state.ttl"] = f"{ttl} ms"
    return found


def _query(query: str, config: dict[str, Any]) -> str:
    """State TTL by table or alias is a hint behind the first SELECT."""
    ttl = config.get("state_ttl_ms")
    if not isinstance(ttl, dict):
        return query
    times = ", ".join(f"'{name}' = '{ms}ms'" for name, ms in ttl.items())
    return re.sub(r"^(\s*SELECT)\b", rf"\1 /*+ STATE_TTL({times}) */", query, flags=re.IGNORECASE)


def _temporal_function(name: str, of: dict[str, Any]) -> str:
    key = ", ".join(f"`{column}`" for column in of["key"])
    return (
        f"CREATE TEMPORAL TABLE FUNCTION `{name}` FOR `{of['table']}` "
        f"TIME ATTRIBUTE `{of['time']}` PRIMARY KEY ({key});"
    )


def create_table(name: str, table: dict[str, Any], place: Place, more: Mapping[str, str]) -> str:
    lines = [f"`{column}` {kind}" for column, kind in table["columns"]]
    lines += [f"`{c}` AS {text}" for c, text in (table.get("computed") or {}).items()]
    if mark := table.get("watermark"):
        column = f"`{mark['column']}`"
        lines.append(f"WATERMARK FOR {column} AS {column}{_delay(mark['delay_ms'])}")
    if key := _primary_key(table):
        lines.append(f"PRIMARY KEY ({', '.join(f'`{k}`' for k in key)}) NOT ENFORCED")
    options = {
        **_CONNECTORS[table["changelog"]],
        "topic": place.topic(name),
        "properties.bootstrap.servers": place.servers,
        **more,
    }
    if options["connector"] == "upsert-kafka":
        options.pop("scan.startup.mode", None)  # it always begins at the beginning
    given = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
    return f"CREATE TABLE `{name}` (\n  " + ",\n  ".join(lines) + f"\n) WITH ({given});"


def _delay(ms: int) -> str:
    if ms == 0:
        return ""
    if ms % _DAY_MS == 0:
        return f" - INTERVAL '{ms // _DAY_MS}' DAY"
    return f" - INTERVAL '{ms / 1000:g}' SECOND"


def _primary_key(table: dict[str, Any]) -> list[str]:
    """The declared key, or one known from a GROUP BY; none where the rows themselves break it.

    A key with a NULL is none in SQL, and two rows that share one tell that it is none.
    """
    key = list(table.get("primary_key") or table.get("unique_key") or [])
    names = [column for column, _ in table["columns"]]
    positions = [names.index(name) + 1 for name in key]
    present: Counter[Any] = Counter()
    for row in table.get("rows", ()):
        value = tuple(repr(row[p]) for p in positions)
        if any(row[p] is None for p in positions):
            return []
        present[value] += 1 if row[0] in ("+I", "+U") else -1
        if present[value] > 1 and table["changelog"] == "retract":
            return []
    return key
