"""Wrong and unsupported job files: code, place and hint of every problem."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from spark_jobs.errors import PositionedError, SqlErrors
from spark_jobs.sql.bind.binder import bind, bind_query
from tests.unit.sql.texts import script

TABLES = script(
    "CREATE TABLE A (a1 INT, a2 BIGINT, a3 STRING, r ROW<x INT>, ts TIMESTAMP(3)) <append>;"
    "CREATE TABLE B (b1 INT, a2 BIGINT, m MAP<STRING, INT>) <append>;"
    "CREATE TABLE C (c1 INT NOT NULL, c2 STRING) <append>;\n"
)


def problems(text: str) -> list[PositionedError]:
    with pytest.raises(SqlErrors) as caught:
        bind(script(text), "job.sql")
    return list(caught.value.errors)


def query_problems(text: str) -> list[PositionedError]:
    with pytest.raises(SqlErrors) as caught:
        bind_query(TABLES + text, "job.sql")
    return list(caught.value.errors)


QUERIES = [
    ("SELECT a11 FROM A", "UNKNOWN_COLUMN", "a11", "did you mean 'a1'?"),
    ("SELECT X.a1 FROM A", "UNKNOWN_TABLE", "X.a1", "FROM has A"),
    ("SELECT a1 FROM AA", "UNKNOWN_TABLE", "AA", "did you mean 'A'?"),
    ("SELECT a2 FROM A JOIN B ON a1 = b1", "AMBIGUOUS_COLUMN", "a2", "write A.a2"),
    ("SELECT A.r.y FROM A", "UNKNOWN_FIELD", "y", None),
    ("SELECT A.a1.y FROM A", "NOT_A_ROW", "y", None),
    ("SELECT a1 = a3 FROM A", "INCOMPATIBLE_TYPES", "a1 = a3", "CAST one side"),
    ("SELECT m = m FROM B", "INCOMPATIBLE_TYPES", "m = m", None),
    ("SELECT a1 + a3 FROM A", "INCOMPATIBLE_TYPES", "a1 + a3", None),
    ("SELECT ts - ts FROM A", "INCOMPATIBLE_TYPES", "ts - ts", "TIMESTAMPDIFF"),
    ("SELECT ts = 'x' FROM A", "BAD_LITERAL", "ts = 'x'", None),
    ("SELECT CAST(a2 AS TIMESTAMP(3)) FROM A", "INCOMPATIBLE_TYPES", "a2 AS", "TO_TIMESTAMP_LTZ"),
    ("SELECT a1 || a3 FROM A", "INCOMPATIBLE_TYPES", "a1 ||", "CAST it to STRING"),
    ("SELECT a1 FROM A WHERE a1", "NOT_A_CONDITION", "a1\n", None),
    ("SELECT a1 FROM A JOIN B ON b1", "NOT_A_CONDITION", "b1", None),
    ("SELECT a1 FROM A LEFT JOIN B", "JOIN_WITHOUT_ON", "B", None),
    ("SELECT UPPR(a3) FROM A", "UNKNOWN_FUNCTION", "UPPR", "did you mean 'UPPER'?"),
    ("SELECT UPPER(a1) FROM A", "WRONG_ARGUMENT", "a1)", None),
    ("SELECT UPPER(a3, a3) FROM A", "WRONG_ARGUMENT", "UPPER", None),
    ("SELECT EXTRACT(WEEK FROM a3) FROM A", "WRONG_ARGUMENT", "a3", None),
    ("SELECT DATE '2020-13-01' FROM A", "BAD_LITERAL", "DATE", None),
    ("SELECT INTERVAL 'x' SECOND + ts FROM A", "BAD_LITERAL", "INTERVAL", None),
    ("SELECT CASE WHEN TRUE THEN 1 ELSE 'a' END FROM A", "INCOMPATIBLE_TYPES", "CASE", None),
    # refused by name
    ("SELECT COLLECT(a3) FROM A", "UNSUPPORTED_EXPRESSION", "COLLECT", "use one of COUNT, SUM"),
    ("SELECT a1 FROM A ORDER BY a1", "UNSUPPORTED_CLAUSE", "a1\n", "ORDER BY"),
    ("SELECT a1 FROM A LIMIT 0", "UNSUPPORTED_CLAUSE", "0", "at least one row"),
    ("SELECT a1 FROM A LIMIT 1 + 1", "UNSUPPORTED_CLAUSE", "1 + 1", "LIMIT 10"),
    ("SELECT a1 FROM A ORDER BY 2 LIMIT 5", "UNSUPPORTED_CLAUSE", "2", "name the column"),
    ("SELECT DISTINCT a1 FROM A ORDER BY a3 LIMIT 5", "UNSUPPORTED_CLAUSE", "a3", "of the result"),
    ("SELECT a1 FROM A OFFSET 5", "UNSUPPORTED_CLAUSE", "5", "add LIMIT"),
    ("SELECT x FROM UNNEST(ARRAY[1]) AS u (x)", "UNSUPPORTED_CLAUSE", "UNNEST", "behind a table"),
    (
        "SELECT a1 FROM A LEFT JOIN B ON EXISTS (SELECT 1 FROM B AS x WHERE x.b1 = A.a1)",
        "UNSUPPORTED_EXPRESSION",
        "EXISTS",
        "EXISTS",
    ),
    ("SELECT a1 FROM A LEFT SEMI JOIN B ON TRUE", "UNSUPPORTED_CLAUSE", "B ON", "LEFT SEMI JOIN"),
    ("SELECT SUM(a1) OVER (ORDER BY ts) FROM A", "UNSUPPORTED_EXPRESSION", "SUM", "OVER"),
    ("SELECT CURRENT_TIMESTAMP FROM A", "UNSUPPORTED_EXPRESSION", "CURRENT_TIMESTAMP", "METADATA"),
    ("SELECT CURRENT_WATERMARK(ts) FROM A", "UNSUPPORTED_EXPRESSION", "CURRENT_WATERMARK", ""),
    ("SELECT a1 FROM TABLE(TUMBLE(TABLE A))", "UNSUPPORTED_SYNTAX", "TABLE(", "TUMBLE"),
    ("SELECT a1 FROM A, LATERAL TABLE(f(a1)) AS t", "UNSUPPORTED_CLAUSE", "LATERAL", "F"),
    ("SELECT /*+ BROADCAST(A) */ a1 FROM A", "UNSUPPORTED_SYNTAX", "BROADCAST", "hint"),
    ("SELECT a1 FROM A /*+ OPTIONS('a' = 'b') */", "UNSUPPORTED_SYNTAX", "/*+ OPT", "hint"),
    ("WITH RECURSIVE w AS (SELECT a1 FROM A) SELECT * FROM w", "UNSUPPORTED_CLAUSE", "w AS", ""),
    (
        "WITH w AS (SELECT a1 FROM A), w AS (SELECT a1 FROM A) SELECT * FROM w",
        "TABLE_TWICE",
        "w AS (SELECT a1 FROM A) S",
        None,
    ),
    ("SELECT *", "UNSUPPORTED_CLAUSE", "", "without FROM"),
    ("SELECT x FROM (VALUES (1, 2), (3)) AS t (x, y)", "COLUMN_COUNT", "3)", "2 values"),
    ("SELECT x FROM (VALUES (1), (TRUE)) AS t (x)", "INCOMPATIBLE_TYPES", "1)", "INT NOT NULL"),
    ("SELECT x FROM (VALUES (a1)) AS t (x)", "UNKNOWN_COLUMN", "a1)", None),
    ("SELECT a1 FROM A RIGHT JOIN LATERAL (SELECT 1) ON TRUE", "UNSUPPORTED_CLAUSE", "LAT", "LEFT"),
    (
        "SELECT a1 FROM A LEFT JOIN LATERAL (SELECT b1 FROM B) AS v ON v.b1 = a1",
        "UNSUPPORTED_CLAUSE",
        "LATERAL",
        "write ON TRUE",
    ),
    (
        "SELECT a1 FROM A, LATERAL (SELECT b1 FROM B WHERE B.b1 < A.a1 ORDER BY b1 LIMIT 1) AS v",
        "UNSUPPORTED_EXPRESSION",
        "",
        "only by =",
    ),
    ("SELECT v.x FROM A, LATERAL (SELECT b1 FROM B) AS v (x, y)", "COLUMN_COUNT", "x, y", None),
    ("SHOW TABLES", "UNSUPPORTED_SYNTAX", "SHOW", "SHOW"),
    ("SELECT CAST(a3 AS ROW<x CHAR(3)>) FROM A", "UNSUPPORTED_EXPRESSION", "a3 AS", "length out"),
    ("SELECT CAST(a3 AS BINARY(3)) FROM A", "UNSUPPORTED_EXPRESSION", "a3 AS", "use BYTES"),
    ("SELECT a1 FROM x.A", "UNSUPPORTED_CLAUSE", "x.A", "name alone"),
    # syntax
    ("SELEC a1 FROM A", "SQL_SYNTAX", "SELEC", "did you mean 'SELECT'?"),
    ("SELECT a1 + FROM A", "SQL_SYNTAX", "FROM A", None),
    ("SELECT CAST( AS INT) FROM A", "SQL_SYNTAX", "AS INT", None),
    ("SELECT a1 & 1 FROM A", "SQL_SYNTAX", "& 1", None),
    ('SELECT "a1" FROM A', "SQL_SYNTAX", '"a1', "backticks"),
    ("SELECT a1 FROM A WHERE a3 = 'x", "SQL_SYNTAX", "'x", "close the quote"),
    ("SELECT a1 FROM A /* open", "SQL_SYNTAX", "/* open", "close the comment"),
    ("SELECT a1 FROM A JOIN", "SQL_SYNTAX", "", None),
    ("SELECT (a1 FROM A", "SQL_SYNTAX", "FROM", None),
]


@pytest.mark.parametrize(("text", "code", "at", "hint"), QUERIES, ids=[q[0] for q in QUERIES])
def test_query_problem(text: str, code: str, at: str, hint: str | None) -> None:
    text += "\n"
    (problem,) = query_problems(text)
    assert problem.code == code, problem.render()
    if at:
        lines = (TABLES + text).splitlines(keepends=True)
        assert lines[problem.line - 1][problem.column - 1 :].startswith(at), problem.render()
    if hint:
        assert hint in problem.render()
    assert problem.render().startswith("job.sql:2:")


DEFINITIONS = [
    ("CREATE TABLE t (a INT)", "OPTION_MISSING", "t (", "'connector' = 'kafka'"),
    ("CREATE TABLE t (a INT, a INT) <append>", "COLUMN_TWICE", "a INT)", None),
    ("CREATE TABLE t (a INT, b AS c) <append>", "UNKNOWN_COLUMN", "c)", None),
    ("CREATE TABLE t (a INT, PRIMARY KEY (b) NOT ENFORCED) <append>", "UNKNOWN_COLUMN", "b)", None),
    ("CREATE TABLE t (a INT, PRIMARY KEY (a)) <append>", "SQL_SYNTAX", "PRIMARY", "NOT ENFORCED"),
    (
        "CREATE TABLE t (a INT, b AS a + 1, PRIMARY KEY (b) NOT ENFORCED) <append>",
        "KEY_NOT_PHYSICAL",
        "b) NOT",
        None,
    ),
    (
        "CREATE TABLE t (a INT PRIMARY KEY NOT ENFORCED, PRIMARY KEY (a) NOT ENFORCED) <append>",
        "KEY_TWICE",
        "PRIMARY KEY (a)",
        None,
    ),
    (
        "CREATE TABLE t (a INT, WATERMARK FOR a AS a) <append>",
        "ROWTIME_TYPE",
        "a AS",
        "TIMESTAMP(3)",
    ),
    (
        "CREATE TABLE t (a TIMESTAMP(6), WATERMARK FOR a AS a) <append>",
        "ROWTIME_TYPE",
        "a AS",
        None,
    ),
    (
        "CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR b AS a) <append>",
        "UNKNOWN_COLUMN",
        "b AS",
        None,
    ),
    (
        "CREATE TABLE t (a TIMESTAMP(3), WATERMARK FOR a AS 1) <append>",
        "WATERMARK_TYPE",
        "1)",
        None,
    ),
    (
        "CREATE TABLE t (a INT METADATA FROM 'offst') <append>",
        "UNKNOWN_METADATA",
        "'offst'",
        "offset",
    ),
    ("CREATE TABLE t (a INT METADATA FROM 'offset') <append>", "METADATA_TYPE", "a INT", "BIGINT"),
    (
        "CREATE TABLE t (a INT METADATA FROM 'leader-epoch', b INT) <append>",
        "UNSUPPORTED_METADATA",
        "'leader",
        None,
    ),
    ("CREATE TABLE t (a TIMESTAMP(9)) <append>", "UNSUPPORTED_SYNTAX", "TIMESTAMP(9)", "precision"),
    ("CREATE TABLE t (a CHAR(0)) <append>", "SQL_SYNTAX", "CHAR(0)", "a length is 1 to"),
    ("CREATE TABLE t (a INT) <append> AS SELECT 1", "UNSUPPORTED_SYNTAX", "AS SELECT", None),
    (
        "CREATE TABLE t (a INT) PARTITIONED BY (a) <append>",
        "UNSUPPORTED_SYNTAX",
        "PARTITIONED",
        None,
    ),
    ("CREATE TABLE A (a INT) <append>", "TABLE_TWICE", "A (", None),
    ("CREATE FUNCTION f AS 'x'", "UNSUPPORTED_SYNTAX", "'x'", "LANGUAGE PYTHON"),
    (
        "SET 'rejoin.checkpont' = 'x'",
        "UNKNOWN_SETTING",
        "'rejoin",
        "did you mean 'rejoin.checkpoint'?",
    ),
    ("SET 'rejoin.key-groups' = '0'", "SETTING_VALUE", "'0'", None),
    ("SET 'rejoin.mode' = 'continuous'", "SETTING_VALUE", "'con", None),
    ("SET 'table.local-time-zone' = 'Mars'", "SETTING_VALUE", "'Mars'", None),
    ("SET table.local-time-zone=Mars", "SETTING_VALUE", "Mars", None),
    ("SET 'execution.checkpointing.dir' = '/c'", "UNSUPPORTED_SETTING", "'exec", None),
    ("SET 'execution.runtime-mode' = 'batch'", "UNSUPPORTED_SETTING", "'batch'", None),
    ("SET 'table.exec.state.ttl' = 'long'", "SETTING_VALUE", "'long'", "such as '10 s'"),
    (
        "SET 'spark.speculation' = 'true'",
        "SPARK_PROPERTY_REFUSED",
        "'spark.speculation'",
        None,
    ),
    ("SET 'spark.master' = 'local[4]'", "SPARK_PROPERTY_REFUSED", "'spark.master'", None),
    (
        "SET 'spark.hadoop.fs.s3a.secret.key' = 'abc'",
        "SPARK_PROPERTY_REFUSED",
        "'spark.hadoop",
        None,
    ),
    (
        "INSERT INTO C SELECT a1 FROM A",
        "COLUMN_COUNT",
        "a1 FROM",
        "sink: [c1 INT NOT NULL, c2 STRING]",
    ),
    ("INSERT INTO C SELECT a3, a3 FROM A", "INCOMPATIBLE_TYPES", "a3, a3", "CAST it"),
    ("INSERT INTO C (c2) SELECT a3 FROM A", "NOT_NULL", "C (", None),
    ("INSERT INTO C (c3, c1) SELECT a3, a1 FROM A", "UNKNOWN_COLUMN", "c3", None),
    ("INSERT INTO D SELECT a1 FROM A", "UNKNOWN_TABLE", "D ", None),
    ("INSERT OVERWRITE C SELECT a1, a3 FROM A", "UNSUPPORTED_SYNTAX", "INSERT", None),
    ("CREATE VIEW v (x) AS SELECT a1, a2 FROM A", "COLUMN_COUNT", "x)", None),
    ("SELECT a1 FROM A", "SELECT_WITHOUT_SINK", "SELECT", "INSERT INTO"),
]


@pytest.mark.parametrize(
    ("text", "code", "at", "hint"), DEFINITIONS, ids=[d[0][:70] for d in DEFINITIONS]
)
def test_statement_problem(text: str, code: str, at: str, hint: str | None) -> None:
    found = [p for p in problems(TABLES + text + ";") if p.code == code]
    assert len(found) == 1, [p.render() for p in problems(TABLES + text + ";")]
    (problem,) = found
    assert script(text)[problem.column - 1 :].startswith(at), problem.render()
    if hint is not None:
        assert hint in problem.render()


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


def test_all_problems_of_a_file_at_once() -> None:
    text = """CREATE TABLE t (a INT, a INT, b MULTISET<INT>) <append>;
