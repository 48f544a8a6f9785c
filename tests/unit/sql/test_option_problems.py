"""Wrong options of tables: code and hint of every problem."""

import pytest

from spark_jobs.sql.bind.binder import bind
from tests.unit.sql.texts import TABLES, problems, script

TABLE_OPTIONS = [
    ("'connector' = 'kafk'", "OPTION_VALUE", "did you mean 'kafka'?"),
    ("'connector' = 'filesystem'", "UNSUPPORTED_OPTION", "Kafka topics"),
    ("'topi' = 'x'", "UNKNOWN_OPTION", "did you mean 'topic'?"),
    ("'scan.startup.mode' = 'earliest'", "OPTION_VALUE", "did you mean 'earliest-offset'?"),
    ("'scan.startup.mode' = 'timestamp'", "OPTION_MISSING", "scan.startup.timestamp-millis"),
    ("'scan.startup.timestamp-millis' = '1'", "OPTION_CONFLICT", "no effect"),
    ("'scan.bounded.mode' = 'specific-offsets'", "OPTION_MISSING", "scan.bounded.specific-offsets"),
    ("'scan.startup.specific-offsets' = 'x'", "OPTION_VALUE", "partition:0,offset:42"),
    ("'json.ignore-parse-error' = 'true'", "UNKNOWN_OPTION", "json.ignore-parse-errors"),
    ("'json.ignore-parse-errors' = 'yes'", "OPTION_VALUE", "true | false"),
    ("'value.format' = 'json'", "OPTION_CONFLICT", "same option"),
    ("'key.format' = 'json'", "OPTION_MISSING", "key.fields"),
    (
        "'key.format' = 'debezium-json'",
        "OPTION_VALUE",
        "json | json-registry | csv | avro | avro-confluent | protobuf | proto-registry | raw",
    ),
    ("'rejoin.schema-id' = 'apicurio-headers'", "OPTION_CONFLICT", "schema registry"),
    ("'rejoin.registry.timeout' = '1 min'", "OPTION_CONFLICT", "schema registry"),
    ("'rejoin.schema-id' = 'header'", "OPTION_VALUE", "apicurio-8-byte"),
    ("'key.fields' = 'a'", "OPTION_MISSING", "key.format"),
    ("'key.fields' = 'z'", "UNKNOWN_COLUMN", "not a physical column"),
    ("'key.fields-prefix' = 'k_'", "OPTION_CONFLICT", "EXCEPT_KEY"),
    ("'topic-pattern' = 'x.*'", "OPTION_CONFLICT", "both say which topics"),
    ("'topic-pattern' = 'x.*+'", "OPTION_VALUE", "look-around"),
    ("'topic-pattern' = '(?i)x'", "OPTION_VALUE", "flags"),
    ("'scan.topic-partition-discovery.interval' = '1 min'", "OPTION_CONFLICT", "every micro-batch"),
    ("'sink.partitioner' = 'fixed'", "OPTION_VALUE", "default"),
    ("'sink.delivery-guarantee' = 'exactly_once'", "OPTION_VALUE", "exactly-once"),
    ("'rejoin.on-error' = 'dead-letter'", "OPTION_MISSING", "rejoin.dead-letter.topic"),
    ("'properties.key.serializer' = 'x'", "UNSUPPORTED_OPTION", "key.format"),
    ("'topic' = ''", "OPTION_VALUE", "topic"),
    ("'topic' = 'again'", "OPTION_TWICE", None),
]


@pytest.mark.parametrize(
    ("option", "code", "says"), TABLE_OPTIONS, ids=[o[0] for o in TABLE_OPTIONS]
)
def test_option_problem(option: str, code: str, says: str | None) -> None:
    given_ = {"'connector'": "'kafka'", "'format'": "'json'", "'topic'": "'t'"}
    given_["'properties.bootstrap.servers'"] = "'x'"
    key, _, value = option.partition(" = ")
    if code != "OPTION_TWICE":
        given_[key] = value
    options = [f"{k} = {v}" for k, v in given_.items()]
    if code == "OPTION_TWICE":
        options.append(option)
    found = problems(f"CREATE TABLE t (a INT, b STRING) WITH ({', '.join(options)})")
    matching = [p for p in found if p.code == code]
    assert matching, [p.render() for p in found]
    if says is not None:
        assert any(says in p.render() for p in matching)


