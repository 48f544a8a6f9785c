"""Lookup joins against a real MariaDB: its types, its collations, outages, what is refused."""

from collections.abc import Iterator
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import ConfigError
from tests.harness.lookups import CUSTOMERS, NAMES, Finding, Stage, lookup_codes, wait_until
from tests.harness.mariadb import GUEST, USER, MariaDb, server
from tests.streaming.test_lookup import rows

pytestmark = [
    pytest.mark.service,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        server() is None, reason="MariaDB is not installed (Debian: mariadb-server)"
    ),
]


@pytest.fixture(scope="module")
def mariadb() -> Iterator[MariaDb]:
    """Not below pytest's own folder, which the server's user may not enter."""
    found = server()
    assert found is not None
    with TemporaryDirectory(prefix="rejoin-lookup-") as folder:
        Path(folder).chmod(0o755)
        database = MariaDb(Path(folder) / "mariadb", found)
        try:
            database.start()
            yield database
        finally:
            database.stop()


@pytest.fixture
def stage(spark: SparkSession, broker: Broker, mariadb: MariaDb, tmp_path: Path) -> Stage:
    return Stage(spark, broker, mariadb, tmp_path)


def reads(mariadb: MariaDb, table: str, user: str = USER) -> str:
    """The options of a table in the database."""
    return (
        f"'table-name' = '{table}', 'username' = '{user}',"
        f" 'password' = '${{file:{mariadb.password_file}}}'"
    )


TYPES = {
    "flag": ("tinyint(1)", "BOOLEAN", "1", True),
    "bit1": ("bit(1)", "BOOLEAN", "b'0'", False),
    "tiny": ("tinyint", "TINYINT", "-128", -128),
    "tinyu": ("tinyint unsigned", "SMALLINT", "255", 255),
    "small": ("smallint", "SMALLINT", "-32768", -32768),
    "smallu": ("smallint unsigned", "INT", "65535", 65535),
    "medium": ("mediumint", "INT", "-8388608", -8388608),
    "mediumu": ("mediumint unsigned", "INT", "16777215", 16777215),
    "plain": ("int", "INT", "-2147483648", -2147483648),
    "plainu": ("int unsigned", "BIGINT", "4294967295", 4294967295),
    "big": ("bigint", "BIGINT", "-9223372036854775808", -9223372036854775808),
    "bigu": ("bigint unsigned", "DECIMAL(20, 0)", "18446744073709551615", 18446744073709551615),
    "price": ("decimal(12, 4)", "DECIMAL(10, 2)", "12345678.9050", 12345678.91),
    "real4": ("float", "FLOAT", "16777215", 16777215.0),
    "real8": ("double", "DOUBLE", "0.1", 0.1),
    "since": ("date", "DATE", "'2024-02-29'", "2024-02-29"),
    "open_at": ("time(3)", "TIME(3)", "'23:59:59.123'", "23:59:59.123"),
    "seen": ("datetime(6)", "TIMESTAMP(6)", "'2024-01-01 10:00:00.123456'", None),
    "wall": ("datetime", "TIMESTAMP(3)", "'9999-12-31 23:59:59'", None),
    "changed": ("timestamp(3) NULL", "TIMESTAMP_LTZ(3)", "'2024-01-01 15:30:00.5'", None),
    "local": ("timestamp NULL", "TIMESTAMP(0)", "'2024-01-01 15:30:00'", None),
    "fixed": ("char(5)", "STRING", "'ab'", "ab"),
    "name": ("varchar(20)", "STRING", "'Zoë 🐘'", "Zoë 🐘"),
    "latin": ("varchar(20) CHARACTER SET latin1", "STRING", "'Zoë'", "Zoë"),
    "body": ("mediumtext", "STRING", "'long'", "long"),
    "mood": ("enum('sad', 'happy')", "STRING", "'happy'", "happy"),
    "tags": ("set('a', 'b')", "STRING", "'a,b'", "a,b"),
    "doc": ("json", "STRING", """'{"a": 1}'""", '{"a": 1}'),
    "ident": ("uuid", "STRING", "'00000000-0000-0000-0000-00000000000a'", None),
    "bytes1": ("varbinary(4)", "BYTES", "x'00ff'", "AP8="),
    "bytes2": ("blob", "BYTES", "x'80'", "gA=="),
}
TEXTS = {
    "seen": "2024-01-01 10:00:00.123456",
    "wall": "9999-12-31 23:59:59.000",
    "changed": "2024-01-01 19:00:00.500",
    "local": "2024-01-01 19:00:00",
    "ident": "00000000-0000-0000-0000-00000000000a",
}


