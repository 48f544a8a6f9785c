"""Lookup joins through a broker and a real PostgreSQL: rows, caches, outages, changes."""

import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from tempfile import TemporaryDirectory

import psycopg
import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import ConfigError
from tests.e2e.postgres import Postgres, programs
from tests.harness.lookups import (
    APPENDS,
    CUSTOMERS,
    LOGIN,
    NAMES,
    WAIT_S,
    Finding,
    Stage,
    lookup_codes,
    wait_until,
)

pytestmark = [
    pytest.mark.service,
    pytest.mark.timeout(300),
    pytest.mark.skipif(
        programs() is None, reason="PostgreSQL is not installed (Debian: postgresql)"
    ),
]
PLACES = """
CREATE TABLE places (a int, b varchar(10), name text, n bigint, open bool, since date,
  price numeric(8, 2), seen timestamp, changed timestamptz, share float8, at time(3));
INSERT INTO places VALUES
  (1, 'x', 'one', 10, true, '2024-02-29', 1.5, '2024-01-01 10:00', '2024-01-01 10:00+02', 0.5,
  '23:59:59.123'),
  (1, 'x', 'uno', NULL, false, NULL, NULL, NULL, NULL, NULL, NULL),
  (1, 'y', 'low', 1, true, NULL, NULL, NULL, NULL, NULL, NULL)
"""


@pytest.fixture(scope="module")
def postgres() -> Iterator[Postgres]:
    """Not below pytest's own folder, which the server's user may not enter."""
    found = programs()
    assert found is not None
    with TemporaryDirectory(prefix="rejoin-lookup-") as folder:
        Path(folder).chmod(0o755)
        server = Postgres(Path(folder) / "postgres", found)
        server.start()
        try:
            yield server
        finally:
            server.stop()


@pytest.fixture
def stage(spark: SparkSession, broker: Broker, postgres: Postgres, tmp_path: Path) -> Stage:
    return Stage(spark, broker, postgres, tmp_path)


def rows(found: list[tuple[object, ...]]) -> list[tuple[object, ...]]:
    return sorted(found, key=str)


def test_left_join_pads_and_meets_every_row_of_a_composite_key(stage: Stage) -> None:
    stage.execute(PLACES)
    sql = stage.sql(
        "id INT, a INT, b STRING",
        "a INT, b STRING, name STRING, n BIGINT, open BOOLEAN, since DATE, price DECIMAL(10, 2),"
        " seen TIMESTAMP(3), changed TIMESTAMP_LTZ(3), share DOUBLE, at TIME(3)",
        f"'table-name' = 'public.places', {LOGIN}",
        "id INT, name STRING, n BIGINT, since STRING, price DECIMAL(10, 2), seen STRING,"
        " changed STRING, share DOUBLE, at STRING",
        "SELECT o.id, d.name, d.n, CAST(d.since AS STRING), d.price, CAST(d.seen AS STRING),"
        " CAST(d.changed AS STRING), d.share, CAST(d.at AS STRING)"
        " FROM o LEFT JOIN d FOR SYSTEM_TIME AS OF o.t AS d"
        " ON o.a = d.a AND o.b = d.b AND d.name <> 'low' AND d.open IS NOT NULL",
    )
    stage.feed(
        {"id": 1, "a": 1, "b": "x"}, {"id": 2, "a": 1, "b": "y"}, {"id": 3, "a": None, "b": "x"}
    )
    stage.feed({"id": 4, "a": 2, "b": "\0"})
    with stage.running(sql) as life:
        found = stage.wait(life, lambda found: len(found) >= 5)
    nothing = [None] * 8
    assert rows(found) == rows(
        [
            (
                "+I",
                1,
                "one",
                10,
                "2024-02-29",
                1.5,
                "2024-01-01 10:00:00.000",
                "2024-01-01 08:00:00.000",
                0.5,
                "23:59:59.123",
            ),
            ("+I", 1, "uno", *nothing[1:]),
            *(("+I", n, *nothing) for n in (2, 3, 4)),
        ]
    )


def _is_more(found: list[tuple[object, ...]], than: int) -> bool:
    return len(found) > than


