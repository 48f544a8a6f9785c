"""The scenario format: what a file says, and what its rows look like on the wire."""

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.errors import ConfigError, SqlErrors
from spark_jobs.options.connectors import table_options
from spark_jobs.scenario.checks import fits
from spark_jobs.scenario.file import Input, Scenario, parse_scenario, read_scenario
from spark_jobs.scenario.fold import SinkView, net_difference
from spark_jobs.scenario.literals import LiteralError, parse_row
from spark_jobs.scenario.records import Change, Encoder, Record, decode
from spark_jobs.scenario.runner import bind_scenario
from spark_jobs.scenario.values import canonical, json_text, literal_text, to_json
from spark_jobs.sql.catalog import Table, TableColumn
from spark_jobs.sql.types.data_types import DataType, RowField

SCENARIOS = Path(__file__).parents[2] / "scenarios"
INT, STRING = DataType("INT"), DataType("STRING")
CHANGELOG = {"connector": "kafka", "topic": "t", "format": "changelog-json"}
UPSERT = {"connector": "upsert-kafka", "topic": "t", "key.format": "json", "value.format": "json"}


def table(options: dict[str, str], *primary_key: str, more: tuple[TableColumn, ...] = ()) -> Table:
    return Table(
        "t",
        (TableColumn("id", INT), TableColumn("name", STRING), *more),
        table_options(options),
        primary_key,
    )


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


def problems(text: str) -> list[tuple[str, int]]:
    with pytest.raises(SqlErrors) as refused:
        bind_scenario(parse_scenario(text, "x", Path("x.scenario")))
    assert all(error.hint for error in refused.value.errors)
    return [(error.code, error.line) for error in refused.value.errors]


@pytest.mark.parametrize(
    "line", ["> a (1)", "> a +I 1", "< +X (1)", "advance 5 days", "> a +I (1", "lodaed a"]
)
def test_lines_that_mean_nothing_are_errors(line: str) -> None:
    found = problems(HEADER + f"> a +I (1)\n{line}\n")
    assert found == [("SCENARIO_SYNTAX", 6)]


@pytest.mark.parametrize("line", ["loaded", "loaded a b", "loaded -"])
def test_loaded_without_a_table_says_so(line: str) -> None:
    with pytest.raises(SqlErrors) as refused:
        parse_scenario(HEADER + f"> a +I (1)\n{line}\n", "x")
    assert [error.hint for error in refused.value.errors] == [
        "loaded needs the name of one table: loaded TABLE"
    ]


def test_values_that_cannot_be_read_are_errors() -> None:
    assert problems(HEADER + "> a +I (1)\n> a +I (1 2)\n< +I (abc)\n") == [
        ("SCENARIO_ROW", 6),
        ("SCENARIO_ROW", 7),
    ]


def test_the_header_has_keys_before_the_sql() -> None:
    text = "# who\nsql_fil: a.sql\nfails:\n\nSELECT 1;\nnote: 2\n> a +I (1)\n"
    assert problems(text) == [("SCENARIO_KEY", 2), ("SCENARIO_KEY", 3)]
    assert problems("sql_file: a.sql\nSELECT 1;\n> a +I (1)\n") == [("SCENARIO_SYNTAX", 2)]
    assert problems("< +I (1)\n> a +I (1)\n") == [("SCENARIO_EMPTY", 1), ("SCENARIO_SYNTAX", 1)]


def test_the_sql_may_stand_in_a_file_beside(tmp_path: Path) -> None:
    (tmp_path / "job.sql").write_text("SELECT 1;\n")
    file = tmp_path / "a.scenario"
    file.write_text("sql_file: job.sql\n> a +I (1)\n")
    found = read_scenario(file)
    assert (found.sql, found.sql_source) == ("SELECT 1;\n", str(tmp_path / "job.sql"))
    file.write_text("sql_file: no.sql\n> a +I (1)\n")
    with pytest.raises(ConfigError, match="cannot read"):
        read_scenario(file)