def test_every_type_is_read_as_it_is_declared(stage: Stage, mariadb: MariaDb) -> None:
    """The server's zone is +05:30, the job's +09:00."""
    stored = ", ".join(f"{name} {kind}" for name, (kind, *_) in TYPES.items())
    values = ", ".join(literal for _, _, literal, _ in TYPES.values())
    stage.execute(
        f"CREATE TABLE everything (id int PRIMARY KEY, {stored})",
        f"INSERT INTO everything VALUES (1, {values})",  # noqa: S608
        "INSERT INTO everything (id) VALUES (2)",
    )
    declared = ", ".join(f"{name} {kind}" for name, (_, kind, *_) in TYPES.items())
    shown = {name: f"CAST({name} AS STRING)" if name in TEXTS else name for name in TYPES}
    out = ", ".join(
        f"{name} {'STRING' if name in TEXTS else kind}" for name, (_, kind, *_) in TYPES.items()
    )
    sql = stage.sql(
        "id INT, c INT",
        f"id INT, {declared}",
        reads(mariadb, "everything"),
        f"id INT, {out}",
        f"SELECT o.id, {', '.join(f'{text}' for text in shown.values())}"  # noqa: S608
        " FROM o JOIN d FOR SYSTEM_TIME AS OF o.t AS d ON o.c = d.id",
    ).replace("jdbc:mariadb:", "jdbc:mysql:")
    stage.feed({"id": 1, "c": 1}, {"id": 2, "c": 2})
    with stage.running(f"SET 'table.local-time-zone' = 'Asia/Tokyo';{sql}") as life:
        found = stage.wait(life, lambda found: len(found) >= 2)
    first, second = rows(found)
    expected = [TEXTS.get(name, value) for name, (*_, value) in TYPES.items()]
    assert dict(zip(TYPES, first[2:], strict=True)) == dict(zip(TYPES, expected, strict=True))
    assert second == ("+I", 2, *[None] * len(TYPES))


NO_KEYS = {
    "price",
    "real4",
    "real8",
    "open_at",
    "local",
    "tags",
    "doc",
    "ident",
    "bytes1",
    "bytes2",
}
KEYS = tuple(name for name in TYPES if name not in NO_KEYS)


def _other(declared: str, value: object) -> object:
    """Another value of the type."""
    match declared.partition("(")[0]:
        case "STRING":
            return "sad"
        case "BOOLEAN":
            return not value
        case "DATE":
            return "2024-02-28"
        case "TIMESTAMP":
            return "2024-01-01 10:00:01"
        case "TIMESTAMP_LTZ":
            return "2024-01-01 10:00:01Z"
        case _:
            return 7