def test_a_cached_row_is_seen_anew_when_its_time_is_over(stage: Stage) -> None:
    stage.execute(
        "CREATE TABLE cached (id int PRIMARY KEY, name text)",
        "INSERT INTO cached VALUES (1, 'Bob')",
    )
    cache = "'lookup.cache' = 'PARTIAL', 'lookup.partial-cache.expire-after-write' = '3 s'"
    sql = stage.sql(
        "id INT, c INT",
        CUSTOMERS,
        f"'table-name' = 'cached', {LOGIN}, {cache}",
        "id INT, name STRING",
        NAMES,
    )
    with stage.running(sql) as life:
        stage.feed({"id": 0, "c": 1})
        stage.wait(life, lambda found: len(found) == 1)
        stage.execute("UPDATE cached SET name = 'Robert'")
        found = stage.results()
        while all(name != "Robert" for _, _, name in found):
            stage.feed({"id": len(found), "c": 1})
            found = stage.wait(life, partial(_is_more, than=len(found)))
    by_id = [name for _, _, name in sorted(found, key=lambda r: int(str(r[1])))]
    assert by_id == ["Bob"] * by_id.count("Bob") + ["Robert"] * by_id.count("Robert")


def test_a_database_that_stops_delays_rows_and_loses_none(stage: Stage, postgres: Postgres) -> None:
    stage.execute(
        "CREATE TABLE stopped AS SELECT i AS id, 'n' || i AS name FROM generate_series(0, 99) i"
    )
    options = f"'table-name' = 'stopped', {LOGIN}"
    sql = stage.sql(
        "id INT, c INT",
        CUSTOMERS,
        f"{options}, 'lookup.max-retries' = '1'",
        "id INT, name STRING",
        NAMES,
    )
    with stage.running(sql) as life:
        stage.feed(*({"id": i, "c": i % 100} for i in range(200)))
        stage.wait(life, lambda found: len(found) == 200)
        postgres.stop()
        stage.feed(*({"id": i, "c": i % 100} for i in range(200, 400)))
        deadline = time.monotonic() + WAIT_S
        while life.restarts.total == 0:  # the epoch fails, and the query is started again
            assert time.monotonic() < deadline
            life.poll()
            time.sleep(0.05)
        postgres.resume()
        found = stage.wait(life, lambda found: len(found) >= 400)
    assert rows(found) == rows([("+I", i, f"n{i % 100}") for i in range(400)])


def test_a_changing_left_row_takes_back_what_it_met(stage: Stage) -> None:
    stage.execute(
        "CREATE TABLE met (id int, name text)", "INSERT INTO met VALUES (1, 'Bob'), (2, 'Ann')"
    )
    upserts = "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'"
    sql = stage.sql(
        f"id INT, c INT, PRIMARY KEY (id) NOT ENFORCED WITH {upserts}",
        CUSTOMERS,
        f"'table-name' = 'met', {LOGIN}",
        "id INT, name STRING, c INT",
        NAMES.replace("d.name", "d.name, o.c"),
    )
    with stage.running(sql) as life:
        stage.upsert(id=7, c=1)
        stage.wait(life, lambda found: len(found) == 1)
        stage.execute("UPDATE met SET name = 'Robert' WHERE id = 1")
    with stage.running(sql) as life:  # what was met is in the checkpoint
        stage.upsert(id=7, c=2)
        found = stage.wait(life, lambda found: len(found) >= 3)
    assert rows(found) == rows([("+I", 7, "Bob", 1), ("-U", 7, "Bob", 1), ("+U", 7, "Ann", 2)])


def test_an_epoch_that_is_repeated_meets_the_same_rows(stage: Stage) -> None:
    stage.execute("CREATE TABLE again (id int, name text)", "INSERT INTO again VALUES (1, 'Bob')")
    upserts = "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json'"
    sql = stage.sql(
        f"id INT, c INT, PRIMARY KEY (id) NOT ENFORCED WITH {upserts}",
        CUSTOMERS,
        f"'table-name' = 'again', {LOGIN}",
        "id INT, name STRING",
        NAMES,
    )
    with stage.running(sql) as life:
        stage.upsert(id=7, c=1)
        stage.wait(life, lambda found: len(found) == 1)
        wait_until(lambda: stage.last_committed() is not None)
    stage.forget_last_commit()
    stage.execute("UPDATE again SET name = 'Robert'")
    with stage.running(sql) as life:
        stage.upsert(id=7, c=2)
        found = stage.wait(life, lambda found: len(found) >= 3)
    assert rows(found) == rows([("+I", 7, "Bob"), ("-U", 7, "Bob"), ("+U", 7, None)])


