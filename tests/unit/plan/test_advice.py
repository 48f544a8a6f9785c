"""What `explain` advises: when, and that the lines it gives are ones that the planner takes."""

import re

from spark_jobs.plan.planner import plan
from spark_jobs.sql.binder import bind

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
