"""Which dead letters are selected, and how a dead letter, a mark and a value are read and shown."""

import sys
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Message
from typer.testing import CliRunner

from spark_jobs.dlq.commands import app
from spark_jobs.dlq.dead_letter import (
    Contents,
    DeadLetter,
    HandledMark,
    Position,
    SourceRecord,
    mark_of,
    read_message,
)
from spark_jobs.dlq.handling import as_replay
from spark_jobs.dlq.render import bytes_text, dead_letter_text, groups
from spark_jobs.dlq.replaying import fixed_value
from spark_jobs.dlq.selection import Selection, parse_offset_ranges, parse_since
from spark_jobs.dlq.topics import topic_by_name, topics_of_job
from spark_jobs.errors import ConfigError

NOW = datetime(2024, 1, 1, 12, tzinfo=UTC)


def message(value: bytes | None, headers: list[tuple[str, str | bytes | None]]) -> Message:
    return Message(
        topic="dead", partition=0, offset=0, key=b"k", value=value, headers=headers,
        timestamp=(1, 1000),
    )  # fmt: skip


def letter(
    offset: int = 0, reason: str = "r", table: str = "t", at: int = 5, query: str = "q"
) -> DeadLetter:
    details = {"rejoin.reason": reason, "rejoin.table": table, "rejoin.query": query}
    source = SourceRecord("s", 1, at, 1000)
    return DeadLetter("dead", Position(0, offset), b"k", b"v", (), details, source, 1000)


def test_only_headers_from_the_last_first_one_on_are_ours() -> None:
    """A record that came out of another dead-letter topic has such headers of its own."""
    inner: list[tuple[str, str | bytes | None]] = [
        ("trace", b"1"),
        ("__connect.errors.topic", b"inner"),
        ("rejoin.reason", b"old"),
    ]
    ours: list[tuple[str, str | bytes | None]] = [
        ("__connect.errors.topic", b"dead-before"),
        ("__connect.errors.partition", b"3"),
        ("__connect.errors.offset", b"9"),
        ("rejoin.reason", b"new"),
        ("rejoin.timestamp", b"77"),
    ]
    found = read_message(message(b"v", [*inner, *ours]))
    assert isinstance(found, DeadLetter)
    assert found.headers == tuple(inner)
    assert found.reason == "new"
    assert found.source == SourceRecord("dead-before", 3, 9, 77)


def test_a_mark_survives_its_own_bytes() -> None:
    mark = mark_of("dropped", [letter(3), letter(4, at=6)], "own")
    assert read_message(message(mark.value(), mark.headers())) == mark


def test_letters_of_a_record_are_handled_for_the_tables_of_the_mark() -> None:
    first, later, other = letter(0), letter(1, query="q2"), letter(2, table="u")
    recreated = letter(3)
    recreated = DeadLetter(**{**vars_of(recreated), "source": SourceRecord("s", 1, 5, 2000)})
    letters = [first, later, other, recreated]
    own = Contents([*letters, mark_of("dropped", [first], "own")])
    assert list(own.open()) == [other, recreated]
    everybody = Contents([*letters, mark_of("replayed", [first], "all")])
    assert list(everybody.open()) == [recreated]
    assert everybody.handled(later) == "replayed"


def vars_of(found: DeadLetter) -> dict[str, Any]:
    return {name: getattr(found, name) for name in DeadLetter.__slots__}


def test_groups_count_a_record_once() -> None:
    again, second = letter(1, query="q2"), letter(2, at=6)
    contents = Contents([letter(0), again, second, letter(3, reason="x", at=7)])
    found = groups(contents, Selection())
    assert [(g.reason, g.open, g.handled) for g in found] == [("r", 2, 0), ("x", 1, 0)]


