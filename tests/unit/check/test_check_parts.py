"""The parts of `rejoin check`: formulas against the docs, subjects, clocks, codes."""

import ast
import json
import re
import time
from pathlib import Path
from typing import Any, cast

import httpx
import pytest

from spark_jobs.check.clock import check_broker_clock, check_registry_clock
from spark_jobs.check.finding import Finding
from spark_jobs.check.growth import check_growth
from spark_jobs.check.rate import HOUR_MS, FillRate
from spark_jobs.check.registry import RegistryAnswer, check_registry, check_writer_schema
from spark_jobs.check.sample import DecodedSample
from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.errors import KafkaError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.plan.check.state_size import packed_bytes
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.walk import scans
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from spark_jobs.sql.types.data_types import DataType, RowField

ROOT = Path(__file__).parents[3]
KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1'"
TABLES = f"""
CREATE TABLE o (id INT, k INT, t TIMESTAMP(3), WATERMARK FOR t AS t)
  WITH ({KAFKA}, 'topic' = 'o', 'format' = 'json');
CREATE TABLE r (k INT, v STRING, t TIMESTAMP(3), WATERMARK FOR t AS t,
  PRIMARY KEY (k) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 'r',
  'properties.bootstrap.servers' = 'b:1', 'key.format' = 'json', 'value.format' = 'json');
CREATE TABLE p (k INT, t TIMESTAMP(3), WATERMARK FOR t AS t)
  WITH ({KAFKA}, 'topic' = 'p', 'format' = 'json');
CREATE TABLE s (a INT, b STRING) WITH ({KAFKA}, 'topic' = 's', 'format' = 'changelog-json');
"""


def sink_of(sql: str) -> KafkaSink:
    [planned] = plan(bind(TABLES + sql))
    assert isinstance(planned.root, KafkaSink)
    return planned.root


def growth(sql: str, **rows: dict[str, Any]) -> dict[str, Finding]:
    """By operator and side, if every table gives 360 records an hour that look like its rows."""
    sink = sink_of(sql)
    rate = FillRate(361, HOUR_MS, 0, 10, 4)
    samples = {}
    for scan in scans(sink):
        row = [rows[scan.table][named.name] for named in scan.row]
        samples[scan.table, scan.side] = DecodedSample(
            scan, ["+I"] * 4, [row] * 4, keys=2, records=4
        )
    found = check_growth("s", sink, samples, {table: rate for table in rows})
    return {finding.about.partition(", ")[2]: finding for finding in found}


JOIN = "INSERT INTO s SELECT o.id, r.v FROM o LEFT JOIN r ON o.k = r.k;"
ORDER = {"id": 1, "k": 2, "t": "2024-01-01T00:00:00"}
RATE = {"k": 1, "v": "x" * 9, "t": "2024-01-01T00:00:00"}
PING = {"k": 1, "t": "2024-01-01T00:00:00"}


def test_packed_size_of_a_row() -> None:
    kinds = [DataType("INT"), DataType("STRING"), DataType("DECIMAL", precision=38, scale=2)]
    row = DataType("ROW", fields=tuple(RowField(f"c{i}", kind) for i, kind in enumerate(kinds)))
    assert packed_bytes(row, [1, "x" * 9, "1.00"]) == 8 + 3 * 8 + 16 + 16
    assert packed_bytes(row, [1, None, None]) == 8 + 3 * 8
    wide = DataType("ROW", fields=tuple(RowField(f"c{i}", kinds[0]) for i in range(65)))
    assert packed_bytes(wide, [0] * 65) == 2 * 8 + 65 * 8


def test_a_regular_join_grows_by_rows_and_by_new_keys() -> None:
    found = growth(JOIN, o=ORDER, r=RATE)
    left, right = found["regular-join left"], found["regular-join right"]
    # one INT is kept of o: 8 + 8 and 20 beside; of r one STRING of 9 bytes: 8 + 8 + 16
    assert left.code == "STATE_UNBOUNDED"
    assert left.hint is not None
    assert "360 records/h x (row 16 + 20) bytes" in left.text
    assert f"at most {360 * 36 / 1024:.1f} KiB an hour" in left.text
    assert right.code == "STATE_GROWTH"
    assert "360 records/h x 0.50 new rows each x (row 32 + 20) bytes" in right.text


def test_a_ttl_bounds_it() -> None:
    left = growth("SET 'table.exec.state.ttl' = '2 h';" + JOIN, o=ORDER, r=RATE)[
        "regular-join left"
    ]
    assert (left.level, left.code) == ("ok", "STATE_GROWTH")
    assert f"bounded at {2 * 360 * 36 / 1024:.1f} KiB by TTL 2 h" in left.text


def test_an_interval_join_levels_off() -> None:
    sql = """INSERT INTO s SELECT o.id, CAST(p.k AS STRING) FROM o JOIN p ON o.k = p.k
      AND p.t BETWEEN o.t AND o.t + INTERVAL '10' MINUTE;"""
    left = growth(sql, o=ORDER, p=PING)["interval-join left"]
    assert "levels off at " in left.text
    assert "600 s window" in left.text


def test_the_formulas_are_those_of_the_docs() -> None:
    code = (ROOT / "spark_jobs/plan/check/state_size.py").read_text(encoding="utf-8")
    used = set(re.findall(r'"((?:rows|keys|rate) x [^"]+)"', code))
    table = (ROOT / "docs/tuning.md").read_text(encoding="utf-8")
    assert len(used) == 7
    for formula in used:
        assert formula in table, formula


