"""What `explain` advises: when, and that the lines it gives are ones that the planner takes."""

import re

import pytest

from spark_jobs.plan.nodes.parts import Advice
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind

TABLE = """CREATE TABLE {name} ({columns}, at TIMESTAMP(3), WATERMARK FOR at AS at{key})
  WITH ('connector' = 'kafka', 'topic' = '{name}', 'properties.bootstrap.servers' = 'x:1',
  'format' = '{format}'{options});
"""
SINK = """CREATE TABLE result ({columns}) WITH ('connector' = 'kafka', 'topic' = 'result',
  'properties.bootstrap.servers' = 'x:1', 'format' = 'changelog-json');
"""
KEY = ", PRIMARY KEY (id) NOT ENFORCED"
TEMPORAL = "SELECT a.id FROM a JOIN b FOR SYSTEM_TIME AS OF a.at ON a.id = b.id;\n"


def table(name: str, options: str = "", columns: str = "id INT", **more: str) -> str:
    given = {"key": "", "format": "json", **more}
    return TABLE.format(name=name, options=options, columns=columns, **given)


def advice(text: str) -> dict[str, tuple[str, ...]]:
    """The first three words of each piece, and the lines to add."""
    [query] = plan(bind(text))
    return {" ".join(a.text.split()[:3]): a.add for a in query.advice}


def joined(options: str = "", settings: str = "", key: str = KEY) -> str:
    tables = table("a", options) + table("b", options, key=key, format="debezium-json")
    return settings + tables + SINK.format(columns="id INT") + "INSERT INTO result " + TEMPORAL


def test_each_piece_is_gone_once_its_lines_are_added() -> None:
    before = advice(joined())
    assert {"a partition of", "rows of a", "one record of"} <= set(before)
    lines = [re.sub(r"  --.*", "", line) for add in before.values() for line in add]
    in_with = [line for line in lines if line.startswith("'")]
    settings = [line for line in lines if line.startswith("SET ")]
    assert len(in_with) >= 2
    assert len(settings) >= 2
    after = advice(joined("".join(f", {line}" for line in in_with), "\n".join(settings) + "\n"))
    assert after == {}


def test_a_setting_without_effect_is_named() -> None:
    cluster = "SET 'parallelism.default' = '4'; SET 'state.backend.type' = 'rocksdb';\n"
    found = advice(joined(settings=cluster))
    assert {"SET 'parallelism.default' has", "SET 'state.backend.type' has"} <= set(found)
    assert not any(words.startswith("SET") for words in advice(joined()))


@pytest.mark.parametrize(
    ("join", "heeds"),
    [
        ("a LEFT JOIN b ON a.id = b.id AND a.at BETWEEN b.at AND b.at", True),
        ("a JOIN b ON a.id = b.id AND a.at BETWEEN b.at AND b.at", False),
        ("a LEFT JOIN b ON a.id = b.id AND a.at > b.at AND a.at < b.at", False),
        ("a LEFT JOIN b ON a.id = b.id", False),
        # one join of several is enough
        ("a JOIN b AS c ON a.id = c.id FULL JOIN b ON a.id = b.id AND a.at = b.at", False),
        ("a JOIN b AS c ON a.id = c.id AND a.at = c.at FULL JOIN b ON a.at = b.at", True),
    ],
)
def test_an_early_fire_without_effect_is_named(join: str, heeds: bool) -> None:
    text = table("a") + table("b") + SINK.format(columns="id INT")
    text += "INSERT INTO result SELECT /*+ EARLY_FIRE('delay' = '5s') */ a.id FROM {};"
    assert ("EARLY_FIRE in line" not in advice(text.format(join))) is heeds


def test_a_side_without_its_ttl_gets_a_hint() -> None:
    text = table("a") + table("b") + SINK.format(columns="id INT") + "INSERT INTO result SELECT {} "
    text += "a.id FROM a JOIN b ON a.id = b.id;\n"
    [add] = [lines for words, lines in advice(text.format("")).items() if words.startswith("state")]
    assert add[0].startswith("SET 'table.exec.state.ttl'")
    hinted = advice(text.format("/*+ STATE_TTL('a' = '1 d') */"))
    assert hinted["state grows without"][0].startswith("SELECT /*+ STATE_TTL(")


def test_many_columns_in_state_are_told() -> None:
    columns = ", ".join(f"c{i} STRING" for i in range(20))
    text = table("a", columns=f"id INT, {columns}") + table("b") + SINK.format(columns=columns)
    insert = "INSERT INTO result SELECT {} FROM a JOIN b ON a.id = b.id;\n"
    wide = advice(text + insert.format(", ".join(f"a.c{i}" for i in range(20))))
    assert "20 columns of" in wide
    narrow = advice(text + insert.format("a.c0, a.c1" + ", ''" * 18))
    assert "20 columns of" not in narrow