def test_missing_options_are_all_named() -> None:
    text = "CREATE TABLE t (a INT) WITH ('connector' = 'upsert-kafka')"
    found = [p for p in problems(text) if p.code == "OPTION_MISSING"]
    named = " ".join(p.message for p in found)
    for option in ("topic", "properties.bootstrap.servers", "key.format", "value.format"):
        assert f"'{option}'" in named
    assert any(p.code == "NO_PRIMARY_KEY" for p in problems(text))


def test_avro_needs_its_registry() -> None:
    text = script("CREATE TABLE t (a INT) <append>").replace("'json'", "'avro-confluent'")
    assert [p.message for p in problems(text)] == ["table t has no 'avro-confluent.url'"]


AVRO_OPTIONS = [
    ("avro", "avro.encoding", "json", "OPTION_VALUE", "expected binary"),
    ("avro", "avro.codec", "snappy", "UNKNOWN_OPTION", "avro.codec"),
    ("avro-confluent", "avro-confluent.properties", "x", "UNSUPPORTED_OPTION", "properties"),
    ("debezium-avro-confluent", "debezium-avro-confluent.schema-registry.url", "x",
     "UNSUPPORTED_OPTION", "use 'url'"),
]  # fmt: skip


@pytest.mark.parametrize(("format_", "option", "value", "code", "says"), AVRO_OPTIONS)
def test_avro_options(format_: str, option: str, value: str, code: str, says: str) -> None:
    given_ = {"connector": "kafka", "format": format_, "topic": "t", option: value}
    given_["properties.bootstrap.servers"] = "x"
    if format_ != "avro":
        given_[f"{format_}.url"] = "http://r"
    options = ", ".join(f"'{k}' = '{v}'" for k, v in given_.items())
    [problem] = problems(f"CREATE TABLE t (a INT) WITH ({options})")
    assert problem.code == code
    assert says in problem.render()


def test_upserts_hold_rows() -> None:
    text = script("CREATE TABLE t (a INT, PRIMARY KEY (a) NOT ENFORCED) <upsert>")
    wrong = text.replace("'value.format' = 'json'", "'value.format' = 'debezium-avro-confluent'")
    assert wrong != text
    assert "OPTION_VALUE" in [p.code for p in problems(wrong)]


def test_ids_are_written_in_one_form() -> None:
    """A sink cannot have ids where only readers find them."""
    text = """CREATE TABLE t (a INT) <append>;
CREATE TABLE s (a INT) WITH ('connector' = 'kafka', 'topic' = 's', 'format' = 'avro-confluent',
  'avro-confluent.url' = 'http://r', 'rejoin.schema-id' = 'apicurio-8-byte',
  'properties.bootstrap.servers' = 'x');
INSERT INTO s SELECT a FROM t"""
    found = problems(script(text))
    assert [p.code for p in found] == ["UNSUPPORTED_OPTION"]
    assert "Confluent's form" in found[0].render()


def test_raw_takes_one_column() -> None:
    text = script("CREATE TABLE t (a STRING, b STRING) <append>").replace("'json'", "'raw'")
    assert [p.code for p in problems(text)] == ["RAW_COLUMNS"]


@pytest.mark.parametrize("type_", ["DECIMAL(10, 2)", "DATE", "TIME", "TIMESTAMP(3)", "ARRAY<INT>"])
def test_raw_holds_no_other_types(type_: str) -> None:
    text = script(f"CREATE TABLE t (v {type_}) <append>").replace("'json'", "'raw'")
    [found] = problems(text)
    assert (found.code, found.line, found.column) == ("RAW_TYPE", 1, 17)
    assert "declare it as STRING" in found.render()


def test_raw_holds_no_other_types_in_keys() -> None:
    """Columns that stand in the value alone may have any type."""
    text = """CREATE TABLE t (k DECIMAL(4, 0), v DATE) WITH ('connector' = 'kafka', 'topic' = 't',
  'key.format' = 'raw', 'key.fields' = 'k', 'value.format' = 'json',
  'value.fields-include' = 'EXCEPT_KEY', 'properties.bootstrap.servers' = 'x')"""
    assert [(p.code, p.column) for p in problems(text)] == [("RAW_TYPE", 17)]


