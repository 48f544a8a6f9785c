"""How many writers a sink has at most, by the shape of its plan."""

import pytest

from spark_jobs.driver import ledgers
from spark_jobs.driver.ledgers import most_writers
from spark_jobs.plan.nodes.physical import KafkaScan, KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind

_KAFKA = (
    "'connector' = 'kafka', 'format' = 'json', 'scan.startup.mode' = 'earliest-offset',"
    " 'properties.bootstrap.servers' = 'b:1'"
)
_UPSERT = (
    "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json',"
    " 'properties.bootstrap.servers' = 'b:1'"
)
_TABLES = f"""
CREATE TABLE a (id INT, k INT) WITH ({_KAFKA}, 'topic' = 'a');
CREATE TABLE b (k INT, v INT) WITH ({_KAFKA}, 'topic' = 'b;b2');
CREATE TABLE u (id INT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({_UPSERT}, 'topic' = 'u');
CREATE TABLE rows (id INT, v INT) WITH ({_KAFKA}, 'topic' = 'rows');
CREATE TABLE kept (id INT, v INT, PRIMARY KEY (id) NOT ENFORCED) WITH ({_UPSERT}, 'topic' = 'kept');
"""
_PARTITIONS = {"a": 3, "b": 2, "b2": 5, "u": 1}
_JOIN = "SELECT a.id, b.v FROM a JOIN b ON a.k = b.k"
_OUTER = "SELECT a.id, b.v FROM a LEFT JOIN b ON a.k = b.k"
_SCAN = "SELECT id, k FROM a"
_NEXT = "SELECT id + 1, v FROM"
_FIRST = "SELECT DISTINCT id, v FROM"
_TOPICS = "SELECT k, v FROM b"


@pytest.mark.parametrize(
    ("insert", "writers"),
    [
        (f"rows {_JOIN}", 4),
        (f"rows {_SCAN}", 3),
        (f"rows {_TOPICS}", 7),
        (f"rows {_JOIN} UNION ALL {_JOIN}", 8),
        (f"rows {_JOIN} UNION ALL ({_SCAN} UNION ALL ({_JOIN} UNION ALL {_TOPICS}))", 18),
        (f"rows {_NEXT} ({_SCAN} UNION ALL {_JOIN}) AS t (id, v) WHERE v > 0", 7),
        (f"rows {_FIRST} ({_SCAN} UNION ALL {_JOIN}) AS t (id, v)", 4),
        (f"kept {_OUTER} UNION ALL {_OUTER}", 4),  # brought together by sink key
        (f"kept {_SCAN} UNION ALL {_JOIN}", 7),
        ("kept SELECT id, v FROM u", 1),
        ("kept SELECT id, v FROM u UNION ALL SELECT id, v FROM u", 4),
    ],
)
def test_writers_of_a_plan(monkeypatch: pytest.MonkeyPatch, insert: str, writers: int) -> None:
    def counts(scan: KafkaScan) -> dict[str, int]:
        return {topic.name: _PARTITIONS[topic.name] for topic in scan.topics}

    monkeypatch.setattr(ledgers, "partition_counts", counts)
    [planned] = plan(bind(f"{_TABLES}INSERT INTO {insert};", "job.sql"))
    assert isinstance(planned.root, KafkaSink)
    assert most_writers(planned.root, 4) == writers
