"""Factories for logical plans by hand, and the way from SQL text to plans."""

from collections.abc import Callable
from typing import Any

import pytest

from spark_jobs.plan.nodes.physical import Physical
from spark_jobs.plan.nodes.walk import nodes
from spark_jobs.plan.rules.order import optimize
from spark_jobs.sql.bind.binder import Job, bind, bind_query
from spark_jobs.sql.catalog import Column, Table, Watermark
from spark_jobs.sql.logical import Field, Join, JoinType, Logical, Position, Scan
from spark_jobs.sql.types.data_types import BIGINT, BOOLEAN, timestamp
from spark_jobs.sql.types.expr import Call, Expr
from spark_jobs.sql.types.expr import Column as Ref

OPTIONS = {
    "append": {"connector": "kafka", "format": "json"},
    "upsert": {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"},
    "retract": {"connector": "kafka", "format": "changelog-json"},
    "test": {"connector": "test", "format": "json"},
}

KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'localhost:9092'"
UPSERT = (
    "'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = 'localhost:9092',"
    " 'key.format' = 'json', 'value.format' = 'json'"
)
TABLES = f"""
CREATE TABLE a (a1 INT, a2 BIGINT, a3 STRING)
WITH ({KAFKA}, 'topic' = 'a', 'format' = 'json');
CREATE TABLE b (b1 INT, b2 BIGINT, b3 STRING)
WITH ({KAFKA}, 'topic' = 'b;b-old', 'format' = 'json');
CREATE TABLE users (id INT, name STRING, city STRING, PRIMARY KEY (id) NOT ENFORCED)
WITH ({UPSERT}, 'topic' = 'users');
CREATE TABLE items (order_id INT, line INT, user_id INT, PRIMARY KEY (order_id, line) NOT ENFORCED)
WITH ({UPSERT}, 'topic' = 'items');
CREATE TABLE changes (c1 INT, c2 STRING, PRIMARY KEY (c1) NOT ENFORCED)
WITH ({KAFKA}, 'topic' = 'changes', 'format' = 'changelog-json');
CREATE TABLE pay (
  id INT, currency STRING, country STRING, amount BIGINT, at TIMESTAMP(3),
  WATERMARK FOR at AS at - INTERVAL '5' SECOND
) WITH ({KAFKA}, 'topic' = 'pay', 'format' = 'json');
CREATE TABLE rates (
  code STRING, land STRING, rate BIGINT, since TIMESTAMP(3),
  PRIMARY KEY (code) NOT ENFORCED, WATERMARK FOR since AS since
) WITH ({UPSERT}, 'topic' = 'rates');
CREATE TABLE append_sink (x INT, y STRING)
WITH ({KAFKA}, 'topic' = 'out', 'format' = 'json');
CREATE TABLE retract_sink (x INT, y STRING)
WITH ({KAFKA}, 'topic' = 'out', 'format' = 'debezium-json');
CREATE TABLE upsert_sink (x INT, y STRING, PRIMARY KEY (x) NOT ENFORCED)
WITH ({UPSERT}, 'topic' = 'out');
"""


def make_scan(
    name: str, columns: str, key: str = "", changelog: str = "append", rowtime: str | None = None
) -> Scan:
    """A scan of BIGINT columns; `rowtime` adds a time attribute as the last one."""
    declared = [Column(c, BIGINT) for c in columns.split()]
    fields = [Field(c.name, c.type) for c in declared]
    watermark = None
    if rowtime:
        time = timestamp(3)
        watermark = Watermark(rowtime, Ref(len(declared), rowtime, time))
        declared.append(Column(rowtime, time))
        fields.append(Field(rowtime, time, "rowtime"))
    options = {"topic": name} | OPTIONS[changelog]
    table = Table(name, tuple(declared), options, tuple(key.split()), watermark)
    return Scan(table, tuple(fields), Position(1, 1))


def make_join(
    left: Logical,
    right: Logical,
    kind: JoinType = "inner",
    on: Expr | None = None,
    as_of: Expr | None = None,
) -> Join:
    return Join(left, right, kind, on, as_of, Position(2, 1))


def make_ref(node: Logical, name: str) -> Ref:
    """The column of that name."""
    index = next(i for i, f in enumerate(node.fields) if f.name == name)
    return Ref(index, name, node.fields[index].type)


def make_call(op: str, *args: Expr) -> Call:
    return Call(op, args, BOOLEAN)


@pytest.fixture
def scan() -> Callable[..., Scan]:
    return make_scan


@pytest.fixture
def join() -> Callable[..., Join]:
    return make_join


@pytest.fixture
def ref() -> Callable[[Logical, str], Ref]:
    return make_ref


@pytest.fixture
def call() -> Callable[..., Call]:
    return make_call


@pytest.fixture
def job() -> Callable[[str], Job]:
    """A job file over the tables of TABLES."""
    return lambda sql: bind(TABLES + sql)


@pytest.fixture
def optimized() -> Callable[[str], Logical]:
    """A query over the tables of TABLES, after the rules."""
    return lambda sql: optimize(bind_query(TABLES + sql).query)


def of_kind(root: Physical, kind: type) -> list[Any]:
    """The scans of a plan, or the operators whose machine is of the kind, parents first."""
    return [n for n in nodes(root) if isinstance(getattr(n, "machine", n), kind)]
