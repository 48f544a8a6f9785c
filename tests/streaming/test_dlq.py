"""`rejoin dlq` against a real broker: what it shows, what it puts back, and crashes in between."""

import json
import secrets
import signal
import subprocess
import sys
import time
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message, Producer
from confluent_kafka.admin import AdminClient, NewTopic
from typer.testing import CliRunner

from spark_jobs.cli import app
from spark_jobs.commands import ReplayOrder, read_answer, send, take
from spark_jobs.dlq.handling import Handler, as_replay, read_contents
from spark_jobs.dlq.reading import TopicReader
from spark_jobs.dlq.topics import topic_by_name
from spark_jobs.driver.replays import Replays
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child
from spark_jobs.errors import ConfigError, KafkaError, RejoinError

KILLS = 2
NOON_MS = 1_704_110_400_000
PARTITIONS = 2


@dataclass
class Post:
    """A source topic, its dead-letter topic, and the command over them."""

    broker: Broker
    prefix: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")

    def __post_init__(self) -> None:
        self._producer = Producer(
            {"enable.idempotence": True, "bootstrap.servers": self.broker.bootstrap_servers}
        )
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})
        wanted = [NewTopic(name, PARTITIONS, 1) for name in (self.source, self.letters)]
        for made in admin.create_topics(wanted).values():
            made.result(30)

    @property
    def source(self) -> str:
        return f"{self.prefix}_orders"

    @property
    def letters(self) -> str:
        return f"{self.prefix}_letters"

    def send(self, key: bytes | None, value: bytes | None, partition: int = 0) -> int:
        """To the source topic; its offset."""
        found: list[int] = []
        self._producer.produce(
            self.source, value, key, partition, timestamp=NOON_MS,
            headers=[("trace", b"\x01")],
            on_delivery=lambda _, message: found.append(message.offset() or 0),
        )  # fmt: skip
        assert self._producer.flush(30) == 0
        return found[0]

    def reject(
        self, key: bytes | None, value: bytes | None, partition: int = 0,
        reason: str = "json-malformed", query: str = "sink", table: str = "orders",
        offset: int | None = None, headers: tuple[tuple[str, bytes], ...] = (("trace", b"\x01"),),
        **told: str,
    ) -> int:  # fmt: skip
        """A record in the source topic, and its dead letter; the record's offset."""
        at = self.send(key, value, partition) if offset is None else offset
        own = {
            "__connect.errors.topic": self.source,
            "__connect.errors.partition": str(partition),
            "__connect.errors.offset": str(at),
            "__connect.errors.exception.message": "not JSON",
            "rejoin.reason": reason,
            "rejoin.table": table,
            "rejoin.timestamp": str(NOON_MS),
            "rejoin.query": query,
            "rejoin.epoch": "7",
            **told,
        }
        self._producer.produce(
            self.letters, value, key, partition, timestamp=NOON_MS,
            headers=[*headers, *((k, v.encode()) for k, v in own.items())],
        )  # fmt: skip
        assert self._producer.flush(30) == 0
        return at

    def command(self, verb: str, *options: str) -> list[str]:
        where = ["--topic", self.letters, "--bootstrap-server", self.broker.bootstrap_servers]
        return [sys.executable, "-m", "spark_jobs.cli", "dlq", verb, *where, *options]

    def run(self, verb: str, *options: str) -> str:
        done = CliRunner().invoke(app, self.command(verb, *options)[3:])
        if isinstance(done.exception, RejoinError):
            raise done.exception
        assert done.exit_code == 0, done.output
        return done.output

    def told(self, verb: str, *options: str) -> list[Any]:
        return [json.loads(line) for line in self.run(verb, "--json", *options).splitlines()]

    def records(self, topic: str) -> list[Message]:
        """What a read_committed consumer sees, by partition."""
        with TopicReader({"bootstrap.servers": self.broker.bootstrap_servers}) as reader:
            found = list(
                reader.read(topic, dict.fromkeys(range(PARTITIONS), 0), reader.ends(topic))
            )
        return sorted(found, key=lambda m: (m.partition() or 0, m.offset() or 0))

    def replayed(self) -> list[Message]:
        return [m for m in self.records(self.source) if header(m, "rejoin.replayed") is not None]


