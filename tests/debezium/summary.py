"""Every record of the recorded run through the kernel, beside what it must become.

What is expected comes from the records themselves, decoded by Python after the rules of
fixtures/debezium/README.md (recording.py, columns.py); row for row and value for value.
"""

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tests.debezium.columns import (
    KEYS,
    Infinite,
    OutOfRange,
    declared,
    is_placeholder,
    types_of,
    value,
)
from tests.debezium.recording import Recorded, files, records, table_of, tells_types
from tests.kernel.tables import Record, TableScan

_OTHERS = {
    "heartbeat": "debezium-heartbeat",
    "transaction": "debezium-transaction",
    "message": "debezium-message",
}
# nothing but the names of its fields tells what such a record is, so any table will do
_ANY = "orders"
Change = list[Any] | str
"""A row `[kind, values...]`, or the reason of a reject."""


@dataclass
class Count:
    """What became of one file."""

    file: Path
    records: int = 0
    tombstones: int = 0
    rows: Counter[str] = field(default_factory=Counter)
    rejects: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)

    def line(self) -> str:
        kinds = " ".join(f"{k} {self.rows[k]}" for k in ("+I", "-U", "+U", "-D") if self.rows[k])
        rejects = " ".join(f"{reason} {n}" for reason, n in sorted(self.rejects.items()))
        name = f"{self.file.parent.name}/{self.file.stem}"
        return f"{name:<52} {self.records:>3} {self.tombstones:>3}  {kinds:<24} {rejects}".rstrip()


HEADING = f"{'file':<52} {'rec':>3} {'tmb':>3}  {'rows by kind':<24} rejects by reason"


def summary(jvm: Any, registry: str, formats: Sequence[str]) -> Iterator[Count]:
    """One count per file, those of a format in order of their names."""
    for format_ in formats:
        for file in files(format_):
            yield count(jvm, registry, file)


def count(jvm: Any, registry: str, file: Path) -> Count:
    """Reads a file and holds what came of it against what each record must become."""
    scan = scan_of(file, registry)
    found = Count(file)
    given = records(file)
    expected = [changes(file, scan, record) for record in given]
    outcome = scan.read(jvm, *(Record(r.value, r.key, r.headers) for r in given))
    rejects = iter(outcome.rejects)
    rows = iter(outcome.rows)
    for offset, wanted in enumerate(expected):
        found.records += 1
        found.tombstones += given[offset].value is None
        got: list[Change] = [
            next(rejects, "none") if isinstance(w, str) else next(rows, "none") for w in wanted
        ]
        for change in got:
            if isinstance(change, str):
                found.rejects[change] += 1
            else:
                found.rows[change[0]] += 1
        if got != wanted:
            found.unexplained.append(f"{file.name}@{offset}: {got} instead of {wanted}")
    for left in (*rejects, *rows):
        found.unexplained.append(f"{file.name}: {left} comes from no record")
    return found


def scan_of(file: Path, registry: str) -> TableScan:
    """The table that reads all of a file's columns."""
    format_ = file.parent.name
    name = table_of(file)
    table = _ANY if name in _OTHERS else name
    has_schema = tells_types(format_)
    columns = {n: declared(t, has_schema) for n, t in types_of(table).items()}
    key = KEYS[table]
    debezium: dict[str, Any] = {"unwrapped": format_ == "json_unwrapped" and bool(key)}
    if not has_schema:
        debezium |= {"timestampUnit": "micros", "decimals": "base64"}
    if format_ == "json_unwrapped":
        changelog = "upsert" if key else "append"
        return TableScan(columns, "json", _ISO, changelog, primary_key=key, debezium=debezium)
    is_full = table.endswith("_full")
    if format_.startswith("avro"):
        value_format, options = "debezium-avro-confluent", _registry_options(format_, registry)
    else:
        value_format, options = "debezium-json", _ISO
        if has_schema:
            options = _ISO | {"schema-include": "true"}
    return TableScan(
        columns,
        value_format,
        options,
        "retract" if is_full else "upsert",
        primary_key=[] if is_full else key,
        debezium=debezium,
    )


def _registry_options(format_: str, registry: str) -> dict[str, str]:
    kinds = {
        "avro": "prefix",
        "avro_apicurio_8byte": "apicurio-8-byte",
        "avro_apicurio_headers": "apicurio-headers",
    }
    return {"url": f"{registry}/{format_}", "rejoin.schema-id": kinds[format_]}


_ISO = {"timestamp-format.standard": "ISO-8601"}


def changes(file: Path, scan: TableScan, record: Recorded) -> list[Change]:
    """What a record must become."""
    event = record.event
    if event is None:
        return []
    name = table_of(file)
    if name in _OTHERS:
        return [_OTHERS[name]]
    has_schema = tells_types(file.parent.name)
    try:
        if file.parent.name == "json_unwrapped":
            return [_flat(scan, name, event)]
        return _of_event(scan, name, event, has_schema)
    except Infinite:
        return ["debezium-infinity"]
    except OutOfRange:
        return ["value-out-of-range"]


def _flat(scan: TableScan, table: str, event: Any) -> list[Any] | str:
    if not scan.primary_key:
        return ["+I", *_row(table, event, False)]
    if event["__deleted"] == "true":
        return ["-D", *_key(scan, table, event, False)]
    if _is_partial(table, event):
        return "debezium-unavailable-value"
    return ["+U", *_row(table, event, False)]


def _of_event(scan: TableScan, table: str, event: Any, has_schema: bool) -> list[Change]:
    before, after, op = event["before"], event["after"], event["op"]
    upsert = scan.changelog == "upsert"
    if op == "t":
        return ["debezium-truncate"]
    if op in "cru" and _is_partial(table, after):
        return ["debezium-unavailable-value"]
    if upsert:
        if op == "d":
            return [["-D", *_key(scan, table, before, has_schema)]]
        return [["+U", *_row(table, after, has_schema)]]
    if op == "d":
        return [["-D", *_row(table, before, has_schema)]]
    if op == "u":
        old = ["-U", *_row(table, before, has_schema)]
        return [old, ["+U", *_row(table, after, has_schema)]]
    return [["+I", *_row(table, after, has_schema)]]


def _is_partial(table: str, row: Any) -> bool:
    return any(is_placeholder(t, row.get(n)) for n, t in types_of(table).items())


def _row(table: str, row: Any, has_schema: bool) -> list[Any]:
    return [value(t, row.get(n), has_schema) for n, t in types_of(table).items()]


def _key(scan: TableScan, table: str, row: Any, has_schema: bool) -> list[Any]:
    return [
        value(t, row[n], has_schema) if n in scan.primary_key else None
        for n, t in types_of(table).items()
    ]
