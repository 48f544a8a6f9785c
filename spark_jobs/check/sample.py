"""Real records through the kernel's own reader: what of them would be rejected, and why."""

import base64
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from confluent_kafka import Message

from spark_jobs.check.finding import Finding
from spark_jobs.kernel.local_jvm import local_kernel
from spark_jobs.operators.running import spec
from spark_jobs.plan.node_parts import Named
from spark_jobs.plan.physical import KafkaScan, Project

_REJECTS = "rejects"


def check_samples(samples: Mapping[str, tuple[KafkaScan, Sequence[Message]]]) -> Iterator[Finding]:
    """By table; starts a JVM."""
    with local_kernel() as kernel:
        for table, (scan, messages) in samples.items():
            if messages:
                yield _check(kernel, table, scan, messages)


def _check(kernel: Any, table: str, scan: KafkaScan, messages: Sequence[Message]) -> Finding:
    run = kernel.local(json.dumps(_plan(scan)))
    run.feed(scan.table, json.dumps([_record(message) for message in messages]))
    rejected = json.loads(run.step())[_REJECTS]
    about = f"table {table}"
    if not rejected:
        return Finding("ok", about, f"{len(messages)} newest records can be read")
    reasons = Counter(reject["reason"] for reject in rejected)
    told = ", ".join(f"{n} x {reason}" for reason, n in reasons.most_common())
    policy = "stops the job" if scan.on_error == "fail" else f"is '{scan.on_error}'"
    return Finding(
        "warning",
        about,
        f"{len(rejected)} of the {len(messages)} newest records cannot be read: {told}; "
        f"'rejoin.on-error' {policy}",
        "compare the table's columns and format with the records",
    )


def _plan(scan: KafkaScan) -> dict[str, Any]:
    """The scan alone, all of whose bad records are handed back."""
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