def header(message: Message, name: str) -> bytes | None:
    found = [value for key, value in message.headers() or [] if key == name]
    return bytes(found[-1]) if found else None


@pytest.fixture
def post(broker: Broker) -> Post:
    return Post(broker)


def test_ls_counts_a_record_once_however_many_queries_have_read_it(post: Post) -> None:
    at = post.reject(b"k", b"{", query="one")
    post.reject(b"k", b"{", query="two", offset=at)
    post.reject(b"k", b"{", table="other", offset=at)
    post.reject(None, b"[]", reason="null-record-key")
    found = {(g["table"], g["reason"]): g for g in post.told("ls")}
    assert {names: g["open"] for names, g in found.items()} == {
        ("orders", "json-malformed"): 1,
        ("other", "json-malformed"): 1,
        ("orders", "null-record-key"): 1,
    }
    example = found["orders", "json-malformed"]
    assert example["source"] == f"{post.source}[0]@{at}"
    assert example["first"] == example["last"] == "2024-01-01T12:00:00Z"
    assert [g["table"] for g in post.told("ls", "--table", "other")] == ["other"]
    assert post.told("ls", "--since", "2024-01-02") == []
    lines = post.run("ls").splitlines()
    assert len(lines) == 3
    assert all(line.count("\t") == 8 for line in lines)


def test_show_tells_of_bytes_as_text_or_hex(post: Post) -> None:
    post.reject(b"\xff\x00", b"{broken")
    shown = post.run("show")
    assert "json-malformed: not JSON" in shown
    assert "hex ff00" in shown
    assert "{broken" in shown
    (letter,) = post.told("show", "--offsets", "0:0")
    assert letter["key"] == {"hex": "ff00"}
    assert letter["headers"] == [["trace", "\x01"]]
    assert letter["told"]["rejoin.epoch"] == "7"
    assert post.told("show", "--offsets", "0:1-9") == []


def test_replay_puts_the_record_back_as_it_was_and_only_once(post: Post) -> None:
    post.reject(b"a", b"\x00{", partition=1)
    post.reject(b"b", None, partition=1)
    assert post.told("replay", "--yes", "--dry-run")[0]["would replay"] == 2
    assert post.replayed() == []
    assert post.told("replay", "--yes")[0]["replayed"] == 2
    assert post.told("replay", "--yes")[0]["replayed"] == 0
    found = post.replayed()
    assert [(m.partition(), m.key(), m.value()) for m in found] == [
        (1, b"a", b"\x00{"),
        (1, b"b", None),
    ]
    assert {m.timestamp()[1] for m in found} == {NOON_MS}
    assert [dict(m.headers() or []) for m in found] == [
        {
            "trace": b"\x01",
            "rejoin.replayed": f"{post.letters}[1]@{i}".encode(),
            "rejoin.replays": b"1",
        }
        for i in range(2)
    ]
    (group,) = post.told("ls")
    assert (group["open"], group["handled"]) == (0, 2)
    # the same record once more, from a job that has begun anew
    first = int(post.told("show", "--handled")[0]["source"].rpartition("@")[2])
    post.reject(b"a", b"\x00{", partition=1, offset=first, query="again")
    assert post.told("replay", "--yes")[0]["replayed"] == 0


