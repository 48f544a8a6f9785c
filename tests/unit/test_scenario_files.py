"""The scenario format: what a file says, and what its rows look like on the wire."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.sql.catalog import Column, Table
from spark_jobs.sql.types import DataType, RowField
from tests.harness.fold import View, net_difference
from tests.harness.literals import LiteralError, parse_row
from tests.harness.records import Change, Encoder, Record, decode
from tests.harness.scenario import Input, Scenario, ScenarioError, parse_scenario, read_scenario
from tests.harness.values import canonical, json_text, to_json

SCENARIOS = Path(__file__).parents[1] / "scenarios"
INT, STRING = DataType("INT"), DataType("STRING")
CHANGELOG = {"connector": "kafka", "topic": "t", "format": "changelog-json"}
UPSERT = {"connector": "upsert-kafka", "topic": "t", "key.format": "json", "value.format": "json"}


def table(options: dict[str, str], *primary_key: str, more: tuple[Column, ...] = ()) -> Table:
    return Table("t", (Column("id", INT), Column("name", STRING), *more), options, primary_key)


def given(kind: Any, *values: Any) -> Input:
    return Input(1, "t", 0, kind, values)


def wire(record: Record) -> tuple[Any, Any]:
    key, value = (None if part is None else json.loads(part) for part in (record.key, record.value))
    return key, value


HEADER = "# a comment\nSET 'a' = 'b';\nSELECT 1\n  > 2;\n"


def test_steps_end_at_blank_lines_commands_and_after_output() -> None:
    scenario = parse_scenario(
        HEADER + "> a +I (1)\n> b[2] -D (2, NULL)\n< +I (3)\n> a +U (4)\n\n> a +I (5)\nrestart\n"
        "# a comment\n> a raw ('k', NULL)\n< out -D (6)\nadvance 2m\n< +I (7)\nend\n",
        "x",
    )
    steps = scenario.steps
    assert scenario.sql == "\nSET 'a' = 'b';\nSELECT 1\n  > 2;\n"
    assert [s.command for s in steps] == [None, None, None, "restart", None, "advance", "end"]
    assert [len(s.inputs) for s in steps] == [2, 1, 1, 0, 1, 0, 0]
    assert [len(s.expected) for s in steps] == [1, 0, 0, 0, 1, 1, 0]
    assert steps[0].inputs[1] == Input(6, "b", 2, "-D", (2, None))
    assert steps[4].inputs[0].values == ("k", None)
    assert steps[4].expected[0].table == "out"
    assert steps[5].advance_ms == 120_000


@pytest.mark.parametrize("line", ["> a (1)", "> a +I 1", "< +X (1)", "advance 5 days", "> a +I (1"])
def test_lines_that_mean_nothing_are_errors(line: str) -> None:
    with pytest.raises(ScenarioError, match="x:6"):
        parse_scenario(HEADER + f"> a +I (1)\n{line}\n", "x")


def test_a_scenario_may_say_when_a_table_is_loaded() -> None:
    scenario = parse_scenario("SELECT;\n> a +I (1)\nloaded a\n< +I (1)\n", "s")
    assert [(s.command, s.table) for s in scenario.steps] == [(None, ""), ("loaded", "a")]
    assert scenario.says_loaded
    assert len(scenario.steps[1].expected) == 1


def test_refused_sql_needs_no_rows() -> None:
    assert parse_scenario("fails: SOME_CODE\nSELECT 1;\n", "x").fails == "SOME_CODE"
    with pytest.raises(ScenarioError, match="no input"):
        parse_scenario("SELECT 1;\n", "x")


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.scenario")), ids=lambda p: p.stem)
def test_all_files_can_be_read(path: Path) -> None:
    assert isinstance(read_scenario(path), Scenario)


def test_values() -> None:
    row = parse_row("(1, -2.50, 'it''s', NULL, true, x'00ff', ('a', (2)), ['b'], {'k': 3})")
    nested = ("a", (2,))
    assert row == (1, Decimal("-2.50"), "it's", None, True, b"\0\xff", nested, ["b"], {"k": 3})
    for wrong in ("1", "(1", "(1 2)", "(abc)", "(1) x"):
        with pytest.raises(LiteralError):
            parse_row(wrong)


@pytest.mark.parametrize(
    ("name", "value", "on_the_wire"),
    [
        ("TIMESTAMP", "2020-08-15 00:01:00", '"2020-08-15 00:01:00.000"'),
        ("TIMESTAMP_LTZ", "2020-08-15 00:01:00.5", '"2020-08-15 00:01:00.500Z"'),
        ("DATE", "2020-08-15", '"2020-08-15"'),
        ("DECIMAL", Decimal("0.00000001"), "0.00000001"),
        ("BYTES", b"\0", '"AA=="'),
        ("DOUBLE", 1, "1.0"),
    ],
)
def test_values_survive_json(name: str, value: Any, on_the_wire: str) -> None:
    kind = DataType(name)
    one = canonical(value, kind)
    assert json_text(to_json(one, kind)) == on_the_wire
    assert canonical(json.loads(on_the_wire, parse_float=Decimal), kind) == one


def test_nested_values_survive_json() -> None:
    kind = DataType(
        "ROW",
        fields=(
            RowField("a", DataType("ARRAY", element=INT)),
            RowField("m", DataType("MAP", key=STRING, element=STRING)),
        ),
    )
    one = canonical(([1, None], {"k": "v"}), kind)
    assert hash(one)
    assert canonical(to_json(one, kind), kind) == one
    assert to_json(one, kind) == {"a": [1, None], "m": {"k": "v"}}


def test_changelog_records() -> None:
    encoder = Encoder(table(CHANGELOG, "id"))
    [record] = encoder.encode([given("-U", 1, "a")])
    assert wire(record) == ({"id": 1}, {"op": "-U", "data": {"id": 1, "name": "a"}})
    assert decode(encoder.table, record) == [Change("-U", (1, "a"))]


def test_upsert_records() -> None:
    encoder = Encoder(table(UPSERT, "id"))
    update, delete = encoder.encode([given("+U", 1, "a"), given("-D", 1, None)])
    assert wire(update) == ({"id": 1}, {"id": 1, "name": "a"})
    assert wire(delete) == ({"id": 1}, None)
    assert decode(encoder.table, delete) == [Change("-D", (1, None))]
    with pytest.raises(ValueError, match="no -U"):
        encoder.encode([given("-U", 1, "a")])


def test_debezium_records_pair_updates() -> None:
    at = Column(
        "at", DataType("TIMESTAMP", precision=3), "metadata", None, "value.source.timestamp"
    )
    options = {"connector": "kafka", "topic": "t", "format": "debezium-json"}
    encoder = Encoder(table(options, "id", more=(at,)))
    time = "1970-01-01 00:00:01"
    rows = [given("+I", 1, "a", time), given("-U", 1, "a", time), given("+U", 1, "b", time)]
    create, update = encoder.encode(rows)
    assert wire(create)[1]["op"] == "c"
    assert wire(create)[1]["source"]["ts_ms"] == 1000
    assert wire(update)[1]["op"] == "u"
    assert wire(update)[1]["before"] == {"id": 1, "name": "a"}
    assert wire(update)[1]["after"] == {"id": 1, "name": "b"}
    [delete] = encoder.encode([given("-D", 1, "b", time)])
    assert wire(delete)[1]["after"] is None


def test_raw_records() -> None:
    [record] = Encoder(table(CHANGELOG)).encode([given("raw", None, "no json")])
    assert (record.key, record.value) == (None, b"no json")


def test_differences_keep_kinds_where_the_sink_does() -> None:
    expected, actual = [Change("+U", (1, "a"))], [Change("+I", (1, "a"))]
    assert net_difference(table(CHANGELOG), expected, actual) == [
        "missing: +U (1, a)",
        "too much: +I (1, a)",
    ]
    options = {"connector": "kafka", "topic": "t", "format": "debezium-json"}
    assert net_difference(table(options), expected, actual) == []
    assert net_difference(table(options), expected, [*actual, *actual]) == ["too much: + (1, a)"]


def test_upsert_differences_are_by_key() -> None:
    keyed = table(UPSERT, "id")
    actual = [Change("+U", (1, "a")), Change("+U", (1, "b"))]
    assert net_difference(keyed, [Change("+I", (1, "b"))], actual) == []
    deleted = net_difference(keyed, [Change("-D", (1, "b"))], actual)
    assert deleted == ["missing: -D (1)", "too much: +U (1, b)"]


def test_views_fold_and_notice_unknown_retractions() -> None:
    view = View.of(table(CHANGELOG))
    view.apply([Change("+I", (1, "a")), Change("-U", (1, "a")), Change("+U", (1, "b"))])
    assert list(view.contents().elements()) == [(1, "b")]
    view.apply([Change("-D", (9, "z"))])
    assert view.problems == ["retracts a row that is not there: -D (9, z)"]
    view = View.of(table(UPSERT, "id"))
    view.apply([Change("+U", (1, "a")), Change("-D", (1, None)), Change("-D", (2, None))])
    assert not view.contents()
    assert view.problems == []
