"""The demo's shop, its independent computation and its verdict, without broker or Spark."""

import io
import json
from collections.abc import Sequence
from itertools import islice, pairwise
from pathlib import Path

import pytest

from spark_jobs.demo.encoding import broken_records, records_of
from spark_jobs.demo.json_encoding import JsonEncoding
from spark_jobs.demo.run import DemoFolder, job_text
from spark_jobs.demo.shop import (
    CLOSING_MS,
    ORDER_PARTITIONS,
    ORDERS,
    PRODUCTS,
    Order,
    ProductChange,
    Record,
    Shop,
    ShopEvent,
    sql_time,
)
from spark_jobs.demo.show import Screen
from spark_jobs.demo.show_json import JsonScreen
from spark_jobs.demo.verify import DeadLetterAudit, JoinedRow, ReceivedDeadLetter, RowAudit
from spark_jobs.errors import ConfigError

JSON = JsonEncoding()
KINDS = len(JSON.broken_values())
OPENED_MS = 1_597_449_600_000  # 2020-08-15T00:00:00Z


def events(seconds: float = 60.0, rate: float = 50.0, changes: float = 5.0) -> list[ShopEvent]:
    shop = Shop(OPENED_MS, rate, changes)
    return [*shop.opening(), *shop.until(seconds), *shop.closing()]


def told(all_events: Sequence[ShopEvent]) -> RowAudit:
    audit = RowAudit(JSON.joined_row)
    for event in all_events:
        if isinstance(event, Order):
            audit.expect(event)
        else:
            audit.history.add(event)
    return audit


def sink_value(row: JoinedRow) -> bytes:
    """As the job's sink writes it; the fraction without its last zeros."""
    return json.dumps(
        {
            "order_id": row.order_id,
            "order_time": sql_time(row.order_ms).rstrip("0").rstrip("."),
            "product_name": row.product_name,
            "product_time": None if row.product_ms is None else sql_time(row.product_ms),
            "price": None if row.price is None else float(row.price),
        }
    ).encode()


def test_the_same_seed_gives_the_same_events_however_often_one_asks() -> None:
    shop = Shop(OPENED_MS, 50.0, 5.0)
    in_steps: list[ShopEvent] = [*shop.opening()]
    for tick in range(1, 601):
        in_steps += shop.until(tick / 10)
    assert [*in_steps, *shop.closing()] == events()
    other = Shop(OPENED_MS, 50.0, 5.0, seed=5)
    assert [*other.opening(), *other.until(60), *other.closing()] != events()


@pytest.mark.parametrize(("rate", "changes"), [(50.0, 5.0), (1_000.0, 25.0), (4_000.0, 100.0)])
def test_event_times_rise_so_that_no_row_is_late(rate: float, changes: float) -> None:
    all_events = events(5.0, rate, changes)
    body = [e for e in all_events[:-ORDER_PARTITIONS] if isinstance(e, Order)]
    for times in (
        [order.time_ms for order in body],
        [change.time_ms for change in all_events if isinstance(change, ProductChange)],
    ):
        assert all(earlier < later for earlier, later in pairwise(times))


def test_the_rates_are_kept() -> None:
    all_events = events(60.0, 50.0, 5.0)
    assert sum(isinstance(e, Order) for e in all_events) == 60 * 50 + ORDER_PARTITIONS
    streamed = [e for e in all_events if isinstance(e, ProductChange) and e.op != "r"]
    assert len(streamed) == 60 * 5 + 1
    assert {e.op for e in all_events if isinstance(e, ProductChange)} == {"r", "c", "u", "d"}


def test_the_closing_moves_every_watermark_to_one_time_past_all_data() -> None:
    *body, change, first, second = events()
    latest = max(event.time_ms for event in body)
    assert {event.time_ms for event in (change, first, second)} == {latest + CLOSING_MS}
    assert isinstance(change, ProductChange)
    partitions = {records_of(order, JSON)[0].partition for order in (first, second)}
    assert partitions == set(range(ORDER_PARTITIONS))