def test_a_record_that_fails_again_leads_back_to_its_first_letter(post: Post) -> None:
    post.reject(b"a", b"{")
    post.run("replay", "--yes")
    (again,) = post.replayed()
    headers = tuple((k, bytes(v or b"")) for k, v in again.headers() or [])
    post.reject(b"a", b"{", offset=again.offset(), headers=headers)
    assert post.told("replay", "--yes")[0]["replayed"] == 1
    last = post.replayed()[-1]
    assert header(last, "rejoin.replayed") == f"{post.letters}[0]@0".encode()
    assert header(last, "rejoin.replays") == b"2"
    assert len(last.headers() or []) == 3


def test_fix_changes_values_and_leaves_what_it_cannot(post: Post) -> None:
    post.reject(b"a", b'{"id": 1,}')
    post.reject(b"b", b"hopeless")
    fix = "sh -c 'grep id > /dev/null && printf fixed'"
    (told,) = post.told("replay", "--yes", "--fix", fix)
    assert told["replayed"] == 1
    assert [item["why"] for item in told["left"]] == ["the command ended with 1"]
    assert [item["source"] for item in told["left"]] == [f"{post.source}[0]@1"]
    assert [m.value() for m in post.replayed()] == [b"fixed"]
    assert [g["open"] for g in post.told("ls")] == [1]


def test_an_old_version_of_a_row_stays_unless_asked_for(post: Post) -> None:
    post.reject(b"a", b"old")
    post.send(b"a", b"new")
    post.reject(b"b", b"only")
    (told,) = post.told("replay", "--yes")
    assert told["replayed"] == 1
    assert "later record" in told["left"][0]["why"]
    assert [m.key() for m in post.replayed()] == [b"b"]
    assert post.told("replay", "--yes", "--superseded")[0]["replayed"] == 1


def test_a_value_that_was_left_out_is_taken_from_the_source_topic(post: Post) -> None:
    value = b"x" * 5000
    at = post.send(b"a", value)
    gone = {"rejoin.value.omitted": "5000"}
    post.reject(b"a", None, offset=at, headers=(), **gone)
    post.reject(b"c", None, offset=at + 100, headers=(), **gone)
    (told,) = post.told("replay", "--yes")
    assert told["replayed"] == 1
    assert "no longer has it" in told["left"][0]["why"]
    (found,) = post.replayed()
    assert (found.value(), header(found, "trace")) == (value, b"\x01")


def test_drop_marks_letters_of_its_table_only(post: Post) -> None:
    at = post.reject(b"a", b"{")
    post.reject(b"a", b"{", table="other", offset=at)
    assert post.told("drop", "--yes", "--table", "orders")[0]["dropped"] == 1
    assert [(g["table"], g["open"]) for g in post.told("ls")] == [("other", 1), ("orders", 0)]
    assert post.told("replay", "--yes")[0]["replayed"] == 1


def test_nobody_to_ask_is_an_error(post: Post) -> None:
    post.reject(b"a", b"{")
    with pytest.raises(ConfigError) as refused:
        post.run("drop")
    assert refused.value.code == "DLQ_NOT_CONFIRMED"


def test_a_second_replayer_fences_the_first(post: Post) -> None:
    post.reject(b"a", b"{")
    topic = topic_by_name(post.letters, post.broker.bootstrap_servers, None)
    with TopicReader(topic.config) as reader, Handler(topic) as first:
        (letter,) = read_contents(reader, topic, settled=True).open()
        post.run("replay", "--yes")
        with pytest.raises(KafkaError) as refused:
            first.replay([as_replay(letter, letter.value, [letter])])
    assert refused.value.code == "DLQ_FENCED"
    assert len(post.replayed()) == 1


