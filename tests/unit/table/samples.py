"""Samples of topics from recorded bytes or from values of the test, without a broker."""

import json
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any

from spark_jobs.formats.registry import RegistryClient
from spark_jobs.options.formats import RegistryOptions
from spark_jobs.plan.text.explain import explain_text
from spark_jobs.table.ddl import render_table, table_name
from spark_jobs.table.draft import TableDraft
from spark_jobs.table.registered import Schemas
from spark_jobs.table.sampling import SampledRecord, TopicSample
from tests.debezium.recording import records
from tests.debezium.registry import recorded_registry
from tests.harness.http_server import serving

BROKERS = {"bootstrap.servers": "localhost:9092"}


def sampled(
    values: Sequence[Any],
    keys: Sequence[Any] | None = None,
    *,
    topic: str = "orders",
    compacted: bool | None = False,
    times_ms: Sequence[int] | None = None,
) -> TopicSample:
    """One run of one partition; values and keys are bytes, None, or become JSON."""
    found = [
        SampledRecord(
            0,
            offset,
            1_700_000_000_000 + offset if times_ms is None else times_ms[offset],
            None if keys is None else _bytes(keys[offset]),
            _bytes(value),
            0,
        )
        for offset, value in enumerate(values)
    ]
    return TopicSample(topic, 1, len(found), compacted, found)


def recorded(file: Path) -> TopicSample:
    """The sample of a recorded topic, whole."""
    found = records(file)
    values, keys = [r.value for r in found], [r.key for r in found]
    return sampled(values, keys, topic=file.stem)


@contextmanager
def recorded_schemas(format_: str) -> Iterator[tuple[Schemas, dict[str, str]]]:
    """The registry of a recording, and the options that reach it."""
    with recorded_registry() as address, _reached(f"{address}/{format_}") as reached:
        yield reached


@contextmanager
def registered(answers: Mapping[str, object]) -> Iterator[tuple[Schemas, dict[str, str]]]:
    """A registry with these answers by path, for schemas that are no Avro."""

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            found = answers.get(self.path)
            self.send_response(404 if found is None else 200)
            self.end_headers()
            self.wfile.write(json.dumps(found or {"error_code": 40403}).encode())

        def log_message(self, format: str, *args: Any) -> None:
            """Says nothing."""

    with serving(Handler) as address, _reached(address) as reached:
        yield reached


@contextmanager
def _reached(url: str) -> Iterator[tuple[Schemas, dict[str, str]]]:
    client = RegistryClient(RegistryOptions(url=url), 1)
    try:
        yield Schemas(client), {"url": url}
    finally:
        client.close()


def bound(draft: TableDraft) -> str:
    """The statement of a draft, after a query that reads all its columns has been planned."""
    name = table_name(draft.topic)
    text = render_table(draft, name, BROKERS)
    explain_text(f"{text}\nSELECT * FROM `{name}`;", name)
    return text


def _bytes(value: Any) -> bytes | None:
    return value if value is None or isinstance(value, bytes) else json.dumps(value).encode()