def test_rows_are_looked_up_by_every_type(stage: Stage, mariadb: MariaDb) -> None:
    """One key of all types meets its row; a key that differs in one of them meets none."""
    stored = ", ".join(f"{name} {TYPES[name][0]}" for name in KEYS)
    values = ", ".join(TYPES[name][2] for name in KEYS)
    stage.execute(
        f"CREATE TABLE keyed_by (d decimal(12, 4), {stored}, label text)",
        f"INSERT INTO keyed_by VALUES (1.5, {values}, 'met')",  # noqa: S608
    )
    kinds = ", ".join(f"{name} {TYPES[name][1]}" for name in KEYS)
    equal = " AND ".join(f"o.{name} = d.{name}" for name in ("d", *KEYS))
    sql = stage.sql(
        f"id INT, d DECIMAL(10, 2), {kinds}",
        f"d DECIMAL(10, 2), {kinds}, label STRING",
        reads(mariadb, "shop.keyed_by"),
        "id INT, label STRING",
        f"SELECT o.id, d.label FROM o LEFT JOIN d FOR SYSTEM_TIME AS OF o.t AS d ON {equal}",  # noqa: S608
    )
    times = {**TEXTS, "changed": "2024-01-01 10:00:00.5Z"}
    key = {name: times.get(name, TYPES[name][3]) for name in KEYS} | {"d": 1.5}
    others = [{**key, name: _other(TYPES[name][1], key[name])} for name in KEYS]
    stage.feed({"id": 1, **key}, *({"id": 2 + i, **other} for i, other in enumerate(others)))
    with stage.running(sql) as life:
        found = stage.wait(life, lambda found: len(found) > len(KEYS))
    assert rows(found) == rows([("+I", 1, "met"), *(("+I", 2 + i, None) for i in range(len(KEYS)))])


def test_the_collation_decides_which_texts_are_equal(stage: Stage, mariadb: MariaDb) -> None:
    stage.execute(
        "CREATE TABLE folded (k varchar(20) COLLATE utf8mb4_general_ci, l varchar(20)"
        " CHARACTER SET latin1, b varchar(20) COLLATE utf8mb4_bin, label text)",
        "INSERT INTO folded VALUES ('Abc', '?', 'x', 'ci'), ('ABC', 'É', 'x', 'upper'),"
        " ('nul\\0', 'x', 'x', 'nul'), ('q', 'x', 'X', 'bin')",
    )
    sql = stage.sql(
        "id INT, k STRING, l STRING, b STRING",
        "k STRING, l STRING, b STRING, label STRING",
        reads(mariadb, "folded"),
        "id INT, k STRING, label STRING",
        "SELECT o.id, d.k, d.label FROM o LEFT JOIN d FOR SYSTEM_TIME AS OF o.t AS d"
        " ON o.k = d.k AND o.l = d.l AND o.b = d.b",
    )
    stage.feed(
        {"id": 1, "k": "abc", "l": "?", "b": "x"},
        {"id": 2, "k": "aBC ", "l": "é", "b": "x"},  # latin1_swedish_ci folds É
        {"id": 3, "k": "abc", "l": "語", "b": "x"},  # which latin1 would have as '?'
        {"id": 4, "k": "NUL\0", "l": "X", "b": "x"},
        {"id": 5, "k": "nul", "l": "x", "b": "x"},
        {"id": 6, "k": "q", "l": "x", "b": "x"},
        {"id": 7, "k": '"],[\\', "l": "x", "b": "x"},
    )
    with stage.running(sql) as life:
        found = stage.wait(life, lambda found: len(found) >= 7)
    assert rows(found) == [
        ("+I", 1, "Abc", "ci"),
        ("+I", 2, "ABC", "upper"),
        ("+I", 3, None, None),
        ("+I", 4, "nul\0", "nul"),
        ("+I", 5, None, None),
        ("+I", 6, None, None),
        ("+I", 7, None, None),
    ]