@pytest.mark.parametrize(
    ("selection", "taken"),
    [
        (Selection(), True),
        (Selection(tables=frozenset({"t", "u"})), True),
        (Selection(tables=frozenset({"u"})), False),
        (Selection(reasons=frozenset({"x"})), False),
        (Selection(since_ms=1000), True),
        (Selection(since_ms=1001), False),
        (Selection(ranges=parse_offset_ranges("0:3-9, 1:0")), False),
        (Selection(ranges=parse_offset_ranges("1:0,0:0")), True),
    ],
)
def test_everything_given_has_to_fit(selection: Selection, taken: bool) -> None:
    assert selection.takes(letter()) is taken


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("12 h", "2024-01-01"),
        ("2024-01-01", "2024-01-01"),
        ("2024-01-01T02:00+02:00", "2024-01-01"),
    ],
)
def test_since(text: str, expected: str) -> None:
    at = datetime.fromisoformat(expected).replace(tzinfo=UTC)
    assert parse_since(text, NOW) == int(at.timestamp() * 1000)


@pytest.mark.parametrize("text", ["yesterday", ""])
def test_what_is_no_time_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="DLQ_SELECTION"):
        parse_since(text, NOW)


@pytest.mark.parametrize("text", ["7", "0:", "0:5-", "a:1", ""])
def test_what_is_no_place_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="DLQ_SELECTION"):
        parse_offset_ranges(text)


def test_bytes_are_shown_as_text_only_where_they_are() -> None:
    assert bytes_text("grün".encode()) == "grün"
    assert bytes_text(b"\xff\x1b[2J") == "hex ff1b5b324a"
    assert bytes_text(b"\x1b[2J") == "hex 1b5b324a"
    assert bytes_text(None) == "none"
    assert bytes_text(b"x" * 5000).endswith(" ... (5000 bytes)")


def test_a_part_that_was_left_out_is_said() -> None:
    omitted = {"value": None, "details": {"rejoin.value.omitted": "9"}}
    large = DeadLetter(**{**vars_of(letter()), **omitted})
    assert "value    omitted, 9 bytes" in dead_letter_text(large, None)
    assert not large.is_whole


def test_fix_takes_bytes_and_gives_bytes() -> None:
    program = [
        sys.executable,
        "-c",
        "import sys; sys.stdout.buffer.write(sys.stdin.buffer.read()[::-1])",
    ]
    assert fixed_value(program, b"\x00\xff") == b"\xff\x00"
    failing = [sys.executable, "-c", "raise SystemExit('no such customer')"]
    assert fixed_value(failing, b"") == "the command ended with 1: no such customer"
    with pytest.raises(ConfigError, match="DLQ_FIX_FAILED"):
        fixed_value(["/no/such/program"], b"")


JOB = """
CREATE TABLE a (k INT, v STRING, PRIMARY KEY (k) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'a', 'properties.bootstrap.servers' = '{source}',
  'key.format' = 'json', 'value.format' = 'json', 'rejoin.dead-letter.topic' = 'letters');
CREATE TABLE s (k INT, v STRING) WITH (
  'connector' = 'kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'two:1',
  'format' = 'debezium-json');
INSERT INTO s SELECT k, v FROM a;
"""


@pytest.mark.parametrize(("source", "elsewhere"), [("two:1", {}), ("one:1", {"a": "one:1"})])
def test_letters_are_where_the_sink_writes(tmp_path: Any, source: str, elsewhere: object) -> None:
    job = tmp_path / "job.sql"
    job.write_text(JOB.format(source=source))
    (topic,) = topics_of_job(job)
    assert (topic.name, topic.config) == ("letters", {"bootstrap.servers": "two:1"})
    assert topic.changelogs == {"a": "upsert"}
    assert topic.elsewhere == elsewhere


def test_a_job_without_such_a_topic_is_refused(tmp_path: Any) -> None:
    job = tmp_path / "job.sql"
    job.write_text(JOB.format(source="x:1").replace(", 'rejoin.dead-letter.topic' = 'letters'", ""))
    with pytest.raises(ConfigError, match="DLQ_NO_TOPIC"):
        topics_of_job(job)


def test_marks_have_keys_of_their_own() -> None:
    mark = HandledMark("dropped", (), ())
    assert mark.key() != mark.key()


OURS: list[tuple[str, str | bytes | None]] = [
    ("__connect.errors.topic", b"s"),
    ("__connect.errors.partition", b"0"),
    ("__connect.errors.offset", b"9"),
    ("rejoin.reason", b"json-malformed"),
    ("rejoin.timestamp", b"77"),
]


