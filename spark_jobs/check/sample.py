"""Reads the newest records of a table with the kernel's own reader, and says which it rejects."""

import base64
import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

from confluent_kafka import Message

from spark_jobs.check.finding import Finding
from spark_jobs.kernel.calls import Kernel
from spark_jobs.operators.running import spec
from spark_jobs.plan.nodes.parts import Named
from spark_jobs.plan.nodes.physical import KafkaScan, Project

_REJECTS = "rejects"


@dataclass(frozen=True, slots=True)
class DecodedSample:
    """The rows of a sample, with their kinds and the columns that the query reads."""

    scan: KafkaScan
    kinds: Sequence[str]
    rows: Sequence[Sequence[Any]]
    keys: int
    records: int

    @property
    def new_share(self) -> float:
        """New rows in state per record, at most: a record with a known key adds none."""
        if not self.records:
            return 0.0
        if self.scan.changelog == "append":
            return len(self.rows) / self.records
        if self.scan.changelog == "upsert":
            return self.keys / self.records
        signs = Counter(kind[0] for kind in self.kinds)
        return max(signs["+"] - signs["-"], 0) / self.records


def check_sample(
    kernel: Kernel, scan: KafkaScan, messages: Sequence[Message]
) -> tuple[Finding, DecodedSample]:
    """Decode a sample that is not empty."""
    run = kernel.local(_plan(scan))
    run.feed(scan.table, json.dumps([_record(message) for message in messages]))
    out = json.loads(run.step())
    kept = [row for row in out["rows"] if row[0] in ("+I", "+U")]
    decoded = DecodedSample(
        scan=scan,
        kinds=[row[0] for row in out["rows"]],
        rows=[row[1:] for row in kept],
        keys=len({message.key() for message in messages if message.value() is not None}),
        records=len(messages),
    )
    return _judged(scan, len(messages), out[_REJECTS]), decoded


def _judged(scan: KafkaScan, count: int, rejected: Sequence[dict[str, Any]]) -> Finding:
    about = f"table {scan.table}"
    if not rejected:
        return Finding("ok", "SAMPLE_READ", about, f"{count} newest records can be read")
    reasons = Counter(reject["reason"] for reject in rejected)
    counts = ", ".join(f"{n} x {reason}" for reason, n in reasons.most_common())
    policy = "stops the job" if scan.on_error == "fail" else f"is '{scan.on_error}'"
    return Finding(
        "warning",
        "SAMPLE_REJECTED",
        about,
        f"{len(rejected)} of the {count} newest records cannot be read: {counts}; "
        f"'rejoin.on-error' {policy}",
        "compare the table's columns and format with the records",
    )


def _plan(scan: KafkaScan) -> dict[str, Any]:
    """A plan of the scan alone that returns its rejected records beside its rows."""
    read = replace(
        scan, on_error="dead-letter", dead_letter_topic=_REJECTS, key=(), drop_null_keys=(),
        marks=False,
    )  # fmt: skip
    names = [f"`{named.name}`" for named in scan.row]
    select = tuple(Named(n.name, text) for n, text in zip(scan.row, names, strict=True))
    project = Project(select, scan.schema, scan.time_zone, read, scan.changelog_mode, ())
    return {"kind": "results", "inputs": [{**spec(project), "input": spec(read)}]}


def _record(message: Message) -> dict[str, Any]:
    headers: Any = message.headers() or []
    return {
        "partition": message.partition(),
        "offset": message.offset(),
        "timestamp": message.timestamp()[1],
        "key": _base64(message.key()),
        "value": _base64(message.value()),
        "headers": [{"key": name, "value": _base64(value)} for name, value in headers],
    }


def _base64(part: Any) -> str | None:
    return None if part is None else base64.b64encode(part).decode()