@pytest.mark.parametrize(
    "type_",
    ["MAP<STRING, INT>", "ARRAY<ARRAY<INT>>", "ROW<x ARRAY<INT>>", "ARRAY<ROW<x INT>>"],
)
def test_csv_holds_nothing_nested_twice(type_: str) -> None:
    text = script(f"CREATE TABLE t (v {type_}) <append>").replace("'json'", "'csv'")
    [found] = problems(text)
    assert (found.code, found.line, found.column) == ("CSV_TYPE", 1, 17)
    assert "an ARRAY or ROW of such" in found.render()


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ("'csv.field-delimiter' = 'ab'", "OPTION_VALUE"),
        ("'csv.field-delimiter' = ''", "OPTION_VALUE"),
        ("'csv.quote-character' = '\\t'", "OPTION_VALUE"),
        ("'csv.escape-character' = '\U0001d11e'", "OPTION_VALUE"),
        ("'csv.ignore-first-line' = 'true'", "UNKNOWN_OPTION"),
        (
            "'csv.quote-character' = '|', 'csv.disable-quote-character' = 'TRUE'",
            "OPTION_CONFLICT",
        ),
        ("'rejoin.debezium.unwrapped' = 'true'", "OPTION_CONFLICT"),
        ("'canal-json.table.include' = 't'", "UNKNOWN_OPTION"),
    ],
)
def test_options_of_csv(options: str, code: str) -> None:
    table = "CREATE TABLE t (v INT, PRIMARY KEY (v) NOT ENFORCED) <append>"
    text = script(table).replace("'json'", f"'csv', {options}")
    assert [p.code for p in problems(text)] == [code]


@pytest.mark.parametrize("pattern", ["a|(b", "*shop", "[a-z", "{a", "a{2", "a)", "\\", "(?y"])
def test_broken_expressions_of_canal(pattern: str) -> None:
    table = "CREATE TABLE t (v INT, PRIMARY KEY (v) NOT ENFORCED) <append>"
    options = f"'canal-json', 'canal-json.table.include' = '{pattern}'"
    assert [p.code for p in problems(script(table).replace("'json'", options))] == ["OPTION_VALUE"]


_SINK = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'b:1', "


@pytest.mark.parametrize(
    ("columns", "options", "code", "says"),
    [
        ("o BIGINT METADATA FROM 'offset'", "", "UNSUPPORTED_METADATA", "can be read, not written"),
        (
            "t TIMESTAMP(3) METADATA FROM 'timestamp', u BIGINT METADATA FROM 'timestamp'",
            "",
            "UNSUPPORTED_METADATA",
            "several columns",
        ),
        ("x INT", "'format' = 'json-registry', ", "OPTION_MISSING", "'json-registry.url'"),
        (
            "x INT",
            "'format' = 'proto-registry', 'proto-registry.descriptor-file' = 'f',"
            " 'proto-registry.message-name' = 'm',",
            "OPTION_MISSING",
            "where a sink registers its schema",
        ),
        ("x INT", "'topic-pattern' = 's.*', ", "SINK_TOPICS", "a sink has one topic"),
    ],
)
def test_what_a_sink_cannot_write(columns: str, options: str, code: str, says: str) -> None:
    topic = "" if "topic-pattern" in options else "'topic' = 's', "
    value = "" if "'format'" in options else "'format' = 'json', "
    given_ = f"{_SINK}{topic}{value}{options}".rstrip(", ")
    table = f"CREATE TABLE s (id INT, {columns}) WITH ({given_});"
    found = problems(script(TABLES, table, "INSERT INTO s (id) SELECT a1 FROM A;"))
    assert [(p.code, says in p.render()) for p in found] == [(code, True)]


def test_a_sink_takes_metadata_as_columns() -> None:
    table = (
        "CREATE TABLE s (id INT, t TIMESTAMP_LTZ(3) METADATA FROM 'timestamp',"
        " h MAP<STRING, BYTES> METADATA FROM 'headers', p INT METADATA FROM 'partition' VIRTUAL)"
        f" WITH ({_SINK} 'topic' = 's', 'format' = 'json');"
    )
    written = "INSERT INTO s SELECT a1, NULL, MAP['k', X'01'] FROM A;"
    job = bind(script(TABLES, table, written), "job.sql")
    assert len(job.inserts[0].fields) == 3
    found = problems(script(TABLES, table, "INSERT INTO s SELECT a1 FROM A;"))
    assert [p.code for p in found] == ["COLUMN_COUNT"]