def test_few_queries_and_an_index_answer_an_epoch_and_a_crash_loses_nothing(
    stage: Stage, mariadb: MariaDb
) -> None:
    stage.execute(
        "CREATE TABLE numbers (id int PRIMARY KEY, name text)",
        "INSERT INTO numbers SELECT seq, CONCAT('n', seq) FROM seq_0_to_49999",
        "ANALYZE TABLE numbers",
    )
    options = f"{reads(mariadb, 'numbers')}, 'lookup.max-retries' = '1'"
    sql = stage.sql("id INT, c INT", CUSTOMERS, options, "id INT, name STRING", NAMES)
    before = {name: mariadb.count(name) for name in ("Com_stmt_execute", "Handler_read_rnd_next")}
    stage.feed_at_once(*({"id": i, "c": i} for i in range(3_000)))
    with stage.running(sql) as life:
        stage.wait(life, lambda found: len(found) == 3_000)
        # one of each is that of the look at the start; each query reads its list of keys once
        assert mariadb.count("Com_stmt_execute") - before["Com_stmt_execute"] <= 2 + 3
        assert mariadb.count("Handler_read_rnd_next") - before["Handler_read_rnd_next"] < 10_000
        mariadb.kill()
        try:
            stage.feed(*({"id": i, "c": i} for i in range(3_000, 3_200)))
            wait_until(lambda: _restarts(life) > 0)  # the epoch fails, and is repeated
        finally:
            mariadb.resume()
        found = stage.wait(life, lambda found: len(found) >= 3_200)
    assert rows(found) == rows([("+I", i, f"n{i}") for i in range(3_200)])


def test_a_job_that_stops_takes_its_queries_back(stage: Stage, mariadb: MariaDb) -> None:
    stage.execute(
        "CREATE TABLE held (id int PRIMARY KEY, name text)", "INSERT INTO held VALUES (1, 'Bob')"
    )
    sql = stage.sql(
        "id INT, c INT", CUSTOMERS, reads(mariadb, "held"), "id INT, name STRING", NAMES
    )
    stage.feed({"id": 1, "c": 1})
    with stage.running(sql) as life:
        stage.wait(life, bool)
        with mariadb.locked("held"):
            stage.feed({"id": 2, "c": 1})
            wait_until(lambda: mariadb.waiting() == 1)
            assert life.query is not None
            life.query.stop()
            wait_until(lambda: mariadb.waiting() == 0)
    assert stage.results() == [("+I", 1, "Bob")]
    with stage.running(sql) as life:
        found = stage.wait(life, lambda found: len(found) >= 2)
    assert rows(found) == [("+I", 1, "Bob"), ("+I", 2, "Bob")]


def _restarts(life: Any) -> int:
    life.poll()
    return int(life.restarts.total)


@pytest.mark.parametrize(
    ("stored", "value", "declared", "says"),
    [
        ("date", "'0000-00-00'", "DATE", "Text '0000-00-00' could not be parsed"),
        ("datetime", "'0000-00-00'", "TIMESTAMP(3)", "Text '0000-00-00 00:00:00' could not"),
        ("time", "'-01:00:00'", "TIME(0)", "Text '-01:00:00' could not be parsed"),
        ("int", "NULL", "INT NOT NULL", "NULL, but it is declared NOT NULL"),
    ],
)
def test_what_does_not_fit_fails_and_is_never_null(
    stage: Stage, mariadb: MariaDb, stored: str, value: str, declared: str, says: str
) -> None:
    stage.execute(
        f"CREATE OR REPLACE TABLE odd (id int, v {stored})",
        f"INSERT INTO odd VALUES (1, {value})",  # noqa: S608
    )
    sql = stage.sql(
        "id INT, c INT",
        f"id INT, v {declared}",
        reads(mariadb, "odd"),
        "id INT, v STRING",
        NAMES.replace("d.name", "CAST(d.v AS STRING)"),
    )
    stage.feed({"id": 1, "c": 1})
    with stage.running(sql) as life, pytest.raises(ConfigError, match="LOOKUP_VALUE") as failed:
        stage.wait(life, bool)
    assert says in failed.value.message
    assert stage.results() == []