JOB = """CREATE TABLE a (id INT, name STRING, at TIMESTAMP(3)) WITH ('connector' = 'kafka',
  'topic' = 'a', 'properties.bootstrap.servers' = 'x:1', 'format' = 'json');
CREATE TABLE b (id INT, PRIMARY KEY (id) NOT ENFORCED) WITH ('connector' = 'upsert-kafka',
  'topic' = 'b', 'properties.bootstrap.servers' = 'x:1', 'key.format' = 'json',
  'value.format' = 'json');
INSERT INTO b SELECT id FROM a;
"""


@pytest.mark.parametrize(
    ("line", "code", "told"),
    [
        ("> aa +I (1, 'x', NULL)", "SCENARIO_TABLE", "no table aa"),
        ("> a -D (1, 'x', NULL)", "SCENARIO_ROW", "never -D"),
        ("> a +I (1, 'x')", "SCENARIO_ROW", "2 values for the 3 columns"),
        ("> a +I {idd: 1}", "SCENARIO_ROW", "no column idd"),
        ("> a +I ('1', 'x', NULL)", "SCENARIO_ROW", "id is INT, and '1' is not"),
        ("> a +I (2147483648, 'x', NULL)", "SCENARIO_ROW", "id is INT"),
        ("> a +I (1.0, 'x', NULL)", "SCENARIO_ROW", "id is INT"),
        ("> a +I (1, 5, NULL)", "SCENARIO_ROW", "name is STRING"),
        ("> a +I (1, 'x', 'noon')", "SCENARIO_ROW", "at is TIMESTAMP(3)"),
        ("> a raw ('k')", "SCENARIO_ROW", "(key, value)"),
        ("loaded c", "SCENARIO_TABLE", "no table c"),
        ("< a +I (1, 'x', NULL)", "SCENARIO_TABLE", "no sink a"),
        ("< -U (1)", "SCENARIO_ROW", "never -U"),
        ("< dead-letter a some-reason", "SCENARIO_TABLE", "'rejoin.dead-letter.topic'"),
    ],
)
def test_rows_that_no_table_has_are_errors(line: str, code: str, told: str) -> None:
    with pytest.raises(SqlErrors) as refused:
        bind_scenario(parse_scenario(f"{JOB}> a +I {{id: 1}}\n{line}\n", "x"))
    [error] = refused.value.errors
    assert (error.code, error.line, error.excerpt) == (code, 8, line)
    assert told in error.message
    assert error.hint


def test_a_row_has_to_say_which_of_two_sinks() -> None:
    second = JOB[JOB.index("CREATE TABLE b") :].replace(" b ", " c ")
    assert problems(f"{JOB}{second}> a +I {{id: 1}}\n< +I (1)\n") == [("SCENARIO_TABLE", 12)]


def test_avro_tables_are_json_in_a_scenario() -> None:
    avro = JOB.replace(
        "'format' = 'json');\nCREATE",
        "'format' = 'debezium-avro-confluent', 'debezium-avro-confluent.url' = 'http://x:1',"
        " 'rejoin.schema-id' = 'prefix');\nCREATE",
        1,
    )
    bound = bind_scenario(parse_scenario(avro + "> a +I {id: 1}\n", "x"))
    table = bound.tables["a"]
    assert table.value_format is not None
    assert table.value_format.name == "debezium-json"
    assert not [name for name in table.options.given if "avro" in name or "schema" in name]
    assert table.changelog == "retract"


def test_a_scenario_may_say_when_a_table_is_loaded() -> None:
    scenario = parse_scenario("SELECT;\n> a +I (1)\nloaded a\n< +I (1)\n", "s")
    assert [(s.command, s.table) for s in scenario.steps] == [(None, ""), ("loaded", "a")]
    assert scenario.says_loaded
    assert len(scenario.steps[1].expected) == 1