def test_changes_are_debezium_envelopes() -> None:
    changes = [e for e in events() if isinstance(e, ProductChange)]
    on_sale: dict[str, object] = {}
    for change in changes:
        envelope, *rest = records_of(change, JSON)
        assert envelope.topic == PRODUCTS
        key = json.loads(envelope.key or b"")["product_id"]
        value = json.loads(envelope.value or b"")
        assert value["op"] == change.op
        assert value["source"]["ts_ms"] == change.time_ms
        assert value["source"]["snapshot"] == ("true" if change.op == "r" else "false")
        assert value["before"] == on_sale.pop(key, None)
        if change.op == "d":
            assert value["after"] is None
            assert rest == [Record(PRODUCTS, 0, envelope.key, None)]
        else:
            assert rest == []
            assert value["after"]["product_id"] == key
            on_sale[key] = value["after"]


def test_orders_are_json_in_the_table_s_columns() -> None:
    (record,) = records_of(Order(7, None, OPENED_MS + 60_001), JSON)
    assert (record.topic, record.partition, record.key) == (ORDERS, 1, b"o_000007")
    assert json.loads(record.value or b"") == {
        "order_id": "o_000007",
        "product_id": None,
        "order_time": "2020-08-15 00:01:00.001",
    }


def test_the_expectation_is_the_last_change_at_or_before_the_order() -> None:
    """Against a replay of the whole history for every order, instead of a search in an index."""
    all_events = events(30.0)
    audit = told(all_events)
    changes = [e for e in all_events if isinstance(e, ProductChange)]
    unmatched = 0
    for order in (e for e in all_events if isinstance(e, Order)):
        version: ProductChange | None = None
        for change in changes:
            if change.product_id == order.product_id and change.time_ms <= order.time_ms:
                version = change
        row = audit.expected(order)
        if version is None or version.after is None:
            unmatched += 1
            assert (row.product_name, row.product_ms, row.price) == (None, None, None)
        else:
            product = version.after
            found = (row.product_name, row.product_ms, row.price)
            assert found == (product.name, version.time_ms, product.price)
    assert unmatched > 20


def test_every_right_row_passes() -> None:
    all_events = events(10.0)
    audit = told(all_events)
    orders = [e for e in all_events if isinstance(e, Order)]
    for order in orders:
        finding, _ = audit.check(sink_value(audit.expected(order)))
        assert finding == "right"
    verdict = audit.verdict(complete=True)
    assert verdict.passed
    assert (verdict.orders, verdict.right, verdict.problems) == (len(orders), len(orders), ())
    assert verdict.without_product > 0


@pytest.mark.parametrize(
    "change",
    [
        {"product_name": "kettle of another time"},
        {"price": 0.01},
        {"price": "11.11"},
        {"price": None},
        {"product_time": "2020-08-15 00:00:00.999"},
        {"product_time": None},
        {"order_time": "2020-08-15 00:00:00.999"},
        {"order_time": None},
        {"order_time": "2020-08-15T00:00:00.020Z"},
        {"order_id": "o_999999"},
        {"extra": 1},
    ],
)
def test_a_wrong_row_is_found(change: dict[str, object]) -> None:
    audit = told(events(1.0))
    order = Order(1, "p_001", OPENED_MS + 20)
    value = json.loads(sink_value(audit.expected(order)))
    value["product_name"] = value["product_name"] or "scooter"
    finding, _ = audit.check(json.dumps({**value, **change}).encode())
    assert finding == "wrong"
    verdict = audit.verdict(complete=False)
    assert not verdict.passed
    assert len(verdict.problems) == 1


@pytest.mark.parametrize("value", [None, b"", b"{", b"[]", b"7", b"\xff"])
def test_what_is_no_row_is_wrong(value: bytes | None) -> None:
    audit = told(events(1.0))
    assert audit.check(value) == ("wrong", None)
    assert not audit.verdict(complete=False).passed


def test_a_doubled_row_is_found_long_after_the_first() -> None:
    all_events = events(10.0)
    audit = told(all_events)
    values = [sink_value(audit.expected(e)) for e in all_events if isinstance(e, Order)]
    assert {audit.check(value)[0] for value in values} == {"right"}
    assert audit.check(values[3])[0] == "doubled"
    verdict = audit.verdict(complete=True)
    assert not verdict.passed
    assert (verdict.doubled, verdict.wrong, verdict.missing) == (1, 0, 0)


def test_a_missing_row_is_found_only_when_none_is_on_its_way() -> None:
    all_events = events(10.0)
    audit = told(all_events)
    orders = [e for e in all_events if isinstance(e, Order)]
    for order in orders[:-1]:
        audit.check(sink_value(audit.expected(order)))
    assert audit.due == 1
    assert audit.verdict(complete=False).passed
    verdict = audit.verdict(complete=True)
    assert not verdict.passed
    assert verdict.problems == (f"missing: {orders[-1].order_id}",)