CREATE TABLE u (a INT) WITH ('conector' = 'kafka');
SET 'x' = 'y';
INSERT INTO u SELECT x, COUNT(a) FROM t WHERE a;
INSERT INTO w SELECT a1, zz, yy FROM A GROUP BY a1;
"""
    found = problems(TABLES.strip() + "\n" + text)
    assert [(p.code, p.line) for p in found] == [
        ("UNSUPPORTED_SYNTAX", 2),
        ("OPTION_MISSING", 3),
        ("UNKNOWN_SETTING", 4),
        ("UNKNOWN_TABLE", 6),
        ("UNKNOWN_COLUMN", 6),
        ("UNKNOWN_COLUMN", 6),
    ]


TEXT = """
    SELECT FROM WHERE JOIN LEFT ON AS AND OR NOT IN IS NULL CASE WHEN THEN END CAST INSERT
    INTO CREATE TABLE VIEW SET WITH PRIMARY KEY ENFORCED WATERMARK FOR SYSTEM_TIME OF INTERVAL
    SECOND TIMESTAMP ROW ARRAY MAP STRING INT A B C a1 b1 m r ts ( ) [ ] , . ; = <> < > + - * / %
    || ' ` " 1 2.5 'x' x.y /*+ */ -- EXECUTE BEGIN UNION ALL EXISTS ANY GROUP BY HAVING DISTINCT
    COUNT(*) SUM(a1) FILTER ROW_NUMBER() OVER PARTITION ORDER LATERAL TABLE( SNAPSHOT( input =>
    TEMPORAL FUNCTION TIME ATTRIBUTE CONFLICT DO NOTHING (SELECT F(ts) F STATE_TTL('A'='1d')"""
WORDS = st.sampled_from([*TEXT.split(), "\n"])


@settings(max_examples=200, deadline=None)
@given(st.lists(WORDS, max_size=25))
def test_nonsense_is_a_clean_error(words: list[str]) -> None:
    assert is_clean(TABLES + " ".join(words))


INSERT = """INSERT INTO C
SELECT A.a1, CAST(B.b1 AS STRING) || CASE WHEN m['a'] > 1 THEN 'x' ELSE '' END
FROM A LEFT JOIN B ON A.a1 = B.b1 AND A.ts BETWEEN A.ts - INTERVAL '1' DAY AND A.ts
WHERE a3 LIKE 'x%' AND r.x NOT IN (1, 2) OR SUBSTRING(a3 FROM 2) IS NOT DISTINCT FROM NULL;"""
JOINS = """CREATE TABLE W (a1 INT, a3 STRING, ts TIMESTAMP(3), WATERMARK FOR ts AS ts) <append>;
CREATE TEMPORAL TABLE FUNCTION F FOR W TIME ATTRIBUTE ts PRIMARY KEY (a1);
INSERT INTO C
SELECT /*+ STATE_TTL('x' = '1d', 'B' = '2h') */
  CAST(COUNT(x.a1) FILTER (WHERE b1 > 1) AS INT), MAX(a3)
FROM W AS x JOIN (B JOIN C ON b1 = c1) ON x.a1 = c1, LATERAL TABLE (F(x.ts)) AS f (p, q, r)
WHERE NOT (x.a1 IN (SELECT c1 FROM C AS d WHERE d.c2 = x.a3) OR NOT EXISTS (SELECT 1 FROM B AS e))
AND (SELECT COUNT(*) FROM C AS g WHERE g.c1 = b1) > 0 GROUP BY a3, x.a1 HAVING SUM(b1) > 2
UNION ALL SELECT DISTINCT CAST(rn AS INT), y.a3 FROM (
SELECT *, ROW_NUMBER() OVER (PARTITION BY a1 + 1 ORDER BY ts DESC) AS rn FROM W ) AS y
JOIN LATERAL TABLE(SNAPSHOT(input => TABLE W, state_ttl => INTERVAL '1' DAY)) AS z ON z.a1 = y.a1
ON CONFLICT DO NOTHING;"""
PIECES = script(TABLES, INSERT, JOINS).split(" ")


def is_clean(text: str) -> bool:
    """Whether a text is a job or a list of problems; any other exception is a defect."""
    try:
        bind(text)
    except SqlErrors as problem:
        return bool(problem.render())
    return True


def test_the_job_that_is_broken_below_is_whole() -> None:
    assert len(bind(" ".join(PIECES)).inserts) == 2


@pytest.mark.service
@settings(max_examples=200, deadline=None)
@given(st.data())
def test_a_broken_job_is_a_clean_error(data: st.DataObject) -> None:
    pieces = list(PIECES)
    for _ in range(data.draw(st.integers(1, 3))):
        at = data.draw(st.integers(0, len(pieces) - 1))
        pieces[at : at + 1] = data.draw(st.lists(WORDS, max_size=2))
    assert is_clean(" ".join(pieces))


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
        ("x INT", "'format' = 'json-registry', ", "UNSUPPORTED_OPTION", "json-registry"),
        (
            "x INT",
            "'format' = 'protobuf', 'protobuf.descriptor-file' = 'f',"
            " 'protobuf.message-name' = 'm',",
            "UNSUPPORTED_OPTION",
            "protobuf",
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