def test_marks_behind_a_transaction_of_the_job_are_waited_for(post: Post) -> None:
    """What is committed behind an open transaction is not visible yet, and must not be repeated."""
    post.reject(b"a", b"{")
    job = Producer(
        {"bootstrap.servers": post.broker.bootstrap_servers, "transactional.id": post.prefix}
    )
    job.init_transactions(30)
    job.begin_transaction()
    job.produce(post.letters, b"in an epoch", None, 0, headers=[("rejoin.reason", b"late")])
    job.flush(30)
    topic = topic_by_name(post.letters, post.broker.bootstrap_servers, None)
    with TopicReader(topic.config) as reader:
        (letter,) = read_contents(reader, topic, settled=False).open()
        with Handler(topic) as handler:
            handler.replay([as_replay(letter, letter.value, [letter])])
    second = subprocess.Popen(post.command("replay", "--yes", "--json"), stdout=subprocess.PIPE)
    with pytest.raises(subprocess.TimeoutExpired):
        second.wait(6)
    job.commit_transaction(30)
    out, _ = second.communicate(timeout=60)
    assert json.loads(out)["replayed"] == 0
    assert len(post.replayed()) == 1


def kill_replays(post: Post, kills: int, rows: int) -> int:
    """Replays that are killed at random moments, until one comes through; how many were killed."""
    for i in range(rows):
        post.reject(b"k%d" % i, b"v%d" % i, partition=i % PARTITIONS)
    started = time.monotonic()
    post.run("replay", "--dry-run")
    reading_s = time.monotonic() - started
    died = 0
    for _ in range(kills):
        child = subprocess.Popen(
            post.command("replay", "--yes", "--fix", "cat"),
            stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        time.sleep(reading_s * 0.6 + secrets.SystemRandom().uniform(0, 0.8 + rows / 150))
        if child.poll() is None:
            child.send_signal(signal.SIGKILL)
            died += 1
        child.wait()
    post.run("replay", "--yes", "--fix", "cat")
    return died


def test_replays_killed_at_random_moments_repeat_nothing(post: Post) -> None:
    rows = 150
    kill_replays(post, KILLS, rows)
    found = sorted(bytes(m.value() or b"") for m in post.replayed())
    assert found == sorted(b"v%d" % i for i in range(rows))
    assert [(g["open"], g["handled"]) for g in post.told("ls")] == [(0, rows)]


JOB = """
CREATE TABLE orders (id STRING) WITH ('connector' = 'kafka', 'topic' = '{source}',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'raw',
  'rejoin.dead-letter.topic' = '{letters}');
CREATE TABLE copy (id STRING) WITH ('connector' = 'kafka', 'topic' = 'copy',
  'properties.bootstrap.servers' = '{servers}', 'format' = 'raw');
INSERT INTO copy SELECT id FROM orders;
"""


def test_the_admin_verb_replays_once_and_so_many(post: Post, tmp_path: Path) -> None:
    for key in (b"a", b"b", b"c"):
        post.reject(key, b"{", partition=1)
    post.reject(b"d", b"[]", reason="null-record-key")
    servers = post.broker.bootstrap_servers
    sql = JOB.format(source=post.source, letters=post.letters, servers=servers)
    replays = Replays(tmp_path, sql, Child)
    messages = []
    for _ in range(2):
        order = ReplayOrder(tables=("orders",), reasons=("json-malformed",), limit=2)
        asked, again = (send(tmp_path, "dlq-replay", "test", replay=order) for _ in range(2))
        for command in sorted(take(tmp_path), key=lambda command: command.id != asked.id):
            replays.begin(command)
        refused = read_answer(tmp_path, again.id)
        assert refused is not None
        assert asked.id in refused.message
        messages.append(ended(replays, tmp_path, asked.id))
    assert messages == [
        "replayed 2, left 0, 1 more beyond the limit",
        "replayed 1, left 0, 0 more beyond the limit",
    ]
    assert [m.key() for m in post.replayed()] == [b"a", b"b", b"c"]


def ended(replays: Replays, folder: Path, command: str) -> str:
    deadline = time.monotonic() + 120
    while (found := read_answer(folder, command)) is None:
        assert time.monotonic() < deadline
        time.sleep(0.05)
        replays.poll()
    assert found.done, found.message
    assert replays.status is not None
    assert (replays.status.id, replays.status.state) == (command, "done")
    return found.message