def test_broken_records_cannot_be_decoded_and_reach_every_partition() -> None:
    records = list(islice(broken_records(JSON.broken_values()), 2 * KINDS))
    assert {(r.topic, r.partition) for r in records} == {(ORDERS, 0), (ORDERS, 1), (PRODUCTS, 0)}
    assert len({r.value for r in records}) == KINDS
    assert len({r.key for r in records}) == len(records)


def letter_audit() -> DeadLetterAudit:
    records = list(islice(broken_records(JSON.broken_values()), 3))
    return DeadLetterAudit({(r.topic, r.partition, n): r for n, r in enumerate(records)})


def dead_letters(audit: DeadLetterAudit) -> list[ReceivedDeadLetter]:
    return [
        ReceivedDeadLetter(position, "why", r.key, r.value) for position, r in audit.sent.items()
    ]


def test_dead_letters_that_arrive_once_with_their_bytes_pass() -> None:
    audit = letter_audit()
    assert audit.outstanding == 3
    audit.received = dead_letters(audit)
    assert audit.outstanding == 0
    assert audit.problems() == []


def test_wrong_dead_letters_are_found() -> None:
    audit = letter_audit()
    first, second, third = dead_letters(audit)
    changed = ReceivedDeadLetter(second.position, second.reason, second.key, b"other bytes")
    stranger = ReceivedDeadLetter((ORDERS, 0, 99), "why", None, b"")
    audit.received = [first, first, changed, stranger]
    assert audit.outstanding == 1
    assert [problem.split(" ")[0] for problem in audit.problems()] == ["2", "dead", "changed", "no"]
    assert third.position not in {letter.position for letter in audit.received}


def test_the_screen_shows_a_sample_and_every_count_without_escapes_in_a_file() -> None:
    all_events = events(10.0)
    audit = told(all_events)
    out = io.StringIO()
    screen = Screen(out)
    orders = [e for e in all_events if isinstance(e, Order)]
    screen.rows([audit.check(sink_value(audit.expected(order))) for order in orders])
    screen.dead_letters(letter_audit(), 10)
    screen.verdict(audit.verdict(complete=True), [], complete=True)
    text = out.getvalue()
    assert 1 <= text.count("o_0000") <= 5
    assert f"{len(orders)} right" in text
    assert "VERIFIED" in text
    assert "\x1b" not in text


def test_programs_get_an_object_in_each_line() -> None:
    audit = told(events(1.0))
    out = io.StringIO()
    screen = JsonScreen(out)
    screen.say("  begins", "bold")
    screen.waiting(None, 2.5, 7)
    screen.dead_letters(letter_audit(), 10)
    screen.verdict(audit.verdict(complete=True), ["a letter"], complete=True)
    note, waiting, dead_letters, verdict = map(json.loads, out.getvalue().splitlines())
    assert note == {"event": "note", "text": "begins"}
    assert (waiting["seconds"], waiting["orders"]) == (2.5, 7)
    assert dead_letters["event"] == "dead-letters"
    assert not verdict["passed"]
    assert verdict["missing"] > 0
    assert "a letter" in verdict["problems"]


def test_the_job_file_names_the_broker_only_where_it_is_replaced() -> None:
    text = job_text(JSON, "127.0.0.1:12345")
    assert text.count("'127.0.0.1:12345'") == 3
    assert "localhost" not in text
    assert "${" not in text


def test_a_kept_folder_must_be_empty(tmp_path: Path) -> None:
    (tmp_path / "something").touch()
    with pytest.raises(ConfigError, match="not empty"):
        DemoFolder(tmp_path)
    with DemoFolder(tmp_path / "new") as demo:
        demo.log.touch()
    assert demo.log.exists()


def test_a_failed_demo_keeps_its_log_and_nothing_large() -> None:
    with DemoFolder(None) as demo:
        for folder in ("broker", "checkpoint", "status"):
            (demo.root / folder).mkdir()
        demo.log.touch()
        demo.failed = True
    assert sorted(path.name for path in demo.root.iterdir()) == ["job.log", "status"]
    demo.log.unlink()
    (demo.root / "status").rmdir()
    demo.root.rmdir()


def test_a_good_demo_leaves_nothing() -> None:
    with DemoFolder(None) as demo:
        demo.log.touch()
    assert not demo.root.exists()
