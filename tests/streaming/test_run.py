"""`rejoin run` as a process of its own through a real broker: results, stops, crashes."""

import json
import secrets
import signal
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import free_ports, port_is_free
from spark_jobs.status import read_status
from tests.harness.shop import (
    PAID,
    START_S,
    Shop,
    orders,
    paid,
    payments,
    payments_job,
    text,
    wait_until,
    written,
)

NOON_MS = 1_704_110_400_000  # 2024-01-01 12:00
STOP_S = 30.0
SHOP_MESSAGES = Path(__file__).parents[1] / "fixtures" / "protobuf" / "shop.desc"

NAMED = """\
INSERT INTO named_sink
SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer_id = c.id;
"""
UNIONS = """\
INSERT INTO paid_sink
SELECT o.id, o.customer, p.amount FROM orders AS o JOIN payments AS p ON o.id = p.order_id
UNION ALL
SELECT -o.id, o.customer, p.amount FROM orders AS o JOIN payments AS p ON o.id + 1 = p.order_id;
INSERT INTO seen_sink
SELECT id, customer FROM orders
UNION ALL
(SELECT DISTINCT -id, customer FROM orders UNION ALL SELECT order_id, 'paid' FROM payments);
"""
COUNT_OF_NOTHING = """\
INSERT INTO counts_sink
SELECT COUNT(*), SUM(id) FROM orders WHERE FALSE UNION ALL SELECT id, 1 FROM orders;
"""
WRITES = """\
INSERT INTO seen_sink SELECT id, TO_TIMESTAMP_LTZ(id, 0), MAP['k', X'01'] FROM source;
INSERT INTO plain_sink SELECT id FROM plain;
"""
PRICED = """\
INSERT INTO priced_sink
SELECT o.id, p.price
FROM orders AS o LEFT JOIN prices FOR SYSTEM_TIME AS OF o.`at` AS p ON o.item = p.item;
INSERT INTO large_sink SELECT id, item FROM orders WHERE id > 2;
"""


@pytest.fixture
def shop(broker: Broker, tmp_path: Path) -> Iterator[Shop]:
    made = Shop(broker, tmp_path)
    yield made
    for child in made.running:
        child.stop(0.0)


def epoch(shop: Shop) -> int:
    """The last one that the status tells of."""
    found = read_status(shop.folder / "status")
    known = None if found is None or not found.queries else found.queries[0].epoch
    return -1 if known is None else known


def test_bounded_upsert_join_ends_with_its_result(shop: Shop) -> None:
    shop.create("customers", "orders", "named_sink")
    shop.send("customers", [{"id": i, "name": f"n{i}"} for i in range(5)], key="id")
    shop.send("customers", [{"id": 2, "name": "two"}], key="id")
    shop.send("orders", [{"id": i, "customer_id": i % 7} for i in range(20)], key="id")
    bounded = {"scan__bounded__mode": "latest-offset"}
    shop.run(
        shop.table(
            "customers",
            "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED",
            "upsert-kafka",
            **bounded,
        )
        + shop.table(
            "orders",
            "id BIGINT, customer_id BIGINT, PRIMARY KEY (id) NOT ENFORCED",
            "upsert-kafka",
            **bounded,
        )
        + shop.table(
            "named_sink", "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED", "upsert-kafka"
        )
        + NAMED
    )
    names = {i: f"n{i}" for i in range(5)} | {2: "two"}
    latest: dict[bytes, bytes | None] = {}
    for message in shop.messages("named_sink", lambda found: len(found) >= 20):
        latest[message.key()] = message.value()
    found = sorted(
        (row["id"], row["name"])
        for row in (json.loads(v) for v in latest.values() if v is not None)
    )
    assert found == [(i, names.get(i % 7)) for i in range(20)]
    status = shop.status()
    assert status.state == "stopped"
    (query,) = status.queries
    assert query.lag_records == 0
    assert query.epoch is not None
    assert query.input_rows_total == 26


