"""What `make e2e` relies on: the same statements for a seed, and a comparison that can fail."""

from collections import Counter
from datetime import UTC, datetime
from decimal import Decimal
from functools import cache

import pytest

from tests.e2e.compare import Events, differences
from tests.e2e.run import Report
from tests.e2e.wire import Fields, JsonWire
from tests.e2e.workload import ADD_COLUMN_AT, Statement, Transaction, Workload

COUNT = 2_000


@cache
def transactions(seed: int) -> list[Transaction]:
    workload = Workload(seed)
    opening = workload.opening()
    body = list(workload.transactions(COUNT))
    closing, _ = workload.closing()
    return [opening, *body, closing]


def statements(seed: int) -> list[Statement]:
    return [s for t in transactions(seed) if t.commits for s in t.statements]


def test_a_seed_gives_the_same_statements_again() -> None:
    once_more = transactions.__wrapped__
    assert transactions(1) == once_more(1)
    assert transactions(1) != once_more(2)


def test_every_kind_of_change_is_there() -> None:
    kinds = Counter(s.kind for s in statements(1))
    assert kinds.keys() == {
        "insert",
        "update",
        "update of a large text",
        "update without a change",
        "update to NULL",
        "update of a foreign key",
        "update of the primary key",
        "update of several rows",
        "delete",
        "insert of a deleted key",
        "alter table",
    }
    assert min(count for kind, count in kinds.items() if kind != "alter table") > 20
    assert sum(not t.commits for t in transactions(1)) > 40
    assert max(len(t.statements) for t in transactions(1)[1:]) > 3


def test_the_column_is_used_from_the_alter_on() -> None:
    body = transactions(1)[1:]
    at = next(n for n, t in enumerate(body) if t.statements[0].kind == "alter table")
    assert at == COUNT * ADD_COLUMN_AT
    used = [n for n, t in enumerate(body) if any("channel" in s.sql for s in t.statements)]
    assert used[0] == at
    assert len(used) > 100


ROW: Fields = {"order_id": 7, "customer_id": 3, "amount": Decimal("1.50")}


@pytest.mark.parametrize(
    ("got", "told"),
    [
        ({}, "order_details 7: missing"),
        ({7: {**ROW, "amount": Decimal("1.51")}}, "amount is Decimal('1.51'), the database says"),
        ({7: {**ROW, "amount": None}}, "amount is None, the database says Decimal('1.50')"),
        ({7: ROW, 8: {**ROW, "order_id": 8}}, "order_details 8: not in the database"),
    ],
)
def test_a_difference_is_told_with_the_events_behind_it(
    got: dict[object, Fields], told: str
) -> None:
    events = Events()
    events.places[("orders", 7)].append("e2e.public.orders[0]@5 c")
    events.places[("orders", 8)].append("e2e.public.orders[1]@9 c")
    events.places[("customers", 3)].append("e2e.public.customers[1]@2 u")
    (text,) = differences("order_details", got, {7: ROW}, events)
    assert told in text
    assert "e2e.public.orders[" in text
    assert "e2e.public.customers[1]@2 u" in text
    assert not Report(differences=[text]).passed


def test_equal_rows_are_equal_however_json_writes_them() -> None:
    wire = JsonWire()
    got = wire.row(b'{"order_id":7,"amount":1.5,"placed_at":"2026-01-01 00:00:00.5Z","note":null}')
    at = datetime(2026, 1, 1, 0, 0, 0, 500_000, tzinfo=UTC)
    wanted = {"order_id": 7, "amount": Decimal("1.50"), "placed_at": at, "note": None}
    assert list(differences("order_details", {7: got}, {7: wanted}, Events())) == []


def test_a_dead_letter_fails_the_run() -> None:
    assert Report().passed
    assert not Report(dead_letters={"avro-malformed": ["e2e.public.orders[0]@5"]}).passed


def test_what_no_reader_can_know_must_be_rejected_and_nothing_else() -> None:
    events = Events()
    left_out = "__debezium_unavailable_value"
    for order_id, op, note, place, was in (
        (1, "c", "text", "orders[0]@0", None),
        (1, "u", left_out, "orders[0]@1", None),  # healed
        (1, "d", None, "orders[0]@2", None),
        (4, "c", left_out, "orders[0]@3", 1),  # under a new key: healed as well
        (4, "d", None, "orders[0]@4", None),
        (2, "c", left_out, "orders[1]@0", 9),  # of an order that nobody knew
        (2, "u", left_out, "orders[1]@1", None),
        (3, "c", left_out, "orders[1]@2", 9),
        (3, "u", "whole again", "orders[1]@3", None),
    ):
        events.follow(order_id, op, note, place, was)
    assert events.hidden == {2}
    wanted = ["orders[1]@0", "orders[1]@1", "orders[1]@2"]
    reason = "debezium-unavailable-value"
    assert Report(events=events, dead_letters={reason: wanted}).passed
    for wrong in (wanted[1:], [*wanted, "orders[0]@1"], [*wanted, wanted[0]]):
        assert not Report(events=events, dead_letters={reason: wrong}).passed
    assert not Report(events=events, dead_letters={"avro-malformed": wanted}).passed
