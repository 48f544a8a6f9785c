"""Plans of one table for tests of formats: records in, rows out; rows in, records out."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.harness.messages import planned

FIXTURES = Path(__file__).parents[1] / "fixtures" / "debezium"


@dataclass(frozen=True)
class Record:
    """A Kafka record."""

    value: bytes | None
    key: bytes | None = None
    headers: tuple[tuple[str, bytes], ...] = ()


@dataclass(frozen=True)
class Outcome:
    """What one micro-batch gave; `timestamps` and `headers` as metadata columns wrote them."""

    rows: list[list[Any]]
    records: list[tuple[bytes | None, bytes | None]]
    rejects: list[str]
    dead_letters: list[tuple[str, bytes | None, bytes | None]]
    dead_letter_headers: list[list[tuple[str, bytes]]]
    timestamps: list[int | None] = field(default_factory=list)
    headers: list[list[tuple[str, bytes]] | None] = field(default_factory=list)


def struct(columns: Mapping[str, Any], not_null: Sequence[str] = ()) -> dict[str, Any]:
    """A Spark schema; a type written `TIME` or `TIMESTAMP(n)` is Flink's."""
    return {"type": "struct", "fields": [_field(n, t, n in not_null) for n, t in columns.items()]}


def _field(name: str, type_: Any, not_null: bool) -> dict[str, Any]:
    spark, sql_type = _types(type_)
    metadata = {"sqlType": sql_type} if sql_type else {}
    return {"name": name, "type": spark, "nullable": not not_null, "metadata": metadata}


def _types(type_: Any) -> tuple[Any, str | None]:
    if isinstance(type_, str) and type_.startswith("TIMESTAMP"):
        return "timestamp_ntz", type_
    if type_ == "TIME":
        return "integer", type_
    return type_, None


@dataclass
class TableScan:
    """How one table is read; `columns` are names to types, of values unless `key` or `metadata`."""

    columns: Mapping[str, Any]
    format: str = "json"
    options: Mapping[str, str] = field(default_factory=dict)
    changelog: str = "append"
    key: Sequence[str] = ()
    metadata: Mapping[str, str] = field(default_factory=dict)
    not_null: Sequence[str] = ()
    primary_key: Sequence[str] = ()
    on_error: str = "dead-letter"
    filter: str | None = None
    key_format: str | None = None
    key_options: Mapping[str, str] = field(default_factory=dict)
    time_zone: str = "UTC"
    debezium: Mapping[str, Any] | None = None

    def node(self) -> dict[str, Any]:
        names = list(self.columns)
        return {
            "kind": "kafka-scan", "table": "t", "side": 0, "groups": 4,
            "topics": [{"name": "topic", "index": 0}],
            "changelog": self.changelog,
            "keyFormat": self.key_format
            and {"name": self.key_format, "options": dict(self.key_options)},
            "valueFormat": {"name": self.format, "options": dict(self.options)},
            "columns": [self._column(name) for name in names],
            "primaryKey": list(self.primary_key),
            "filter": self.filter, "rowtime": None, "watermark": None,
            "key": [f"`{names[0]}`"], "dropNullKeys": [],
            "row": [{"name": n, "expr": f"`{n}`"} for n in names],
            "schema": struct(self.columns), "marks": False,
            "onError": self.on_error, "deadLetterTopic": "dead",
            "timeZone": self.time_zone,
            "debezium": self.debezium,
        }  # fmt: skip

    def _column(self, name: str) -> dict[str, Any]:
        spark, sql_type = _types(self.columns[name])
        column = {"name": name, "type": spark, "nullable": name not in self.not_null}
        if name in self.metadata:
            place = {"from": "metadata", "field": self.metadata[name]}
        else:
            place = {"from": "key" if name in self.key else "value", "field": name}
        return column | place | ({"sqlType": sql_type} if sql_type else {})

    def plan(self) -> dict[str, Any]:
        """Nothing but the table, its rows as they are."""
        names = list(self.columns)
        select = [{"name": n, "expr": f"`{n}`"} for n in names]
        project = {
            "kind": "project",
            "select": select,
            "schema": struct(self.columns),
            "input": self.node(),
            "timeZone": "UTC",
        }
        return {"kind": "results", "inputs": [project]}

    def read(self, jvm: Any, *records: Record) -> Outcome:
        """The rows of some records, at offsets from 0."""
        return run(jvm, self.plan(), records)