def test_a_running_job_finds_topics_and_writes_metadata(shop: Shop) -> None:
    """Two queries, of which one has a pattern: the other one runs on, from JSON to protobuf."""
    shop.create("in_a", "plain", "seen_sink", "plain_sink")
    shop.send("in_a", [b"\x08\1"])  # field 1 of the message
    shop.send("plain", [b'\0\0\0\0\7{"id": 1}'])
    found = {"topic_pattern": f"{shop.prefix}_in_[a-z]", "topic": ""}
    interval = {"scan__topic-partition-discovery__interval": "1 s"}
    message = {
        "value__format": "protobuf",
        "value__protobuf__descriptor-file": str(SHOP_MESSAGES),
        "value__protobuf__message-name": "shop.Order",
    }
    metadata = "seen TIMESTAMP_LTZ(3) METADATA FROM 'timestamp', h MAP<STRING, BYTES> METADATA FROM"
    child = shop.start(
        shop.table("source", "id BIGINT", **found, **interval, **message)
        + shop.table("plain", "id BIGINT", value__format="json-registry")
        + shop.table("plain_sink", "id BIGINT", **message)
        + shop.table("seen_sink", f"id BIGINT, {metadata} 'headers'")
        + WRITES
    )
    wait_until(lambda: written(shop) >= 1, child)
    shop.create("in_b")
    shop.send("in_b", [b"\x08\2", b"\x08\3"])
    seen = shop.messages("seen_sink", lambda messages: len(messages) >= 3)
    assert sorted(message.timestamp()[1] for message in seen) == [1_000, 2_000, 3_000]
    assert [message.headers() for message in seen] == [[("k", b"\1")]] * 3
    assert [json.loads(m.value() or b"") for m in seen if m.timestamp()[1] == 1_000] == [{"id": 1}]
    topics = {shop.topic("in_a"), shop.topic("in_b")}
    wait_until(lambda: {s.topic for q in shop.status().queries for s in q.sources} >= topics, child)
    record = json.loads((shop.folder / "status" / "job.json").read_text())
    (source,) = [n for q in record["queries"] for n in q["nodes"] if n["table"] == "source"]
    assert set(source["topics"]) == topics
    shop.send("plain", [b'\0\0\0\0\7{"id": 2}'])
    plain = shop.messages("plain_sink", lambda messages: len(messages) >= 2)
    assert sorted(message.value() or b"" for message in plain) == [b"\x08\1", b"\x08\2"]
    child.stop(STOP_S)
    assert child.exit_code == 0, child.log_tail(40)


@pytest.mark.timeout(600)
def test_sigterm_ends_in_order_and_a_restart_goes_on(shop: Shop) -> None:
    shop.create("orders", "payments", "paid_sink")
    sql = payments_job(shop, bounded=False)
    shop.send("orders", orders(0, 300))
    shop.send("payments", payments(0, 300))
    (port,) = free_ports(1)
    child = shop.start(sql, f"--sidecar-port={port}")
    wait_until(lambda: written(shop) >= paid(0, 300).total(), child)
    # the rows are counted before Spark reports their epoch
    ready = f"http://127.0.0.1:{port}/health/ready"
    wait_until(lambda: httpx.get(ready).status_code == 200, child)
    started = time.monotonic()
    child.stop(STOP_S)
    assert time.monotonic() - started < STOP_S
    assert child.exit_code == 0, child.log_tail(40)
    assert shop.status().state == "stopped"
    assert port_is_free(port)

    shop.send("orders", orders(300, 400))
    shop.send("payments", payments(300, 400))
    child = shop.start(sql)
    everything = paid(0, 400)
    wait_until(lambda: written(shop) >= everything.total(), child)
    # somebody else on the same checkpoint
    second = shop.start(sql)
    assert second.wait(START_S)
    assert second.exit_code == 2
    assert "CHECKPOINT_IN_USE" in second.log_tail()
    # Ctrl-C, in the middle of work
    shop.send("orders", orders(400, 3000))
    shop.send("payments", payments(400, 3000))
    child._send(signal.SIGINT)
    assert child.wait(STOP_S), child.log_tail(40)
    assert child.exit_code == 0, child.log_tail(40)
    child = shop.start(sql)
    everything = paid(0, 3000)
    wait_until(lambda: written(shop) >= everything.total(), child)
    assert shop.rows("paid_sink", everything.total()) == everything