def test_a_record_with_a_mark_s_header_is_still_a_letter() -> None:
    """It may have been a mark, of the dead-letter topic that the table reads."""
    found = read_message(message(b"{", [("rejoin.handled", b"replayed"), *OURS]))
    assert isinstance(found, DeadLetter)
    assert found.headers == (("rejoin.handled", b"replayed"),)


@pytest.mark.parametrize(
    ("value", "headers"),
    [
        (b"{", [("rejoin.handled", b"dropped")]),
        (b'{"letters": [1], "records": 7}', [("rejoin.handled", None)]),
        (b"v", [("rejoin.timestamp", b"noon")]),
        (b"v", [*OURS[:2], ("__connect.errors.offset", "\u0669".encode())]),
        (b"v", [*OURS[:4], ("rejoin.timestamp", b"9223372036854775807")]),
    ],
)
def test_what_others_wrote_there_is_shown_and_stops_nothing(
    value: bytes, headers: list[tuple[str, str | bytes | None]]
) -> None:
    found = read_message(message(value, headers))
    assert isinstance(found, DeadLetter)
    assert dead_letter_text(found, None)
    assert groups(Contents([found]), Selection())[0].json()["open"] == 1


@pytest.mark.parametrize(("before", "after"), [(b"2", b"3"), (b"many", b"1"), (None, b"1")])
def test_replays_are_counted_whatever_the_record_says(before: bytes | None, after: bytes) -> None:
    replayed = replace(letter(), headers=(("rejoin.replays", before),))
    assert dict(as_replay(replayed, b"v", [replayed]).headers)["rejoin.replays"] == after


def test_since_before_all_calendars_is_since_ever() -> None:
    assert parse_since("9999999 d", NOW) < 0


def test_a_password_with_quotes_reaches_the_broker_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "password").write_text('a"b\\c', encoding="utf-8")
    jaas = f'x.ScramLoginModule required username="u" password="${{file:{tmp_path}/password}}";'
    security = (
        "'properties.security.protocol' = 'SASL_PLAINTEXT', 'properties.sasl.mechanism' ="
        f" 'SCRAM-SHA-512', 'properties.sasl.jaas.config' = '{jaas}',"
    )
    job = tmp_path / "job.sql"
    common = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1', 'format' = 'json'"
    source = f"'topic' = 'o', 'rejoin.dead-letter.topic' = 'd', {common}"
    sink = f"{security} 'topic' = 's', {common}"
    tables = f"CREATE TABLE o (v INT) WITH ({source}); CREATE TABLE s (v INT) WITH ({sink});"
    job.write_text(f"{tables} INSERT INTO s SELECT v FROM o;", encoding="utf-8")  # noqa: S608
    [of_job] = topics_of_job(job)
    properties = tmp_path / "client.properties"
    properties.write_text(
        f"security.protocol=SASL_PLAINTEXT\nsasl.mechanism=SCRAM-SHA-512\nsasl.jaas.config={jaas}\n"
    )
    for config in (of_job.config, topic_by_name("d", "b:1", properties).config):
        assert config["sasl.password"] == 'a"b\\c'


def test_a_fix_with_an_open_quote_is_refused_before_anything_is_read() -> None:
    where = ["--topic", "dead", "--bootstrap-server", "127.0.0.1:1"]
    refused = CliRunner().invoke(app, ["replay", *where, "--yes", "--fix", "sh -c 'oops"])
    assert isinstance(refused.exception, ConfigError)
    assert refused.exception.code == "DLQ_FIX_FAILED"
    assert "No closing quotation" in refused.exception.message


@pytest.mark.parametrize("option", ["--bootstrap-server", "--properties"])
def test_a_job_names_its_brokers_itself(tmp_path: Path, option: str) -> None:
    job = tmp_path / "job.sql"
    job.write_text("nothing is read of it")
    refused = CliRunner().invoke(app, ["ls", str(job), option, "broker:9092"])
    assert isinstance(refused.exception, ConfigError)
    assert refused.exception.code == "DLQ_OPTIONS"
    assert option in refused.exception.message