def run(jvm: Any, plan: Mapping[str, Any], records: Sequence[Record]) -> Outcome:
    return feed(jvm.local(planned(plan)), records)


def feed(local: Any, records: Sequence[Record], first: int = 0, table: str = "t") -> Outcome:
    """One micro-batch of a plan that runs, of records at offsets from `first`."""
    local.feed(table, json.dumps([_record(first + i, r) for i, r in enumerate(records)]))
    told = json.loads(local.step())
    return Outcome(
        told["rows"],
        [(_bytes(r["key"]), _bytes(r["value"])) for r in told["records"]],
        [r["reason"] for r in told["rejects"]],
        [(r["topic"], _bytes(r["key"]), _bytes(r["value"])) for r in told["rejects"]],
        [_headers(r["headers"]) for r in told["rejects"]],
        [r.get("timestamp") for r in told["records"]],
        [_headers(r["headers"]) if "headers" in r else None for r in told["records"]],
    )


def _headers(found: list[tuple[str, str]]) -> list[tuple[str, bytes]]:
    return [(name, _bytes(value) or b"") for name, value in found]


def write(
    jvm: Any,
    sink: Mapping[str, Any],
    columns: Mapping[str, Any],
    *rows: tuple[str, Any],
    zone: str = "UTC",
) -> Outcome:
    """The records of rows that come as changelog-json: `["+I", {column: value}]`."""
    changes = [json.dumps({"op": op, "data": data}).encode() for op, data in rows]
    scan = TableScan(columns, "changelog-json", changelog="retract", time_zone=zone)
    return through(jvm, sink, scan, *[Record(change) for change in changes])


def through(jvm: Any, sink: Mapping[str, Any], scan: TableScan, *records: Record) -> Outcome:
    """The records that a sink makes of a table's."""
    schema = struct(scan.columns, sink.get("keyFields", ()))
    plan = {
        "kind": "kafka-sink", "name": "q", "table": "s", "topic": "out", "mode": "append",
        "keyFormat": None, "keyFields": [], "keyPrefix": "", "valueIncludesKey": True,
        "schema": schema, "guarantee": "none", "transactionalIdPrefix": None, "properties": {},
        "exchange": False,
        **sink,
        "inputs": [{
            "kind": "project",
            "select": [{"name": n, "expr": f"`{n}`"} for n in scan.columns],
            "schema": schema,
            "timeZone": scan.time_zone,
            "input": scan.node(),
        }],
    }  # fmt: skip
    return run(jvm, plan, records)


def recorded(path: str) -> list[Record]:
    """Records of a real Debezium run, in offset order."""
    lines = [json.loads(line) for line in (FIXTURES / path).read_text().splitlines()]
    return [
        Record(
            _bytes(line["value_b64"]),
            _bytes(line["key_b64"]),
            tuple((name, base64.b64decode(value)) for name, value in line["headers"]),
        )
        for line in lines
    ]


def _record(offset: int, record: Record) -> dict[str, Any]:
    return {
        "partition": 0,
        "offset": offset,
        "timestamp": 1_600_000_000_000 + offset,
        "key": _text(record.key),
        "value": _text(record.value),
        "headers": [{"key": k, "value": _text(v)} for k, v in record.headers],
    }


def _text(data: bytes | None) -> str | None:
    return None if data is None else base64.b64encode(data).decode()


def _bytes(text: str | None) -> bytes | None:
    return None if text is None else base64.b64decode(text)
