"""The simulated jobs: SQL, what is fed to their tables, and the model of their results."""

import json
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from typing import Any

from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.harness.gateway import jvm
from tests.simulation.models import (
    Chain,
    IntervalLeft,
    LeftJoin,
    Model,
    TemporalLeft,
    TimedChain,
    Union,
)

PARALLELISM = 2
SINK_PARTITIONS = 2
IDLE_MS = 10_000
BOUND_MS = 2_000  # by which rows are out of order
WINDOW_MS = 5_000  # of the interval joins, to either side

_SETTINGS = f"""
SET 'rejoin.key-groups' = '4';
SET 'table.exec.source.idle-timeout' = '{IDLE_MS} ms';
"""
_TIMED = "t TIMESTAMP(3), WATERMARK FOR t AS t - INTERVAL '2' SECOND"


def _table(name: str, columns: str, key: str | None = None, kind: str = "json") -> str:
    options = {"topic": name, "properties.bootstrap.servers": "localhost:9092"}
    if key is None:
        options |= {"connector": "kafka", "format": kind}
    else:
        columns += f", PRIMARY KEY ({key}) NOT ENFORCED"
        options |= {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"}
    given = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
    return f"CREATE TABLE {name} ({columns}) WITH ({given});\n"


@dataclass(frozen=True, slots=True)
class Source:
    """A table as it is fed.

    `key`: the column whose value is the record's key, for tables that are updated. `columns`: those
    with a small number each. `timed`: whether rows have a time.
    """

    name: str
    columns: tuple[str, ...]
    key: str | None = None
    timed: bool = False


@dataclass(frozen=True, slots=True)
class Job:
    """`is_keyed`: whether the sink has a key, so that results replace each other."""

    name: str
    tables: tuple[str, ...]
    query: str
    sources: tuple[Source, ...]
    model: Callable[[], Model]
    is_keyed: bool = False

    @property
    def timed(self) -> bool:
        return any(source.timed for source in self.sources)


_ORDERS = _table("a", "id INT, k INT")
_NAMES = _table("b", "k INT, v INT", "k")
_OUT = _table("out", "id INT, k INT, v INT", kind="changelog-json")
_TIMED_A = _table("a", f"id INT, k INT, {_TIMED}")
_TIMED_B = _table("b", f"v INT, k INT, {_TIMED}")
_APPENDED = _table("out", "id INT, k INT, v INT")
_A = Source("a", ("id", "k"))
_B = Source("b", ("k", "v"), "k")
_ROWS = (Source("a", ("id", "k"), timed=True), Source("b", ("v", "k"), timed=True))

_ALL = (
    Job(
        "retract",
        (_ORDERS, _NAMES, _OUT),
        "INSERT INTO out SELECT a.id, a.k, b.v FROM a LEFT JOIN b ON a.k = b.k",
        (_A, _B),
        lambda: LeftJoin("k", "k", ("id", "k"), ("v",)),
    ),
    Job(
        "upsert",
        (_table("a", "id INT, k INT", "id"), _NAMES, _table("out", "id INT, k INT, v INT", "id")),
        "INSERT INTO out SELECT a.id, a.k, b.v FROM a LEFT JOIN b ON a.k = b.k",
        (Source("a", ("id", "k"), "id"), _B),
        lambda: LeftJoin("k", "k", ("id", "k"), ("v",)),
        is_keyed=True,
    ),
    Job(
        "chain",
        (
            _ORDERS,
            _NAMES,
            _table("d", "v INT, w INT", "v"),
            _table("out", "id INT, v INT, w INT", kind="changelog-json"),
        ),
        """INSERT INTO out SELECT a.id, b.v, d.w
        FROM a LEFT JOIN b ON a.k = b.k LEFT JOIN d ON b.v = d.v""",
        (_A, _B, Source("d", ("v", "w"), "v")),
        Chain,
    ),
    Job(
        "union",
        (_ORDERS, _NAMES, _OUT),
        """INSERT INTO out SELECT a.id, a.k, b.v FROM a LEFT JOIN b ON a.k = b.k
        UNION ALL SELECT a.id, a.id, b.v FROM a LEFT JOIN b ON a.id = b.v""",
        (_A, _B),
        lambda: Union(
            LeftJoin("k", "k", ("id", "k"), ("v",)), LeftJoin("id", "v", ("id", "id"), ("v",))
        ),
    ),
    Job(
        "interval",
        (_TIMED_A, _TIMED_B, _APPENDED),
        """INSERT INTO out SELECT a.id, a.k, b.v FROM a LEFT JOIN b ON a.k = b.k
        AND a.t BETWEEN b.t - INTERVAL '5' SECOND AND b.t + INTERVAL '5' SECOND""",
        _ROWS,
        lambda: IntervalLeft(WINDOW_MS, BOUND_MS, IDLE_MS),
    ),
    Job(
        "temporal",
        (_TIMED_A, _table("b", f"k INT, v INT, {_TIMED}", "k"), _APPENDED),
        """INSERT INTO out SELECT a.id, a.k, b.v
        FROM a LEFT JOIN b FOR SYSTEM_TIME AS OF a.t ON a.k = b.k""",
        (_ROWS[0], Source("b", ("k", "v"), "k", timed=True)),
        lambda: TemporalLeft(BOUND_MS, IDLE_MS),
    ),
    Job(
        "timed-chain",
        (
            _TIMED_A,
            _TIMED_B,
            _table("d", f"k INT, w INT, {_TIMED}", "k"),
            _table("out", "id INT, v INT, w INT"),
        ),
        """INSERT INTO out SELECT i.id, i.v, d.w FROM (
        SELECT a.id, a.k, a.t, b.v FROM a LEFT JOIN b ON a.k = b.k
        AND a.t BETWEEN b.t - INTERVAL '5' SECOND AND b.t + INTERVAL '5' SECOND) AS i
        LEFT JOIN d FOR SYSTEM_TIME AS OF i.t ON i.k = d.k""",
        (*_ROWS, Source("d", ("k", "w"), "k", timed=True)),
        lambda: TimedChain(WINDOW_MS, BOUND_MS, IDLE_MS),
    ),
)
JOBS = {job.name: job for job in _ALL}


def planned(job: Job) -> KafkaSink:
    text = "".join((_SETTINGS, *job.tables, job.query, ";"))
    (found,) = plan(bind(text, f"{job.name}.sql"))
    assert isinstance(found.root, KafkaSink)
    return found.root


@cache
def simulation(name: str) -> Any:
    """The job in the JVM, made once for all histories (Simulation.scala)."""
    sink = planned(JOBS[name])
    spec = {
        "name": "q",
        "table": "out",
        "topic": "out",
        "guarantee": "exactly-once",
        "transactionalIdPrefix": "job",
        "properties": {},
        "checkpoint": "c",
        "generation": 0,
        "dense": True,
        "ledgers": 0,
        "partitions": SINK_PARTITIONS,
        "heartbeatMs": 60_000,
        "deletesFirst": sink.exchange,
        "realTime": False,
        "folder": "",
        "onError": "fail",
    }
    package = jvm().org.apache.spark.sql.rejoin.simulation
    return package.Simulation(json.dumps(to_json(sink)), json.dumps(spec), PARALLELISM)


@cache
def scanned(name: str) -> tuple[str, ...]:
    """The tables of the plan's scans."""
    return tuple(json.loads(simulation(name).tables()))
