"""CREATE TABLE ... LIKE: what is taken over from another table."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.catalog import Table
from tests.unit.sql.texts import script

BASE = """\
CREATE TABLE base (
  id BIGINT, name VARCHAR(20), at TIMESTAMP(3), twice AS id * 2,
  o BIGINT METADATA FROM 'offset' VIRTUAL,
  PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR at AS at - INTERVAL '5' SECOND
) WITH ('connector' = 'upsert-kafka', 'topic' = 'base', 'properties.bootstrap.servers' = 'b:1',
  'key.format' = 'json', 'value.format' = 'json');
"""


def tables(statement: str) -> dict[str, Table]:
    return dict(bind_query(script(BASE, statement, "SELECT id FROM base")).tables)


def problem(statement: str) -> str:
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(BASE, statement, "SELECT id FROM base"))
    return caught.value.render()


def names(table: Table) -> list[str]:
    return [column.name for column in table.columns]


def test_everything_is_taken_over_and_options_are_overwritten() -> None:
    found = tables("CREATE TABLE t (more INT) WITH ('topic' = 't') LIKE base;")
    base, made = found["base"], found["t"]
    assert names(made) == [*names(base), "more"]
    assert (made.primary_key, made.watermark) == (base.primary_key, base.watermark)
    assert (made.topics, made.connector) == (("t",), "upsert-kafka")
    assert made.column("name").length == base.column("name").length


def test_a_copy_of_a_copy() -> None:
    text = "CREATE TABLE t LIKE base; CREATE TABLE u WITH ('topic' = 'u') LIKE t;"
    found = tables(text)
    assert names(found["u"]) == names(found["t"]) == names(found["base"])


@pytest.mark.parametrize(
    ("rules", "expected"),
    [
        ("EXCLUDING GENERATED", ["id", "name", "at", "o"]),
        ("EXCLUDING METADATA", ["id", "name", "at", "twice"]),
        ("EXCLUDING METADATA EXCLUDING GENERATED", ["id", "name", "at"]),
        ("EXCLUDING ALL INCLUDING OPTIONS INCLUDING CONSTRAINTS", ["id", "name", "at"]),
        ("INCLUDING PARTITIONS EXCLUDING DISTRIBUTION", ["id", "name", "at", "twice", "o"]),
    ],
)
def test_columns_by_rule(rules: str, expected: list[str]) -> None:
    assert names(tables(f"CREATE TABLE t LIKE base ({rules});")["t"]) == expected


def test_what_the_statement_has_wins_over_what_it_may_overwrite() -> None:
    found = tables(
        "CREATE TABLE t (twice AS id + id, PRIMARY KEY (name) NOT ENFORCED, WATERMARK FOR at AS at)"
        " LIKE base (OVERWRITING GENERATED OVERWRITING WATERMARKS EXCLUDING CONSTRAINTS);"
    )["t"]
    assert names(found) == ["id", "name", "at", "o", "twice"]
    assert found.primary_key == ("name",)
    assert found.watermark != tables("CREATE TABLE t LIKE base;")["t"].watermark


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        ("CREATE TABLE t (id INT) LIKE base;", "column id is in base already"),
        ("CREATE TABLE t (twice AS 1) LIKE base;", "LIKE base (OVERWRITING GENERATED)"),
        ("CREATE TABLE t (o INT METADATA FROM 'partition') LIKE base;", "OVERWRITING METADATA"),
        ("CREATE TABLE t (PRIMARY KEY (name) NOT ENFORCED) LIKE base;", "EXCLUDING CONSTRAINTS"),
        ("CREATE TABLE t (WATERMARK FOR at AS at) LIKE base;", "OVERWRITING WATERMARKS"),
        (
            "CREATE TABLE t WITH ('topic' = 't') LIKE base (INCLUDING OPTIONS);",
            "OVERWRITING OPTIONS",
        ),
        ("CREATE TABLE t LIKE base (EXCLUDING OPTIONS);", "table t has no 'connector'"),
        ("CREATE TABLE t LIKE bas;", "did you mean 'base'?"),
        ("CREATE TABLE t LIKE base (OVERWRITING ALL);", "ALL can be INCLUDING or EXCLUDING alone"),
        ("CREATE TABLE t LIKE base (INCLUDING INDEXES);", "expected INCLUDING, EXCLUDING"),
        ("CREATE TABLE t WITH ('connector' = 'kafka');", "expected (, found the end"),
    ],
)
def test_problem(statement: str, says: str) -> None:
    assert says in problem(statement)