@pytest.mark.timeout(600)
def test_the_row_of_an_aggregate_without_input_comes_once(shop: Shop) -> None:
    """Before any record, and not again when the job was killed and comes back."""
    shop.create("orders", "counts_sink")
    counts = shop.table("counts_sink", "n BIGINT, m BIGINT")
    sql = shop.table("orders", "id BIGINT") + counts + COUNT_OF_NOTHING
    child = shop.start(sql)
    wait_until(lambda: written(shop) >= 1, child)
    child.stop(0.0)
    shop.send("orders", [{"id": 5}])
    child = shop.start(sql)
    both = Counter(text(row) for row in ({"n": 0, "m": None}, {"n": 5, "m": 1}))
    assert shop.rows("counts_sink", 2) == both


@pytest.mark.timeout(900)
def test_kill_at_random_moments_loses_and_repeats_nothing(shop: Shop) -> None:
    shop.create("orders", "payments", "paid_sink")
    rows = 6000
    shop.send("orders", orders(0, rows))
    shop.send("payments", payments(0, rows))
    sql = (
        "SET 'rejoin.max-offsets-per-trigger' = '100';\n"
        "SET 'rejoin.trigger-interval' = '0 ms';\n" + payments_job(shop, bounded=True)
    )
    pauses = run_with_kills(shop, sql, 3)
    assert shop.rows("paid_sink", paid(0, rows).total()) == paid(0, rows), f"pauses {pauses}"


def run_with_kills(shop: Shop, sql: str, kills: int) -> list[float]:
    """Run a bounded job, killed in the middle; returns how long after an epoch each time."""
    pauses = [secrets.SystemRandom().uniform(0, 1.5) for _ in range(kills)]
    for pause_s in pauses:
        before = epoch(shop)
        child = shop.start(sql)
        while epoch(shop) <= before and not child.wait(0.05):
            pass
        time.sleep(pause_s)
        assert child.exit_code is None, "the job had ended before it could be killed"
        child.kill()
    shop.run(sql)
    return pauses


@pytest.mark.long
@pytest.mark.timeout(900)
def test_kill_in_unions_of_two_sinks_loses_and_repeats_nothing(shop: Shop) -> None:
    """One sink of two joins, and one of two scans with an operator between them."""
    shop.create("orders", "payments", "paid_sink", "seen_sink")
    rows = 900
    shop.send("orders", orders(0, rows))
    shop.send("payments", payments(0, rows))
    tables = payments_job(shop, bounded=True).removesuffix(PAID)
    seen_sink = shop.table("seen_sink", "id BIGINT, customer STRING")
    pauses = run_with_kills(
        shop,
        "SET 'rejoin.max-offsets-per-trigger' = '100';\n"
        f"SET 'rejoin.trigger-interval' = '0 ms';\n{tables}{seen_sink}{UNIONS}",
        2,
    )
    before = Counter(
        text({"id": -o["id"], "customer": o["customer"], "amount": p["amount"]})
        for p in payments(1, rows)
        for o in orders(p["order_id"] - 1, p["order_id"])
    )
    both = paid(0, rows) + before
    assert shop.rows("paid_sink", both.total()) == both, f"pauses {pauses}"
    seen = Counter(text({**o, "id": sign * o["id"]}) for o in orders(0, rows) for sign in (1, -1))
    seen += Counter(text({"id": p["order_id"], "customer": "paid"}) for p in payments(0, rows))
    assert shop.rows("seen_sink", seen.total()) == seen, f"pauses {pauses}"


def test_at_least_once_delivers_everything(shop: Shop) -> None:
    shop.create("orders", "payments", "paid_sink")
    shop.send("orders", orders(0, 100))
    shop.send("payments", payments(0, 100))
    shop.run(payments_job(shop, bounded=True, sink__delivery_guarantee="at-least-once"))
    assert shop.rows("paid_sink", paid(0, 100).total()) == paid(0, 100)