def test_every_code_of_a_finding_is_documented_once() -> None:
    codes = set()
    for path in (ROOT / "spark_jobs/check").glob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            match node:
                case ast.Call(
                    func=ast.Name(id="Finding"), args=[_, ast.Constant(value=str() as code), *_]
                ):
                    codes.add(code)
    page = (ROOT / "docs/check.md").read_text(encoding="utf-8")
    told = re.findall(r"^\| `([A-Z_]+)` \|", page, re.MULTILINE)
    errors = (ROOT / "docs/errors.md").read_text(encoding="utf-8")
    assert len(told) == len(set(told))
    assert set(told) == {code for code in codes if f"| `{code}` |" not in errors}


AVRO = """
CREATE TABLE o (id INT, k INT) WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1',
  'topic' = 'o', 'format' = 'json');
CREATE TABLE s (id INT, k INT) WITH ('connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1',
  'topic' = '{topic}', 'format' = 'avro-confluent', 'avro-confluent.url' = '{url}');
INSERT INTO s SELECT id, k FROM o;
"""


def subject(
    registry: RegistryServer, topic: str, *fields: dict[str, Any], registers: bool = True
) -> list[Finding]:
    """What is found of the sink's subject, which has a version with these fields if any."""
    if fields:
        record = {
            "type": "record", "name": "record", "namespace": "org.apache.flink.avro.generated",
            "fields": list(fields),
        }  # fmt: skip
        url = f"{registry.url}/subjects/{topic}-value/versions"
        assert httpx.post(url, json={"schema": json.dumps(record)}).is_success
    option = "" if registers else "', 'avro-confluent.auto-register-schemas' = 'false"
    [planned] = plan(bind(AVRO.format(topic=topic, url=f"{registry.url}{option}")))
    assert isinstance(planned.root, KafkaSink)
    return list(check_writer_schema(planned.root))


def test_a_sink_subject_is_asked_about_and_left_alone(registry: RegistryServer) -> None:
    field_id = {"name": "id", "type": ["null", "int"], "default": None}
    field_k = {**field_id, "name": "k"}
    [new] = subject(registry, "chk-new")
    [same] = subject(registry, "chk-same", field_id, field_k)
    [wider] = subject(registry, "chk-wider", field_id)
    [other] = subject(registry, "chk-other", field_id, {"name": "k", "type": "string"})
    found = [finding.code for finding in (new, same, wider, other)]
    assert found == ["SUBJECT_NEW", "SUBJECT_SAME", "SUBJECT_COMPATIBLE", "SCHEMA_INCOMPATIBLE"]
    assert "becomes version 2" in wider.text
    assert other.exit_code == 2
    assert "/k" in other.text
    versions = httpx.get(f"{registry.url}/subjects/chk-wider-value/versions").json()
    assert versions == [1], "a check registers nothing"
    assert httpx.get(f"{registry.url}/subjects/chk-new-value/versions").status_code == 404
    [known] = subject(registry, "chk-same", registers=False)
    [missing] = subject(registry, "chk-wider", registers=False)
    assert [known.code, missing.code] == ["SUBJECT_SAME", "SCHEMA_UNREGISTERED"]
    assert (missing.level, missing.exit_code) == ("error", 2)
    assert missing.hint is not None
    assert "auto-register-schemas" in missing.hint


def test_a_registry_and_its_clock(registry: RegistryServer) -> None:
    [planned] = plan(bind(AVRO.format(topic="t", url=registry.url)))
    assert isinstance(planned.root, KafkaSink)
    options = planned.root.value_format.registry
    assert options is not None
    finding, answering = check_registry(options)
    assert finding.code == "REGISTRY_ANSWERS"
    now_s = time.time()
    clock = check_registry_clock(answering, now_s)
    assert clock is not None
    assert clock.code == "CLOCK_AGREES"
    ahead = check_registry_clock(answering, now_s - 60)
    assert ahead is not None
    assert (ahead.level, ahead.code) == ("warning", "CLOCK_SKEW")
    assert re.search(r"(5[5-9]|6[0-5])\.\d\d s ahead of ours", ahead.text)
    assert check_registry_clock(RegistryAnswer("u", None), now_s) is None


def test_a_registry_that_is_not_there() -> None:
    [planned] = plan(bind(AVRO.format(topic="t", url="http://127.0.0.1:1")))
    assert isinstance(planned.root, KafkaSink)
    options = planned.root.value_format.registry
    assert options is not None
    with pytest.raises(KafkaError, match="REGISTRY_UNREACHABLE"):
        check_registry(options)


class Clock:
    """The kernel's answer about a cluster's time."""

    def __init__(self, **told: object) -> None:
        self.told = told

    def broker_clock(self, client: dict[str, str]) -> dict[str, object]:
        assert client["bootstrap.servers"] == "b:1"
        return self.told


@pytest.mark.parametrize(
    ("told", "code", "text"),
    [
        ({"ms": 10_000, "before": 9_900, "after": 10_100}, "CLOCK_AGREES", "give or take 0.10 s"),
        ({"ms": 70_000, "before": 9_900, "after": 10_100}, "CLOCK_SKEW", "60.00 s ahead of ours"),
        ({"ms": 1_000, "before": 9_900, "after": 10_100}, "CLOCK_SKEW", "9.00 s behind ours"),
        ({"ms": 13_000, "before": 9_000, "after": 11_200}, "CLOCK_AGREES", "give or take 1.10 s"),
        ({"problem": "not allowed"}, "CLOCK_UNKNOWN", "not known: not allowed"),
    ],
)
def test_the_clock_of_a_cluster(told: dict[str, object], code: str, text: str) -> None:
    found = check_broker_clock(cast(Kernel, Clock(**told)), {"bootstrap.servers": "b:1"})
    assert found.code == code
    assert text in found.text
