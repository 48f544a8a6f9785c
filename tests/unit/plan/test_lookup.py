"""Lookup joins as they are planned: keys, what is refused, what a change of the job may touch."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.nodes.physical import LookupJoin
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind

KAFKA = "'connector' = 'kafka', 'format' = 'json', 'properties.bootstrap.servers' = 'b'"
DATABASE = "'connector' = 'jdbc', 'url' = 'jdbc:postgresql://db/shop', 'table-name' = 'd'"
TABLES = f"""
CREATE TABLE o (id INT, k INT, big BIGINT, at TIMESTAMP(3), p AS PROCTIME(),
  WATERMARK FOR at AS at) WITH ('topic' = 'o', {KAFKA});
CREATE TABLE d (k INT, kind STRING, name STRING, upper_name AS UPPER(name)) WITH ({DATABASE});
CREATE TABLE out (id INT, name STRING) WITH ('topic' = 'out', {KAFKA});
"""
JOIN = "JOIN d FOR SYSTEM_TIME AS OF o.p AS d ON"


def script(insert: str) -> str:
    return TABLES + insert.replace("<lookup>", JOIN) + ";"


def lookup(query: str) -> LookupJoin:
    (planned,) = plan(bind(script(f"INSERT INTO out {query}")))
    (node,) = stateful_nodes(planned.root)
    assert isinstance(node.machine, LookupJoin)
    return node.machine


def refused(query: str) -> list[str]:
    with pytest.raises(SqlErrors) as error:
        plan(bind(script(query)))
    return [problem.code for problem in error.value.problems]


def test_only_plain_equalities_are_looked_up() -> None:
    found = lookup(
        "SELECT o.id, d.upper_name FROM o <lookup> o.k = d.k AND d.kind = 'x' AND d.name > 'a'"
    )
    assert [found.lookup.columns[i].name for i in found.lookup.key] == ["k"]
    assert {column.name for column in found.lookup.columns} == {"k", "kind", "name"}
    assert {named.expr for named in found.lookup.row} == {"upper(`name`)", "`name`", "`kind`"}


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("INSERT INTO out SELECT o.id, d.name FROM o <lookup> o.big = d.k", "LOOKUP_KEY"),
        ("INSERT INTO out SELECT o.id, d.name FROM o <lookup> d.name = 'x'", "LOOKUP_KEY"),
        (
            "INSERT INTO out SELECT o.id, d.name FROM o <lookup> o.k IS NOT DISTINCT FROM d.k",
            "LOOKUP_KEY",
        ),
        (
            "INSERT INTO out SELECT o.id, d.name FROM o JOIN d FOR SYSTEM_TIME AS OF o.at AS d"
            " ON o.k = d.k",
            "LOOKUP_TIME",
        ),
        ("INSERT INTO out SELECT k, name FROM d", "LOOKUP_ONLY"),
        ("INSERT INTO out SELECT o.id, d.name FROM o JOIN d ON o.k = d.k", "LOOKUP_ONLY"),
        ("INSERT INTO d SELECT id, 'a', 'b' FROM o", "LOOKUP_ONLY"),
    ],
)
def test_refused(query: str, code: str) -> None:
    assert code in refused(query)


@pytest.mark.parametrize(
    ("option", "code"),
    [
        ("'lookup.cache' = 'FULL'", "OPTION_VALUE"),
        ("'lookup.cache.ttl' = '1 h'", "UNSUPPORTED_OPTION"),
        ("'scan.fetch-size' = '1'", "UNSUPPORTED_OPTION"),
        ("'lookup.partial-cache.max-rows' = '1'", "OPTION_CONFLICT"),
        ("'username' = 'me'", "OPTION_MISSING"),
        ("'username' = 'me', 'password' = 'secret'", "SECRET_IN_SQL"),
    ],
)
def test_wrong_values(option: str, code: str) -> None:
    with pytest.raises(SqlErrors) as error:
        bind(TABLES.replace("'table-name' = 'd'", f"'table-name' = 'd', {option}"))
    assert code in [problem.code for problem in error.value.problems]


@pytest.mark.parametrize(
    ("url", "code"),
    [
        ("jdbc:oracle:thin:@db:1521/shop", "UNSUPPORTED_OPTION"),
        ("jdbc:mysql://db/shop?user=me&password=pw", "SECRET_IN_SQL"),
        ("jdbc:postgresql://db/shop?user=me&password=pw", "SECRET_IN_SQL"),
    ],
)
def test_wrong_urls(url: str, code: str) -> None:
    with pytest.raises(SqlErrors) as error:
        bind(TABLES.replace("jdbc:postgresql://db/shop", url))
    assert code in [problem.code for problem in error.value.problems]


@pytest.mark.parametrize("url", ["jdbc:mariadb://db/shop", "jdbc:mysql://db/shop"])
def test_urls_of_mariadb_and_mysql(url: str) -> None:
    sql = script("INSERT INTO out SELECT o.id, d.name FROM o <lookup> o.k = d.k")
    (planned,) = plan(bind(sql.replace("jdbc:postgresql://db/shop", url)))
    (node,) = stateful_nodes(planned.root)
    assert isinstance(node.machine, LookupJoin)
    assert node.machine.lookup.properties == {"url": url, "table-name": "d"}
