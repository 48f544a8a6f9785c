"""The expected result of each workload against a plain join of its decoded records."""

import json
from collections import Counter
from typing import Any

import fastavro
import pytest

from bench.workloads.captured import CapturedData
from bench.workloads.catalog import WORKLOADS
from bench.workloads.churn import ChurnData
from bench.workloads.fan_out import FanOutData, places
from bench.workloads.hot_key import HOT, HotKeyData
from bench.workloads.latest import LatestData
from bench.workloads.reading import ReadingData
from bench.workloads.records import Expected
from bench.workloads.three_way import ThreeWayData
from bench.workloads.wide import COLUMNS, WideData
from bench.workloads.workload import Workload, render
from tests.unit.bench.decoding import appended, changes, table

NONE: dict[str, Any] = {}


def test_rows_with_many_matches() -> None:
    data = FanOutData(9_069, places(9_069))
    searches, offers = (appended(data, topic) for topic in data.topics)
    assert len(searches) + len(offers) == 9_069
    joined: Expected = {
        (s["search_id"], o["offer_id"]): (
            s["search_id"], o["offer_id"], s["place_id"], s["guests"], o["price"],
        )
        for s in searches
        for o in offers
        if s["place_id"] == o["place_id"]
    }  # fmt: skip
    assert data.expected() == joined
    of_place = Counter(offer["place_id"] for offer in offers)
    assert max(of_place.values()) == 1_000
    assert min(of_place.values()) == 1
    assert len(joined) < 3 * data.rows, "the output is bounded"


def test_right_rows_that_come_and_go() -> None:
    data = ChurnData(8_000, 600)
    orders, shipments = (table(data, topic) for topic in data.topics)
    joined: Expected = {}
    for number, order in orders.items():
        own = [s for s in shipments.values() if s["order_id"] == number]
        for shipment in own:
            row = (number, shipment["shipment_id"], order["amount"], shipment["carrier"])
            joined[row[:2]] = row
        if not own:
            joined[number, None] = (number, None, order["amount"], None)
    assert data.expected() == joined
    assert any(row[1] is None for row in joined.values())
    gone = sum(value is None for _, value in changes(ChurnData(8_000, 600), data.topics[1]))
    assert gone > 1_000


def test_the_last_price() -> None:
    data = LatestData(6_000, 2_000)
    assert [topic.name for topic in data.topics] == ["prices", "orders"], "loaded in this order"
    prices, orders = table(data, data.topics[0]), appended(data, data.topics[1])
    joined: Expected = {
        order["order_id"]: (*order.values(), prices.get(order["product_id"], NONE).get("price"))
        for order in orders
    }
    assert data.expected() == joined
    assert any(row[-1] is None for row in joined.values())


def test_three_tables() -> None:
    data = ThreeWayData(9_000, 900)
    bookings, payments, parcels = (table(data, topic) for topic in data.topics)
    joined: Expected = {}
    for key, booking in bookings.items():
        paid, sent = payments.get(key, NONE), parcels.get(key, NONE)
        rest = (paid.get("method"), paid.get("paid"), sent.get("carrier"))
        joined[key] = (key, booking["amount"], *rest)
    assert data.expected() == joined
    assert any(row[2] is None for row in joined.values())
    assert any(row[4] is None for row in joined.values())


def test_captured_changes() -> None:
    data = CapturedData(8_000, 600)
    tables: list[dict[int, dict[str, Any]]] = []
    for topic in data.topics:
        rows: dict[int, dict[str, Any]] = {}
        operations: Counter[str] = Counter()
        found = changes(data, topic)
        assert len(found) == 4_000
        for key, event in found:
            assert key is not None
            if event is None:
                assert key["id"] not in rows, "a tombstone follows the delete"
                continue
            operations[event["op"]] += 1
            assert event["before"] == rows.pop(key["id"], None)
            assert (event["op"] == "c") == (event["before"] is None)
            assert (event["op"] == "d") == (event["after"] is None)
            if event["after"] is not None:
                assert event["after"]["id"] == key["id"]
                rows[key["id"]] = event["after"]
        tables.append(rows)
        assert operations["u"] > 1_000
    orders, shipments = tables
    joined: Expected = {
        key: (
            *order.values(), shipments.get(key, NONE).get("carrier"),
            shipments.get(key, NONE).get("weight"),
        )
        for key, order in orders.items()
    }  # fmt: skip
    assert data.expected() == joined
    assert len(orders) < 600


def test_wide_rows() -> None:
    data = WideData(2_000, 500)
    readings, devices = (table(data, topic) for topic in data.topics)
    used = ("id", "c17", "c33", "c58", "c76", "c99")
    joined: Expected = {}
    for key, reading in readings.items():
        assert len(reading) == COLUMNS
        name = devices.get(key, NONE).get("name")
        joined[key] = (*(reading[column] for column in used), name)
    assert data.expected() == joined
    assert len({reading["c5"] for reading in readings.values()}) > 50


def test_one_key_has_a_fifth_of_the_records() -> None:
    data = HotKeyData(8_000, 1_000)
    orders, customers = appended(data, data.topics[0]), table(data, data.topics[1])
    joined: Expected = {
        order["order_id"]: (*order.values(), customers.get(order["customer_id"], NONE).get("name"))
        for order in orders
    }
    assert data.expected() == joined
    hot = sum(order["customer_id"] == HOT for order in orders)
    assert hot == pytest.approx(0.2 * 8_000, rel=0.1)
    assert HOT in customers


def test_reading_alone() -> None:
    data = ReadingData(8_000, 800)
    orders, parcels = ([value for _, value in changes(data, topic)] for topic in data.topics)
    few = [order for order in orders if order is not None and order["amount"] < 10]
    assert list(data.expected().values()) == [tuple(order.values()) for order in few]
    assert len(few) == pytest.approx(40, rel=0.5)
    assert max(parcel["weight"] for parcel in parcels if parcel is not None) < 5_000


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_a_workload_is_whole(workload: Workload) -> None:
    data = workload.data(1_000, workload.keys(1_000))
    for topic in data.topics:
        for schema in topic.schemas().values():
            fastavro.parse_schema(json.loads(schema))
        assert f"'topic' = '{topic.name}'" in workload.sql
        list(data.records(topic, 1, 2))
    expected = workload.in_micros(data.expected())
    assert expected
    for key, row in expected.items():
        assert workload.key(row) == key
        assert len(row) == len(workload.columns)


@pytest.mark.parametrize("workload", WORKLOADS.values(), ids=WORKLOADS)
def test_engines_run_one_text(workload: Workload) -> None:
    one = render(workload, {"a": "1"}, "sink_1", "broker:1", "http://r")
    other = render(workload, {"b": "2"}, "sink_2", "broker:1", "http://r")
    assert one.splitlines()[0] == "SET 'a' = '1';"
    body = one.split("\n", 1)[1].replace("sink_1", "sink_2")
    assert body == other.split("\n", 1)[1]
    assert "$" not in one


def test_expected_times_in_the_unit_of_results() -> None:
    workload = WORKLOADS["temporal-left"]
    assert workload.in_micros({1: (1, 2, 3, 5, 0.5)}) == {1: (1, 2, 3, 5_000, 0.5)}