def test_the_key_that_needs_no_materialiser_is_named() -> None:
    sink = """CREATE TABLE s (n STRING, id INT, PRIMARY KEY (n) NOT ENFORCED) WITH (
      'connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'x:1',
      'key.format' = 'json', 'value.format' = 'json');
    """
    a = table("a", columns="id INT, n STRING", key=KEY, format="debezium-json")
    told = advice("".join((a, sink, "INSERT INTO s SELECT n, id FROM a;")))
    assert told["the primary key"][0].startswith("PRIMARY KEY (id) NOT ENFORCED")


OUTER = """CREATE TABLE r (id INT, city STRING, age INT, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = 'r', 'properties.bootstrap.servers' = 'x:1',
  'key.format' = 'json', 'value.format' = 'json');
"""
INTO_S = "INSERT INTO s SELECT {} FROM l {};\n"


def nulls(select: str, rest: str = "LEFT JOIN r ON l.id = r.id", key: str = "id") -> list[Advice]:
    """Warnings of NULL in a sink whose first three columns take none."""
    left = table("l", columns="id INT, n STRING")
    sink = f"""CREATE TABLE s (id INT, city STRING NOT NULL, twice BIGINT NOT NULL, n STRING,
      PRIMARY KEY ({key}) NOT ENFORCED) WITH ('connector' = 'upsert-kafka', 'topic' = 's',
      'properties.bootstrap.servers' = 'x:1', 'key.format' = 'json', 'value.format' = 'json');
    """
    [query] = plan(bind(left + OUTER + sink + INTO_S.format(select, rest)))
    return [a for a in query.advice if "NULL_IN_NOT_NULL_COLUMN" in a.text]


def test_what_an_outer_join_makes_null_is_told_where_the_sink_takes_none() -> None:
    [told] = nulls("l.id, city, CAST(age AS BIGINT), n")
    assert told.is_warning
    assert told.text.startswith("city and twice of s are NOT NULL, but the LEFT JOIN makes them")
    assert "finds no row of r:" in told.text
    city, _, twice, _ = lines = [line.partition("  --")[0] for line in told.add]
    assert lines == [
        "COALESCE(city, 'none')", "WHERE city IS NOT NULL",
        "COALESCE(age, 0) AS twice", "WHERE age IS NOT NULL",
    ]  # fmt: skip
    assert nulls(f"l.id, {city}, {twice}, n") == []
    # one column that is there says that the whole row is
    assert nulls("l.id, city, age, n", "LEFT JOIN r ON l.id = r.id WHERE age > 3") == []


def test_a_made_up_key_is_not_advised() -> None:
    [told] = nulls("r.id, 'x', 1, n", "LEFT JOIN r ON l.id = r.id")
    assert told.text.startswith("id of s is NOT NULL")
    assert [line.partition("  --")[0] for line in told.add] == ["WHERE r.id IS NOT NULL"]


@pytest.mark.parametrize(
    ("select", "rest"),
    [
        ("id, n, 1, n", ""),  # declared nullable, which is most columns: no word of it
        ("l.id, city, age, n", "JOIN r ON l.id = r.id"),
        ("l.id, COALESCE(city, n), 1, n", "LEFT JOIN r ON l.id = r.id"),
        ("l.id, CASE WHEN city = 'x' THEN 'x' ELSE n END, 1, n", "LEFT JOIN r ON l.id = r.id"),
        ("l.id, city, age, n", "LEFT JOIN r ON l.id = r.id WHERE city = 'x' OR r.id > 1"),
        ("l.id, 'x', COUNT(age), 'n'", "LEFT JOIN r ON l.id = r.id GROUP BY l.id"),
    ],
)
def test_columns_that_no_outer_join_makes_null(select: str, rest: str) -> None:
    assert nulls(select, rest) == []


@pytest.mark.parametrize(
    ("select", "rest", "kind"),
    [
        ("r.id, n, 1, n", "RIGHT JOIN r ON l.id = r.id", "RIGHT JOIN makes it NULL"),
        ("r.id, city, 1, n", "FULL JOIN r ON l.id = r.id", "id and city of s"),
        ("l.id, 'x', MAX(age), 'n'", "LEFT JOIN r ON l.id = r.id GROUP BY l.id", "twice of s"),
        ("l.id, UPPER(city), 1, n", "LEFT JOIN r ON l.id = r.id WHERE city = 'x' OR n = 'y'", "c"),
        ("l.id, q.city, 1, n", "LEFT JOIN r ON l.id = r.id JOIN r AS q ON q.id = l.id", ""),
    ],
)
def test_other_joins_and_expressions(select: str, rest: str, kind: str) -> None:
    found = nulls(select, rest)
    assert [kind in a.text for a in found] == ([True] if kind else [])
