"""A job of an older release with its records and its state, run by any release's command line."""

import json
import os
import re
import sys
import tarfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.embedded.process import Child
from spark_jobs.scenario.fold import SinkView, row_text
from spark_jobs.scenario.records import Record, decode
from spark_jobs.sql.bind.binder import bind
from spark_jobs.sql.catalog import Table

ROOT = Path(__file__).parent
START_S = 900.0  # so many queries start slowly on a busy machine
STOP_S = 180.0
QUIET_S = 3.0  # the epochs in which a gate opens come after the one that read the last record
PARTITIONS = {"v1_probes": 2, "v1_a": 2}
RECORD_MS = 1_704_110_400_000


@dataclass
class OldJob:
    """The files of one state format version at work: `folder` has them, `work` is this run's."""

    folder: Path
    work: Path
    servers: str
    _child: Child | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        text = (self.folder / "job.sql").read_text(encoding="utf-8")
        self.sql = self.work / "job.sql"
        self.sql.write_text(text.replace("localhost:9092", self.servers), encoding="utf-8")
        job = bind(text, "job.sql")
        self.tables: Mapping[str, Table] = job.tables
        self.sinks = tuple(insert.table.name for insert in job.inserts)
        self.records = _lines(self.folder / "records.jsonl")

    @property
    def steps(self) -> tuple[str, ...]:
        return tuple(dict.fromkeys(record["step"] for record in self.records))

    @property
    def checkpoint(self) -> Path:
        return self.work / "checkpoint"

    def create_topics(self) -> None:
        admin = AdminClient({"bootstrap.servers": self.servers})
        names = [table.topics[0] for table in self.tables.values()]
        for made in admin.create_topics(
            [NewTopic(n, PARTITIONS.get(n, 1)) for n in names]
        ).values():
            made.result(30)

    def feed(self, step: str) -> None:
        producer = Producer({"enable.idempotence": True, "bootstrap.servers": self.servers})
        for record in self.records:
            if record["step"] == step:
                producer.produce(
                    self.tables[record["table"]].topics[0],
                    _bytes(record["value"]),
                    _bytes(record["key"]),
                    record["partition"],
                    timestamp=RECORD_MS,
                )
        assert producer.flush(30) == 0

    def unpack_checkpoint(self) -> None:
        with tarfile.open(self.folder / "checkpoint.tar.gz") as packed:
            packed.extractall(self.work, filter="data")
        # Spark keeps the absolute paths of its schema files
        for metadata in self.checkpoint.glob("*/state/*/_metadata/v2/[0-9]*"):
            text = metadata.read_text(encoding="utf-8")
            moved = re.sub(r'file:[^"]*?/checkpoint/', f"file:{self.checkpoint}/", text)
            metadata.write_text(moved, encoding="utf-8")
            metadata.with_name(f".{metadata.name}.crc").unlink(missing_ok=True)

    def start(self, sources: Path) -> None:
        """With the release whose sources stand there."""
        command = ["env", "-C", str(sources), sys.executable, "-m", "spark_jobs.cli"]
        command += ["run", str(self.sql), "--no-sidecar", "--checkpoint", str(self.checkpoint)]
        command += ["--status-dir", str(self.work / "status")]
        self._child = Child(command, self.work / "job.log")

    def stop(self) -> None:
        """In order: the running epochs end."""
        if self._child is not None:
            child, self._child = self._child, None
            child.stop(STOP_S)
            assert child.exit_code == 0, child.log_tail(40)

    def settle(self) -> None:
        """Wait until every query has committed all records, and the sinks have been quiet."""
        ends = self._ends([t.topics[0] for t in self.tables.values() if t.name not in self.sinks])
        deadline = time.monotonic() + START_S
        while not all(self._has_read(name, ends) for name in self.sinks):
            self._check(deadline)
        before, since = self._written(), time.monotonic()
        while time.monotonic() - since < QUIET_S:
            self._check(deadline)
            if (present := self._written()) != before:
                before, since = present, time.monotonic()

    def written(self) -> Iterator[dict[str, Any]]:
        """All that the sinks hold."""
        for name in self.sinks:
            topic = self.tables[name].topics[0]
            for key, value in _read(self.servers, topic, self._ends([topic])[topic][0]):
                yield {"table": name, "key": key, "value": value}

    def recorded(self) -> list[dict[str, Any]]:
        """What the old release had written when it was stopped."""
        return _lines(self.folder / "written.jsonl")

    def fold(self, written: list[dict[str, Any]]) -> list[str]:
        """What a reader of the sinks sees, a line per row."""
        views = {name: SinkView.of(self.tables[name]) for name in self.sinks}
        for record in written:
            table = self.tables[record["table"]]
            made = Record(_bytes(record["key"]), _bytes(record["value"]))
            views[table.name].apply(decode(table, made))
        for name, view in views.items():
            assert not view.problems, (name, view.problems)
        lines = ((n, v.contents().elements()) for n, v in views.items())
        return [f"{name} {row}" for name, rows in lines for row in sorted(map(row_text, rows))]

    def _check(self, deadline: float) -> None:
        assert self._child is not None
        assert self._child.exit_code is None, self._child.log_tail(40)
        assert time.monotonic() < deadline, self._child.log_tail(40)
        time.sleep(0.2)

    def _has_read(self, query: str, ends: Mapping[str, Mapping[int, int]]) -> bool:
        """Whether the offsets of its last committed epoch are the ends of what it reads."""
        folder = self.checkpoint / query
        commits = [int(n) for n in _names(folder / "commits") if n.isdigit()]
        if not commits:
            return False
        text = (folder / "offsets" / str(max(commits))).read_text(encoding="utf-8")
        sources = [json.loads(line) for line in text.splitlines()[2:] if line.startswith('{"v1_')]
        read = [(t, int(p), at) for s in sources for t, o in s.items() for p, at in o.items()]
        return bool(read) and all(ends[topic][p] == at for topic, p, at in read)

    def _written(self) -> Mapping[str, Mapping[int, int]]:
        return self._ends([self.tables[name].topics[0] for name in self.sinks])

    def _ends(self, topics: list[str]) -> dict[str, dict[int, int]]:
        consumer = Consumer({"bootstrap.servers": self.servers, "group.id": "ends"})
        try:
            return {
                topic: {
                    p: consumer.get_watermark_offsets(TopicPartition(topic, p), timeout=30)[1]
                    for p in range(PARTITIONS.get(topic, 1))
                }
                for topic in topics
            }
        finally:
            consumer.close()


def _lines(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def _names(folder: Path) -> list[str]:
    return os.listdir(folder) if folder.is_dir() else []


def _read(servers: str, topic: str, end: int) -> Iterator[tuple[Any, Any]]:
    consumer = Consumer({"bootstrap.servers": servers, "group.id": "results"})
    try:
        consumer.assign([TopicPartition(topic, 0, 0)])
        for _ in range(end):
            message = consumer.poll(30)
            assert message is not None
            assert message.error() is None, message.error()
            yield _json(message.key()), _json(message.value())
    finally:
        consumer.close()


def _bytes(value: Any) -> bytes | None:
    return None if value is None else json.dumps(value).encode()


def _json(text: bytes | None) -> Any:
    return None if text is None else json.loads(text)