def test_refused_sql_needs_no_rows() -> None:
    assert parse_scenario("fails: SOME_CODE\nSELECT 1;\n", "x").fails == "SOME_CODE"
    assert problems("SELECT 1;\n") == [("SCENARIO_EMPTY", 1)]


@pytest.mark.parametrize("path", sorted(SCENARIOS.glob("*.scenario")), ids=lambda p: p.stem)
def test_all_files_can_be_read(path: Path) -> None:
    assert isinstance(read_scenario(path), Scenario)


def test_values() -> None:
    row = parse_row("(1, -2.50, 'it''s', NULL, true, x'00ff', ('a', (2)), ['b'], {'k': 3})")
    nested = ("a", (2,))
    assert row == (1, Decimal("-2.50"), "it's", None, True, b"\0\xff", nested, ["b"], {"k": 3})
    for wrong in ("1", "(1", "(1 2)", "(abc)", "(1) x", "{a 1}"):
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


@pytest.mark.parametrize(
    ("name", "value", "text"),
    [
        ("STRING", "it's", "'it''s'"),
        ("DECIMAL", Decimal("20.00"), "20"),
        ("BOOLEAN", False, "FALSE"),
        ("BYTES", b"\x00\xff", "x'00ff'"),
        ("TIMESTAMP", "2020-08-15 00:01:00", "'2020-08-15 00:01:00.000'"),
        ("INT", None, "NULL"),
    ],
)
def test_values_are_shown_as_they_are_written(name: str, value: Any, text: str) -> None:
    kind = DataType(name)
    assert literal_text(canonical(value, kind), kind) == text
    [again] = parse_row(f"({text})")
    assert canonical(again, kind) == canonical(value, kind)


@pytest.mark.parametrize(
    ("text", "fitting"),
    [
        ("99.99", True),
        ("-0.10", True),
        ("100", False),
        ("0.001", False),
        ("1e1", True),
        ("0", True),
    ],
)
def test_decimals_fit_their_digits(text: str, fitting: bool) -> None:
    [value] = parse_row(f"({text})")
    assert fits(value, DataType("DECIMAL", precision=4, scale=2)) is fitting


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
    at = TableColumn(
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
        "unexpected: +I (1, a)",
    ]
    options = {"connector": "kafka", "topic": "t", "format": "debezium-json"}
    assert net_difference(table(options), expected, actual) == []
    assert net_difference(table(options), expected, [*actual, *actual]) == ["unexpected: +I (1, a)"]


def test_differences_show_decimals_without_an_exponent() -> None:
    amount = canonical("100.00", DataType("DECIMAL", precision=10, scale=2))
    change = Change("+I", (amount, (amount, None)))
    assert net_difference(table(CHANGELOG), [change], []) == ["missing: +I (100, (100, NULL))"]


def test_upsert_differences_are_by_key() -> None:
    keyed = table(UPSERT, "id")
    actual = [Change("+U", (1, "a")), Change("+U", (1, "b"))]
    assert net_difference(keyed, [Change("+I", (1, "b"))], actual) == []
    deleted = net_difference(keyed, [Change("-D", (1, "b"))], actual)
    assert deleted == ["missing: -D (1, NULL)", "unexpected: +U (1, b)"]


def test_views_fold_and_notice_unknown_retractions() -> None:
    view = SinkView.of(table(CHANGELOG))
    view.apply([Change("+I", (1, "a")), Change("-U", (1, "a")), Change("+U", (1, "b"))])
    assert list(view.contents().elements()) == [(1, "b")]
    view.apply([Change("-D", (9, "z"))])
    assert view.problems == ["retracts a row that does not exist: -D (9, z)"]
    view = SinkView.of(table(UPSERT, "id"))
    view.apply([Change("+U", (1, "a")), Change("-D", (1, None)), Change("-D", (2, None))])
    assert not view.contents()
    assert view.problems == []