def test_a_retraction_of_an_unknown_row_is_nothing(stage: Stage) -> None:
    stage.execute("CREATE TABLE known (id int, name text)", "INSERT INTO known VALUES (1, 'Bob')")
    sql = stage.sql(
        f"id INT, c INT WITH {APPENDS.replace('json', 'changelog-json', 1)}",
        CUSTOMERS,
        f"'table-name' = 'known', {LOGIN}",
        "id INT, name STRING",
        NAMES,
    )
    with stage.running(sql) as life:
        stage.feed({"op": "-D", "data": {"id": 1, "c": 1}}, {"op": "+I", "data": {"id": 2, "c": 1}})
        stage.wait(life, lambda found: len(found) >= 1)
        stage.feed({"op": "-D", "data": {"id": 2, "c": 1}})
        found = stage.wait(life, lambda found: len(found) >= 2)
    assert found == [("+I", 2, "Bob"), ("-D", 2, "Bob")]


def test_a_slow_database_holds_the_epoch_with_few_queries(stage: Stage, postgres: Postgres) -> None:
    stage.execute(
        "CREATE TABLE slow AS SELECT i AS id, 'n' || i AS name FROM generate_series(0, 5999) i"
    )
    sql = stage.sql(
        "id INT, c INT",
        CUSTOMERS,
        f"'table-name' = 'slow', {LOGIN}",
        "id INT, name STRING",
        NAMES,
    )
    stage.feed(*({"id": i, "c": i} for i in range(6_000)))
    with postgres.connect() as holder, postgres.connect() as watcher:
        watcher.autocommit = True
        with stage.running(sql) as life:
            stage.wait(life, lambda found: len(found) >= 6_000)
            holder.execute("LOCK TABLE slow IN ACCESS EXCLUSIVE MODE")
            stage.feed_at_once(*({"id": i, "c": i} for i in range(6_000)))
            wait_until(lambda: _waiting(watcher) == 4)
        wait_until(lambda: _waiting(watcher) == 0)  # a job that stops takes its queries back
        assert len(stage.results()) == 6_000
        holder.commit()
        with stage.running(sql) as life:
            found = stage.wait(life, lambda found: len(found) >= 12_000)
    assert rows(found) == rows([("+I", i, f"n{i}") for i in range(6_000)] * 2)
    assert not stage.logged(), "no results move or are taken back: nothing has to be kept"


def test_what_was_looked_up_is_kept_where_it_decides_who_has_the_results(stage: Stage) -> None:
    stage.execute(
        "CREATE TABLE areas AS SELECT i AS id, 'n' || i % 2 AS name FROM generate_series(0, 9) i"
    )
    sql = stage.sql(
        "id INT, c INT",
        CUSTOMERS,
        f"'table-name' = 'areas', {LOGIN}",
        "name STRING, n BIGINT",
        "SELECT d.name, COUNT(*) FROM o JOIN d FOR SYSTEM_TIME AS OF o.t AS d ON o.c = d.id"
        " GROUP BY d.name",
    )
    stage.feed(*({"id": i, "c": i} for i in range(10)))
    with stage.running(sql) as life:
        found = stage.wait(life, lambda found: len(found) >= 2)
    assert rows(found) == [("+I", "n0", 5), ("+I", "n1", 5)]
    assert stage.logged()


def _waiting(connection: psycopg.Connection) -> int:
    """Queries of the job that wait for a lock."""
    asked = "SELECT count(*) FROM pg_stat_activity WHERE wait_event_type = 'Lock'"
    row = connection.execute(asked).fetchone()
    assert row is not None
    return int(row[0])


