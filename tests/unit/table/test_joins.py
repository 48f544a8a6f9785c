"""Joins that two drafted tables suggest; each can be planned as it is printed."""

from typing import Any

from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from spark_jobs.table.ddl import render_table
from spark_jobs.table.draft import draft_table
from spark_jobs.table.join import (
    Join,
    JoinSide,
    joined,
    no_join,
    render_join,
    with_equal_times,
)
from tests.unit.table.samples import BROKERS, sampled

NOON = 1_704_110_400_000


def side(name: str, values: list[Any], keys: list[Any] | None = None) -> JoinSide:
    sample = sampled(values, keys, topic=name, compacted=keys is not None)
    return JoinSide(draft_table(sample, None, {}, 0.99), name)


def planned(join: Join | None) -> str:
    assert join is not None
    join = with_equal_times(join)
    sides = (join.left, join.right)
    tables = "\n".join(render_table(s.draft, s.name, BROKERS) for s in sides)
    text = render_join(tables, join, BROKERS, 1.0)
    plan(bind(f"{tables}\n{text}"))
    return text


ORDERS = [{"order_id": n, "customer_id": n % 3, "at": f"2024-01-01 12:00:0{n}"} for n in range(5)]
CUSTOMERS = [{"id": n, "name": f"c{n}"} for n in range(3)]


def test_a_keyed_table_is_looked_up_as_of_the_left_row() -> None:
    customers = side("customers", CUSTOMERS, [{"id": n} for n in range(3)])
    join = joined(customers, side("orders", list(ORDERS)))
    text = planned(join)
    assert "LEFT JOIN customers FOR SYSTEM_TIME AS OF l.at AS r" in text
    assert "l.customer_id = r.id" in text
    assert "3 of 3 sampled values" in " ".join(text.replace("--", "").split())


def test_two_append_only_tables_are_joined_within_an_interval() -> None:
    payments = [{"order_id": n, "paid_at": f"2024-01-01 12:00:0{n + 3}"} for n in range(5)]
    text = planned(joined(side("orders", list(ORDERS)), side("payments", payments)))
    assert "r.paid_at BETWEEN l.at - INTERVAL '1' SECOND AND l.at + INTERVAL '5' SECOND" in text


def test_two_keyed_tables_are_joined_by_their_current_rows() -> None:
    customers = side("customers", CUSTOMERS, [{"id": n} for n in range(3)])
    orders = side("orders", list(ORDERS), [{"order_id": n} for n in range(5)])
    text = planned(joined(orders, customers))
    assert "LEFT JOIN customers AS r" in text
    assert "PRIMARY KEY (order_id) NOT ENFORCED" in text


def test_changes_without_a_key_are_retracted_in_the_result() -> None:
    events = [{"op": "+I", "data": {"customer_id": 1, "v": 2}}]
    customers = side("customers", CUSTOMERS, [{"id": n} for n in range(3)])
    assert "'format' = 'debezium-json'" in planned(joined(side("events", events), customers))


def test_tables_without_a_common_column() -> None:
    first, second = side("a", [{"x": True}]), side("b", [{"y": 1}])
    assert joined(first, second) is None
    assert no_join(first, second).startswith("-- No join")
