"""What a dead letter says of a record, and when a table has too many of them; in one JVM."""

import json
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from spark_jobs.plan import planner
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.sql.bind.binder import bind
from tests.kernel.tables import Record, TableScan, run, struct

GOOD = Record(b'{"id": 1}')
BAD = Record(b"{broken")
TABLES = """\
CREATE TABLE t (c {type}) WITH ('connector' = 'kafka', 'topic' = 'topic', 'format' = 'json',
  'properties.bootstrap.servers' = 'b:1', 'rejoin.dead-letter.topic' = 'dead');
CREATE TABLE s (c {type}) WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'json',
  'properties.bootstrap.servers' = 'b:1');
INSERT INTO s SELECT c FROM t;
"""
TRACE = (("trace", b"\x01"),)


def plan(share: float = 0.5, window: int = 2000, on_error: str = "dead-letter") -> dict[str, Any]:
    columns = {"id": "integer"}
    node = TableScan(columns, on_error=on_error).node()
    node["rejectLimit"] = {"maxShare": share, "window": window}
    project = {
        "kind": "project", "select": [{"name": "id", "expr": "`id`"}],
        "schema": struct(columns), "input": node, "timeZone": "UTC",
    }  # fmt: skip
    return {"kind": "results", "inputs": [project]}


def test_own_headers_come_after_the_original_ones(jvm: Any) -> None:
    got = run(jvm, plan(), [Record(b"?", b"k", TRACE)])
    (headers,) = got.dead_letter_headers
    assert headers[0] == ("trace", b"\x01")
    told = {name: value.decode() for name, value in headers[1:]}
    assert headers[1][0] == "__connect.errors.topic"
    assert told == {
        "__connect.errors.topic": "topic",
        "__connect.errors.partition": "0",
        "__connect.errors.offset": "0",
        "__connect.errors.stage": "VALUE_CONVERTER",
        "__connect.errors.exception.class.name": "org.apache.spark.sql.rejoin.BadRecord",
        "__connect.errors.exception.message": told["__connect.errors.exception.message"],
        "rejoin.reason": "json-malformed",
        "rejoin.table": "t",
        "rejoin.timestamp": told["rejoin.timestamp"],
    }


@pytest.mark.parametrize("character", ["x", "ä", "🦊"])
def test_the_message_is_one_line_of_bounded_size(jvm: Any, character: str) -> None:
    """A parser's message quotes the record."""
    scan = TableScan({"id": "integer"}, on_error="dead-letter")
    value = json.dumps({"id": "a\nb" + character * 3000}, ensure_ascii=False).encode()
    (headers,) = scan.read(jvm, Record(value)).dead_letter_headers
    message = dict(headers)["__connect.errors.exception.message"]
    assert len(message) <= 1024
    text = message.decode()  # not cut inside a character
    assert text.isprintable()
    if len(message) > 1000:
        assert text.endswith("...")


@pytest.mark.parametrize(
    ("type_", "value", "told"),
    [
        ("TIMESTAMP(3)", '"x"', "'c' is no TIMESTAMP(3): "),
        ("TIMESTAMP_LTZ(3)", '"x"', "'c' is no TIMESTAMP_LTZ(3): "),
        ("TIMESTAMP(3) NOT NULL", '"x"', "'c' is no TIMESTAMP(3): "),
        ("TIME(3)", '"x"', "'c' is no TIME(3): "),
        ("DECIMAL(10, 4)", '"x"', "'c' is no DECIMAL(10, 4): "),
        ("BYTES", '"?"', "'c' is no BYTES: "),
        (
            "ROW<`a b` TIMESTAMP(3)>",
            '{"a b": "x"}',
            "'c' is no ROW<`a b` TIMESTAMP(3)>: 'a b' is no TIMESTAMP: ",
        ),
        ("ROW<c ROW<t TIME, d DECIMAL(3, 1), b BYTES>>", '{"c": 1}',
         "'c' is no ROW<c ROW<t TIME(0), d DECIMAL(3, 1), b BYTES>>: "
         "'c' is no ROW<t TIME(0), d DECIMAL(3, 1), b BYTES>: "),
        ("ROW<c MAP<STRING, ARRAY<TIMESTAMP_LTZ(3)>>>", '{"c": 1}',
         "'c' is no ROW<c MAP<STRING, ARRAY<TIMESTAMP_LTZ(3)>>>: "
         "'c' is no MAP<STRING, ARRAY<TIMESTAMP_LTZ>>: "),
    ],
)  # fmt: skip
def test_types_are_called_as_the_table_declares_them(
    jvm: Any, type_: str, value: str, told: str
) -> None:
    [query] = planner.plan(bind(TABLES.format(type=type_)))
    got = run(jvm, to_json(query.root), [Record(f'{{"c": {value}}}'.encode())])
    (headers,) = got.dead_letter_headers
    assert dict(headers)["__connect.errors.exception.message"].decode().startswith(told)


def test_a_share_above_the_limit_stops_the_job(jvm: Any) -> None:
    with pytest.raises(Py4JJavaError) as failure:
        run(jvm, plan(), [GOOD] * 400 + [BAD] * 2000)
    told = str(failure.value.java_exception)
    assert "RejectLimitException" in told
    assert "table t: 600 of the last 1000 records (60 %)" in told or "501 of the last" in told, told
    assert "json-malformed, such as topic[0]@" in told


def test_skipped_records_count_as_well(jvm: Any) -> None:
    with pytest.raises(Py4JJavaError) as failure:
        run(jvm, plan(on_error="skip"), [BAD] * 1000)
    assert "1000 of the last 1000 records" in str(failure.value.java_exception)


@pytest.mark.parametrize(
    ("share", "records"),
    [
        (0.5, ([GOOD] * 11 + [BAD] * 9) * 22),
        (1.0, [BAD] * 500),  # no limit
        (0.5, [GOOD] * 300 + [BAD] * 180 + [GOOD] * 220 + [BAD] * 180),  # bursts
    ],
)
def test_a_share_below_the_limit_does_not(jvm: Any, share: float, records: list[Record]) -> None:
    got = run(jvm, plan(share, window=400), records)
    assert len(got.rejects) == records.count(BAD)


def test_fewer_than_a_thousand_do_not_tell(jvm: Any) -> None:
    assert len(run(jvm, plan(), [GOOD] * 499 + [BAD] * 500).rejects) == 500


def test_only_the_last_records_count(jvm: Any) -> None:
    with pytest.raises(Py4JJavaError) as failure:
        run(jvm, plan(window=400), [GOOD] * 1000 + [BAD] * 300)
    assert "of the last 4" in str(failure.value.java_exception)