def test_check_looks_at_the_database(stage: Stage) -> None:
    stage.execute(
        "CREATE TABLE by_hand (id int, name text)",
        "CREATE INDEX ON by_hand (name, id)",
        'CREATE TABLE keyed (name text, "Id" int PRIMARY KEY)',
        "INSERT INTO keyed SELECT 'c' || i, i FROM generate_series(1, 50) i",
        "ANALYZE keyed",
        "CREATE VIEW shown AS SELECT * FROM keyed",
    )

    def found(table: str) -> tuple[int, list[Finding]]:
        return stage.checked(f"'table-name' = '{table}', {LOGIN}")

    code, keyed = found("keyed")
    assert (code, lookup_codes(keyed)) == (0, ["LOOKUP_FOUND"])
    assert "about 50 rows, an index on Id" in keyed[0]["text"]
    code, by_hand = found("by_hand")
    assert (code, lookup_codes(by_hand)) == (0, ["LOOKUP_FOUND", "LOOKUP_UNINDEXED"])
    assert by_hand[1]["hint"] == "CREATE INDEX ON by_hand (id)"
    assert lookup_codes(found("shown")[1]) == ["LOOKUP_FOUND"]
    code, missing = found("nowhere")
    assert (code, lookup_codes(missing)) == (2, ["LOOKUP_REFUSED"])


@pytest.mark.parametrize(
    ("table", "columns", "says"),
    [
        ("none", CUSTOMERS, "has no table none"),
        ("declared", "id INT, title STRING", "no column title; it has id, name"),
        (
            "declared",
            "id BIGINT, name INT",
            "column name is text in the database, but declared INT",
        ),
        ("moods", CUSTOMERS, "column id is int8 in the database, but declared INT"),
        ("private", CUSTOMERS, "permission denied for table private"),
    ],
)
def test_a_table_that_is_not_as_declared_is_refused_at_the_start(
    stage: Stage, postgres: Postgres, table: str, columns: str, says: str
) -> None:
    stage.execute(
        "CREATE TABLE IF NOT EXISTS declared (id int, name text)",
        "CREATE TABLE IF NOT EXISTS moods (id bigint, name text)",
        "CREATE TABLE IF NOT EXISTS private (id int, name text)",
        "DO $$ BEGIN CREATE ROLE guest LOGIN; EXCEPTION WHEN duplicate_object THEN END $$",
    )
    query = NAMES.replace("d.name", "CAST(d.{} AS STRING)")
    name = "title" if "title" in columns else "name"
    options = f"'table-name' = '{table}', {LOGIN.replace('postgres', 'guest')}"
    sql = stage.sql(
        "id INT, c BIGINT" if "BIGINT" in columns else "id INT, c INT",
        columns,
        options,
        "id INT, name STRING",
        query.format(name),
    )
    assert says in _refusal(stage, postgres, sql)


@pytest.mark.parametrize("stored", ["mood", "jsonb", "name"])
def test_texts_that_no_key_is_compared_with(stage: Stage, postgres: Postgres, stored: str) -> None:
    stage.execute(
        "DO $$ BEGIN CREATE TYPE mood AS ENUM ('x'); EXCEPTION WHEN duplicate_object THEN END $$",
        f"CREATE TABLE by_{stored} (id {stored}, name text)",
    )
    sql = stage.sql(
        "id INT, c STRING",
        "id STRING, name STRING",
        f"'table-name' = 'by_{stored}', {LOGIN}",
        "id INT, name STRING",
        NAMES,
    )
    assert f"column id is {stored} in the database, by which no rows" in _refusal(
        stage, postgres, sql
    )


def _connections(postgres: Postgres) -> set[int]:
    """Server processes that answer the job."""
    asked = "SELECT pid FROM pg_stat_activity WHERE application_name = 'rejoin'"
    with postgres.connect() as connection:
        return {int(row[0]) for row in connection.execute(asked)}


def _refusal(stage: Stage, postgres: Postgres, sql: str) -> str:
    """What is wrong with a table, which is said at the start, and leaves no connection open."""
    before = _connections(postgres)
    with pytest.raises(ConfigError, match="LOOKUP_REFUSED") as refused, stage.running(sql) as life:
        life.poll()
    wait_until(lambda: _connections(postgres) <= before)
    return refused.value.message
