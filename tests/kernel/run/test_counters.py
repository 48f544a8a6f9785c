"""What queries that read one table have counted: each its own rows and rejects."""

import json
from typing import Any

from spark_jobs.driver.report import QueryShape, query_status
from spark_jobs.kernel.calls import Counters
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.harness.gateway import jvm
from tests.kernel.tables import Record, feed

TABLE = """\
CREATE TABLE `{name}` (id INT, bio STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b:1',
  'format' = 'debezium-json', 'rejoin.dead-letter.topic' = 'dead');
"""
SINK = """\
CREATE TABLE `{name}` (id INT, bio STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ('connector' = 'upsert-kafka', 'topic' = 's', 'properties.bootstrap.servers' = 'b:1',
  'key.format' = 'json', 'value.format' = 'json');
"""
UNAVAILABLE = '{"after":{"id":%d,"bio":"__debezium_unavailable_value"},"op":"u"}'


def created(id_: int) -> Record:
    return Record(json.dumps({"after": {"id": id_, "bio": "b"}, "op": "c"}).encode())


class Job:
    """The queries of a job in memory, with the counters of one driver."""

    def __init__(self, tables: str, inserts: str) -> None:
        self._kernel: Any = jvm().org.apache.spark.sql.rejoin
        self.counters = self._kernel.run.Counters()
        self.queries = {
            q.name: self._kernel.run.LocalRun(json.dumps(to_json(q.root)), self.counters)
            for q in plan(bind(tables + inserts))
        }

    def feed(self, query: str, table: str, *records: Record) -> None:
        feed(self.queries[query], records, table=table)

    def counted(self) -> Counters:
        return Counters(json.loads(str(self.counters.value())))

    def told(self, query: str, table: str) -> tuple[int, dict[str, int]]:
        """Records read and rejects, as the status has them."""
        shape = QueryShape(query, "sink", {f"0-{table}": table}, {}, [])
        found = query_status(shape, None, self.counted())
        return found.input_rows_total, found.rejects


def test_queries_of_one_table_count_apart() -> None:
    job = Job(
        TABLE.format(name="t") + SINK.format(name="a") + SINK.format(name="b"),
        "INSERT INTO a SELECT id, 'x' FROM t;"
        "INSERT INTO b SELECT l.id, l.bio FROM t AS l JOIN t AS r ON l.id = r.id;",
    )
    job.feed("a", "t", created(1), created(2), Record(b"{"))
    assert job.told("a", "t") == (3, {"json-malformed": 1})
    assert job.told("b", "t") == (0, {})
    unknown = Record((UNAVAILABLE % 7).encode())
    job.feed("b", "t", created(1), unknown, Record(b"{"), Record(b"{"))
    assert job.told("a", "t") == (3, {"json-malformed": 1})
    reasons = job.told("b", "t")[1]
    # the query reads the table on either side; only the left one wants what the record lacks
    assert reasons == {"json-malformed": 4, "debezium-unavailable-value": 1}
    job.feed("b", "t", Record((UNAVAILABLE % 1).encode()))
    assert job.counted().of("b")["partial"] == 2
    assert "partial" not in job.counted().of("a")


def test_names_with_slashes_are_no_other_names() -> None:
    tables = TABLE.format(name="y/t") + TABLE.format(name="t")
    job = Job(
        tables + SINK.format(name="x") + SINK.format(name="x/y"),
        "INSERT INTO x SELECT id, bio FROM `y/t`;INSERT INTO `x/y` SELECT id, bio FROM t;",
    )
    job.feed("x", "y/t", Record(b"{"), Record(b"{"), created(1))
    assert job.told("x", "y/t") == (3, {"json-malformed": 2})
    assert job.told("x/y", "t") == (0, {})
    assert job.told("x", "y%2Ft") == (0, {})  # as a name without its slashes is written


def test_counters_of_an_older_release_are_restored() -> None:
    """Up to 0.1.0 rows and rejects were counted by table: whose they are is not known."""
    job = Job(
        TABLE.format(name="t") + SINK.format(name="a"), "INSERT INTO a SELECT id, bio FROM t;"
    )
    sums = {"rows/t": 10, "rejects/t/json-malformed": 2, "lost/0-t": 3, "written/a": 7}
    job.counters.restore(json.dumps({"sums": sums, "levels": {"a/join/late": {"0": [3, 1]}}}))
    job.feed("a", "t", created(1))
    assert job.told("a", "t") == (1, {})
    again = job.counted().of("a")
    assert (again["written"], again["operators"]["join"]["late"]) == (7, 1)
    saved = json.loads(str(job.counters.saved()))
    assert saved["sums"]["rows/t"] == 10  # for a return to the older release
    assert saved["levels"] == {"a/join/late": {"0": [3, 1]}}


def test_neither_tasks_nor_plans_are_given_what_was_counted() -> None:
    counters: Any = jvm().org.apache.spark.sql.rejoin.run.Counters()
    counters.rows("q", "t", 5)
    assert counters.copyAndReset().isZero()
    assert counters.toString() == "Counters"
    assert json.loads(counters.value()) == {"q": {"rows": {"t": 5}}}