@pytest.mark.parametrize(
    ("table", "columns", "options", "says"),
    [
        ("none", CUSTOMERS, "", "Table 'shop.none' doesn't exist"),
        ("declared", "id INT, title STRING", "", "no column title; it has id, name"),
        ("declared", "id INT, name INT", "", "column name is text in the database, but declared"),
        ("wide", CUSTOMERS, "", "column id is int(10) unsigned in the database, but declared INT"),
        ("declared", CUSTOMERS, f"'username' = '{GUEST}'", "SELECT command denied to user 'guest'"),
        ("declared", CUSTOMERS, "'password' = '${env:HOME}'", "Access denied for user 'rejoin'"),
        ("declared", CUSTOMERS, "'driver' = 'com.mysql.cj.jdbc.Driver'", "there is no JDBC driver"),
    ],
)
def test_a_table_that_is_not_as_declared_is_refused_at_the_start(
    stage: Stage, mariadb: MariaDb, table: str, columns: str, options: str, says: str
) -> None:
    stage.execute(
        "CREATE TABLE IF NOT EXISTS declared (id int, name text)",
        "CREATE TABLE IF NOT EXISTS wide (id int unsigned, name text)",
        f"GRANT USAGE ON *.* TO {GUEST}",
        f"GRANT SELECT ON shop.wide TO {GUEST}",
    )
    given = reads(mariadb, table)
    name = options.partition(" = ")[0]
    kept = [
        option for option in given.split(", ") if not (name and option.strip().startswith(name))
    ]
    title = "title" if "title" in columns else "name"
    sql = stage.sql(
        "id INT, c INT",
        columns,
        ", ".join([*kept, *([options] if options else [])]),
        "id INT, name STRING",
        NAMES.replace("d.name", f"CAST(d.{title} AS STRING)"),
    )
    with pytest.raises(ConfigError, match="LOOKUP_REFUSED") as refused, stage.running(sql) as life:
        life.poll()
    assert says in refused.value.message
    wait_until(lambda: mariadb.sessions(GUEST) == 0)


@pytest.mark.parametrize("stored", ["set('x')", "uuid"])
def test_texts_that_no_key_is_compared_with(stage: Stage, mariadb: MariaDb, stored: str) -> None:
    stage.execute(f"CREATE OR REPLACE TABLE unkeyed (id {stored}, name text)")
    sql = stage.sql(
        "id INT, c STRING",
        "id STRING, name STRING",
        reads(mariadb, "unkeyed"),
        "id INT, name STRING",
        NAMES,
    )
    with pytest.raises(ConfigError, match="LOOKUP_REFUSED") as refused, stage.running(sql) as life:
        life.poll()
    assert f"column id is {stored} in the database, by which no rows" in refused.value.message


def test_check_looks_at_the_database(stage: Stage, mariadb: MariaDb) -> None:
    stage.execute(
        "CREATE TABLE by_hand (id int, name varchar(20), INDEX (name, id))",
        "CREATE TABLE with_key (name text, `Id` int PRIMARY KEY)",
        "INSERT INTO with_key SELECT CONCAT('c', seq), seq FROM seq_1_to_50",
        "ANALYZE TABLE with_key",
        "CREATE VIEW shown AS SELECT * FROM with_key",
    )

    def found(table: str) -> tuple[int, list[Finding]]:
        return stage.checked(reads(mariadb, table))

    code, keyed = found("shop.with_key")
    assert (code, lookup_codes(keyed)) == (0, ["LOOKUP_FOUND"])
    assert "about 50 rows, an index on Id" in keyed[0]["text"]
    code, by_hand = found("by_hand")
    assert (code, lookup_codes(by_hand)) == (0, ["LOOKUP_FOUND", "LOOKUP_UNINDEXED"])
    assert by_hand[1]["hint"] == "ALTER TABLE by_hand ADD INDEX (id)"
    assert lookup_codes(found("shown")[1]) == ["LOOKUP_FOUND"]
    code, missing = found("nowhere")
    assert (code, lookup_codes(missing)) == (2, ["LOOKUP_REFUSED"])
