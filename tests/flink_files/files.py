"""The job files of this folder: their text, input records, and what a run puts in their place.

`NN_name.sql` is the job, `NN_name.TOPIC.jsonl` the records of a topic that it reads, a line each:
`{"key", "value", "timestamp"}`. A text is written as it is, everything else as JSON. With
`NN_name.TOPIC.avsc` beside it, values are Avro of that schema.
"""

import io
import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import fastavro
import httpx

from spark_jobs.scenario.records import DEFAULT_TIMESTAMP_MS, Record

HERE = Path(__file__).parent
SERVERS = "kafka:9092"
REGISTRY = "http://schema-registry:8081"
_TOPIC = re.compile(r"('topic'\s*=\s*)'([^']*)'")
_TOKEN = re.compile(r"--[^\n]*|/\*.*?\*/|'(?:[^']|'')*'|`[^`]*`|;|\w+|\s+|.", re.DOTALL)
_SET = re.compile(r"\s*SET\s+'([^']+)'\s*=\s*'([^']*)'\s*", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Place:
    """Where a file runs: the broker, the registry, and what topics are called there."""

    servers: str
    registry: str
    inputs: str
    sinks: str


@dataclass(frozen=True, slots=True)
class FlinkFile:
    """A job file with the records of the topics that it reads."""

    path: Path

    @property
    def name(self) -> str:
        return self.path.stem

    @property
    def text(self) -> str:
        return self.path.read_text(encoding="utf-8")

    @property
    def inputs(self) -> dict[str, Path]:
        """The files of records, by topic."""
        found = sorted(HERE.glob(f"{self.name}.*.jsonl"))
        return {
            path.name.removeprefix(f"{self.name}.").removesuffix(".jsonl"): path for path in found
        }

    @property
    def is_avro(self) -> bool:
        return REGISTRY in self.text

    def placed(self, place: Place) -> str:
        """The text for both engines: it ends at the end of the topics, wherever they are."""
        bounded = f"{place.servers}', 'scan.bounded.mode' = 'latest-offset"
        text = self.text.replace(SERVERS, bounded).replace(REGISTRY, place.registry)
        return _TOPIC.sub(lambda f: f"{f[1]}'{self.topic(f[2], place)}'", text)

    def topic(self, name: str, place: Place) -> str:
        return f"{place.inputs if name in self.inputs else place.sinks}{self.name}-{name}"

    @property
    def topics(self) -> set[str]:
        return {found[2] for found in _TOPIC.finditer(self.text)}

    @property
    def sinks(self) -> list[str]:
        """The topics that the job writes."""
        return sorted(self.topics - self.inputs.keys())

    def records(self, topic: str, registry: str = "") -> Iterator[Record]:
        schema = HERE / f"{self.name}.{topic}.avsc"
        encode = _avro(schema, registry, f"{self.name}-{topic}") if schema.exists() else _bytes
        for line in self.inputs[topic].read_text(encoding="utf-8").splitlines():
            given = json.loads(line)
            at = given.get("timestamp", DEFAULT_TIMESTAMP_MS)
            value = given["value"]
            yield Record(
                _bytes(given.get("key")), None if value is None else encode(value), timestamp_ms=at
            )


def flink_files() -> list[FlinkFile]:
    return [FlinkFile(path) for path in sorted(HERE.glob("[0-9][0-9]_*.sql"))]


def statements(text: str) -> list[str]:
    """The statements of a file as Flink's SQL client takes them apart, a statement set as one."""
    found: list[str] = []
    words: list[str] = []
    start, at = 0, 0
    for part in _TOKEN.findall(text):
        at += len(part)
        if part == ";" and (words[:1] != ["EXECUTE"] or words[-1] == "END"):
            found.append(text[start : at - 1])
            start, words = at, []
        elif not (part.isspace() or part.startswith(("--", "/*"))):
            words.append(part.upper())
    return found


def setting(statement: str) -> tuple[str, str] | None:
    """Key and value of a SET statement."""
    found = _SET.fullmatch(re.sub(r"--[^\n]*", "", statement))
    return (found[1], found[2]) if found else None


def _bytes(value: Any) -> bytes | None:
    if value is None:
        return None
    return (value if isinstance(value, str) else json.dumps(value)).encode()


def _avro(path: Path, registry: str, subject: str) -> Any:
    text = path.read_text(encoding="utf-8")
    answer = httpx.post(f"{registry}/subjects/{subject}/versions", json={"schema": text})
    head = b"\0" + int(answer.raise_for_status().json()["id"]).to_bytes(4, "big")
    schema = fastavro.parse_schema(json.loads(text))

    def encode(value: Any) -> bytes:
        out = io.BytesIO()
        fastavro.schemaless_writer(out, schema, value)
        return head + out.getvalue()

    return encode