def test_two_queries_of_one_job_end_with_the_last_due_row(shop: Shop) -> None:
    """A temporal join, whose last rows wait for the end mark, beside a query without state."""
    shop.create("orders", "prices", "priced_sink", "large_sink", "letters")
    shop.send(
        "prices",
        [
            {"item": "a", "price": 1, "at": "2024-01-01 10:00:00"},
            {"item": "a", "price": 2, "at": "2024-01-01 11:00:00"},
            {"item": "b", "price": 7, "at": "2024-01-01 11:30:00"},
        ],
        key="item",
    )
    shop.send(
        "orders",
        [
            {"id": 1, "item": "a", "at": "2024-01-01 09:59:59"},
            {"id": 2, "item": "a", "at": "2024-01-01 10:00:00"},
            b"{broken",
            {"id": 3, "item": "a", "at": "2024-01-01 11:00:01"},
            {"id": 4, "item": "b", "at": "2024-01-01 12:00:00"},
        ],
    )
    ends = {"scan__bounded__mode": "latest-offset"}
    letters = {"rejoin__dead_letter__topic": shop.topic("letters")}
    child = shop.run(
        shop.table(
            "orders",
            "id BIGINT, item STRING, `at` TIMESTAMP(3), WATERMARK FOR `at` AS `at`",
            **ends,
            **letters,
        )
        + shop.table(
            "prices",
            "item STRING, price INT, `at` TIMESTAMP(3), PRIMARY KEY (item) NOT ENFORCED, "
            "WATERMARK FOR `at` AS `at`",
            "upsert-kafka",
            **ends,
        )
        + shop.table("priced_sink", "id BIGINT, price INT")
        + shop.table("large_sink", "id BIGINT, item STRING")
        + PRICED
    )
    assert shop.rows("priced_sink", 4) == Counter(
        text({"id": i, "price": price}) for i, price in [(1, None), (2, 1), (3, 2), (4, 7)]
    )
    assert shop.rows("large_sink", 2) == Counter(
        text(row) for row in ({"id": 3, "item": "a"}, {"id": 4, "item": "b"})
    )
    queries = {q.name: q for q in shop.status().queries}
    assert set(queries) == {"priced_sink", "large_sink"}
    rejects = {name: query.rejects for name, query in queries.items()}
    assert all(told == {"json-malformed": 1} for told in rejects.values())  # each has read it
    totals = {name: query.input_rows_total for name, query in queries.items()}
    assert totals == {"priced_sink": 8, "large_sink": 3}  # the filter stands before what counts
    [source] = [s for s in queries["priced_sink"].sources if s.table == "orders"]
    known = [p.watermark_ms for p in source.partitions if p.watermark_ms is not None]
    assert max(known) == NOON_MS
    values = [m.value() for m in shop.messages("letters", lambda found: bool(found))]
    assert set(values) == {b"{broken"}, child.log_tail()


def test_broken_record_fails_the_job_by_default(shop: Shop) -> None:
    shop.create("orders", "payments", "paid_sink")
    shop.send("orders", [b"{not json"])
    child = shop.start(payments_job(shop, bounded=True))
    assert child.wait(START_S)
    assert child.exit_code == 2
    assert "RECORD_REJECTED" in child.log_tail(4)
    assert shop.topic("orders") in child.log_tail(4)
    status = shop.status()
    assert status.state == "failed"
    assert status.error is not None
    assert status.error.code == "RECORD_REJECTED"


def test_changed_key_groups_are_refused(shop: Shop) -> None:
    shop.create("orders", "payments", "paid_sink")
    shop.send("orders", orders(0, 10))
    shop.send("payments", payments(0, 10))
    sql = payments_job(shop, bounded=True)
    shop.run(sql)
    child = shop.start("SET 'rejoin.key-groups' = '64';\n" + sql)
    assert child.wait(START_S)
    assert child.exit_code == 2
    assert "CHECKPOINT_MISMATCH" in child.log_tail()
    # the same job again has nothing left to do: its inputs end where they ended at its first start
    shop.send("orders", orders(10, 20))
    shop.send("payments", payments(10, 20))
    shop.run(sql)
    assert shop.rows("paid_sink", paid(0, 10).total()) == paid(0, 10)
    (query,) = shop.status().queries
    assert (query.input_rows_total, query.output_rows_total) == (
        10 + len(payments(0, 10)),
        paid(0, 10).total(),
    )
    # each result was committed some time after its newest record, and the checkpoint knows of it
    assert sum(query.latency.counts.values()) == query.output_rows_total
    assert 0 < query.latency.sum_ms < query.output_rows_total * START_S * 1000
