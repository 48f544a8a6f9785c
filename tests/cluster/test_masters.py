"""The same job in the driver's JVM and on executors: the same results, and a whole status."""

import json
from collections import Counter
from datetime import datetime, timedelta

import pytest

from spark_jobs.status import QueryStatus
from tests.harness.shop import Row, Shop
from tests.harness.standalone import Standalone

ORDERS = 600
NOON = datetime(2024, 1, 1, 12)
SMALL_EPOCHS = "SET 'rejoin.max-offsets-per-trigger' = '300';\n"
INSERTS = """\
INSERT INTO priced_sink
SELECT o.id, o.amount * p.price
FROM orders AS o LEFT JOIN prices FOR SYSTEM_TIME AS OF o.`at` AS p ON o.item = p.item;
INSERT INTO named_sink
SELECT o.id, c.name FROM orders AS o LEFT JOIN customers AS c ON o.customer_id = c.id;
INSERT INTO shipped_sink
SELECT o.id, s.id FROM orders AS o LEFT JOIN shipments AS s
ON o.id = s.order_id AND s.`at` BETWEEN o.`at` AND o.`at` + INTERVAL '1' HOUR;
"""
SINKS = ("priced_sink", "named_sink", "shipped_sink")


def at(minutes: float) -> str:
    return str(NOON + timedelta(minutes=minutes))


def fill(shop: Shop) -> None:
    """Orders of four hours; items whose price changes, customers whose name does, shipments."""
    shop.create("orders", "prices", "customers", "shipments", "letters")
    every = 240 / ORDERS
    orders: list[Row | bytes] = [
        {
            "id": i,
            "customer_id": i % 61,
            "item": f"i{i % 7}",
            "amount": 1 + i % 3,
            "at": at(i * every),
        }
        for i in range(ORDERS)
    ]
    shop.send("orders", [*orders[:300], b"{broken", *orders[300:]])
    prices = [{"item": f"i{n % 5}", "price": 10 + n, "at": at(4 * n)} for n in range(60)]
    shop.send("prices", prices, key="item")
    customers: list[Row] = [{"id": n % 50, "name": f"n{n}"} for n in range(120)]
    shop.send("customers", customers, key="id")
    shipments: list[Row] = [
        {"id": 10_000 + i, "order_id": i, "at": at(i * every + i % 90)}
        for i in range(ORDERS)
        if i % 4
    ]
    shipments.sort(key=lambda row: str(row["at"]))
    shop.send("shipments", shipments)


def job(shop: Shop) -> str:
    ends = {"scan__bounded__mode": "latest-offset"}
    time = "`at` TIMESTAMP(3), WATERMARK FOR `at` AS `at`"
    letters = {"rejoin__dead_letter__topic": shop.topic("letters")}
    return (
        shop.table(
            "orders",
            f"id BIGINT, customer_id BIGINT, item STRING, amount INT, {time}",
            **ends,
            **letters,
        )
        + shop.table(
            "prices",
            f"item STRING, price INT, {time}, PRIMARY KEY (item) NOT ENFORCED",
            "upsert-kafka",
            **ends,
        )
        + shop.table(
            "customers",
            "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED",
            "upsert-kafka",
            **ends,
        )
        + shop.table("shipments", f"id BIGINT, order_id BIGINT, {time}", **ends)
        + shop.table("priced_sink", "id BIGINT, price INT")
        + shop.table(
            "named_sink", "id BIGINT, name STRING, PRIMARY KEY (id) NOT ENFORCED", "upsert-kafka"
        )
        + shop.table("shipped_sink", "id BIGINT, shipment BIGINT")
    )


def results(shop: Shop, master: str, *options: str) -> dict[str, Counter[str]]:
    """The final rows of each sink after a run with these options, in topics of the master's own."""
    topics = {sink: f"{sink}_{master}" for sink in SINKS}
    shop.create(*topics.values())
    sql = SMALL_EPOCHS + job(shop) + INSERTS
    for sink, topic in topics.items():
        sql = sql.replace(f"'{shop.topic(sink)}'", f"'{shop.topic(topic)}'")
    shop.run(sql, "--no-sidecar", *options)
    return {
        "priced_sink": shop.rows(topics["priced_sink"], ORDERS),
        "named_sink": latest(shop, topics["named_sink"]),
        "shipped_sink": shop.rows(topics["shipped_sink"], ORDERS),
    }


def latest(shop: Shop, topic: str) -> Counter[str]:
    """Of an upsert topic the last row of each key."""
    rows: dict[bytes, bytes | None] = {}
    for message in shop.messages(topic, lambda found: len(found) >= ORDERS):
        rows[message.key()] = message.value()
    return Counter(json.dumps(json.loads(value)) for value in rows.values() if value)


def totals(query: QueryStatus) -> dict[str, object]:
    """What a status says that does not depend on how rows and tasks fell into epochs."""
    return {
        "input": query.input_rows_total,
        "rejects": query.rejects,
        "late": query.late_rows_total,
        "state": [(o.id, o.sides) for o in query.operators],
        "partitions": [
            (s.table, p.partition, p.offset, p.watermark_ms)
            for s in query.sources
            for p in s.partitions
        ],
    }


def masters(standalone: Standalone) -> dict[str, tuple[str, ...]]:
    """Options of `rejoin run`: this process alone first."""
    properties = ("--spark-properties", str(standalone.properties))
    return {
        "local": ("--master", "local[2]"),
        "local-cluster": ("--master", "local-cluster[2,1,2048]"),
        "standalone": ("--master", standalone.url, *properties),
    }


@pytest.mark.timeout(3600)
def test_executors_write_and_report_what_the_driver_alone_does(
    shop: Shop, standalone: Standalone
) -> None:
    fill(shop)
    sources = shop.folder
    written: dict[str, dict[str, Counter[str]]] = {}
    told: dict[str, object] = {}
    for name, options in masters(standalone).items():
        shop.folder = sources / name
        shop.folder.mkdir()
        written[name] = results(shop, name, *options)
        told[name] = [totals(query) for query in shop.status().queries]
        for query in shop.status().queries:
            assert query.transactions_committed_total > 0, name
            assert all(o.state_bytes > 0 for o in query.operators), name
    assert {s: rows.total() for s, rows in written["local"].items()} == dict.fromkeys(SINKS, ORDERS)
    assert written["local-cluster"] == written["standalone"] == written["local"]
    assert told["local-cluster"] == told["standalone"] == told["local"]
