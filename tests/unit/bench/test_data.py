"""The generator against fastavro, and its expected result against a plain fold of its records."""

from collections import defaultdict
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.avro import encode_instant, encode_long, encode_string
from bench.workloads.interval import WINDOW_MS, IntervalData
from bench.workloads.records import DISORDER_MS, Expected
from bench.workloads.regular import RegularData
from bench.workloads.temporal import TemporalData
from tests.unit.bench.decoding import changes, written

pytestmark = pytest.mark.service  # it makes many rows


@given(st.integers(-(2**63), 2**63 - 1))
def test_long(number: int) -> None:
    assert encode_long(number) == written('"long"', number)


@given(st.text())
def test_string(text: str) -> None:
    assert encode_string(text) == written('"string"', text)


@given(st.integers(1_500_000_000_000, 2_000_000_000_000))
def test_instant(ms: int) -> None:
    assert encode_instant(ms) == written('"long"', ms)


def test_regular() -> None:
    data = RegularData(20_000, 3_000)
    sides = [{}, {}]  # type: list[dict[int, dict[str, Any]]]
    deletes = [0, 0]
    for number, topic in enumerate(data.topics):
        for key, value in changes(data, topic):
            assert key is not None
            if value is None:
                deletes[number] += 1
                del sides[number][key["id"]]  # only what exists is deleted
            else:
                assert value["id"] == key["id"]
                sides[number][key["id"]] = value
    assert deletes == [0, 0]
    left, right = sides
    joined: Expected = {
        key: (*a.values(), right.get(key, {}).get("carrier"), right.get(key, {}).get("weight"))
        for key, a in left.items()
    }
    assert data.expected() == joined
    assert any(row[-1] is None for row in joined.values())


def test_temporal() -> None:
    data = TemporalData(8_000, 300)
    orders = [value for _, value in changes(data, data.topics[0])]
    versions = [value for _, value in changes(data, data.topics[1])]
    assert len(orders) == 6_000
    assert len(versions) == 2_000
    of_product: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for version in versions:
        assert version is not None
        of_product[version["product_id"]].append(version)
    joined: Expected = {}
    for order in orders:
        assert order is not None
        known = [
            v for v in of_product[order["product_id"]] if v["changed_at"] <= order["order_time"]
        ]
        current = max(known, key=lambda v: v["changed_at"], default=None)
        price = current["price"] if current is not None else None
        joined[order["order_id"]] = (*order.values(), price)
    assert data.expected() == joined
    assert any(row[-1] is None for row in joined.values())


@pytest.mark.parametrize("keys", [4_000, 1_500])
def test_interval(keys: int) -> None:
    data = IntervalData(8_000, keys)
    purchases = [value for _, value in changes(data, data.topics[0])]
    parcels = [value for _, value in changes(data, data.topics[1])]
    assert (len(purchases), len(parcels)) == (keys, 8_000 - keys)
    of_order: dict[int, list[dict[str, Any]]] = defaultdict(list)
    for parcel in parcels:
        assert parcel is not None
        of_order[parcel["order_id"]].append(parcel)
    assert all(len(found) == 1 for found in of_order.values()), "a row would come twice"
    joined: Expected = {}
    for row in purchases:
        assert row is not None
        placed = row["placed_at"]
        sent = [
            parcel["carrier"]
            for parcel in of_order[row["order_id"]]
            if placed <= parcel["sent_at"] <= placed + WINDOW_MS
        ]
        joined[row["order_id"]] = (*row.values(), sent[0] if sent else None)
    assert data.expected() == joined
    matched = sum(row[-1] is not None for row in joined.values())
    assert 0.4 * keys < matched < 0.5 * keys
    behind = sum(bool(of_order[order]) and row[-1] is None for order, row in joined.items())
    assert behind > 0.3 * keys, "parcels that are sent too late"


def test_notes_have_the_length_that_is_asked_for() -> None:
    short, long = RegularData(1_000, 100), RegularData(1_000, 100, note_bytes=300)
    notes = {len(value["note"]) for _, value in changes(long, long.topics[0]) if value}
    assert notes == {300}
    rows = [value for _, value in changes(short, short.topics[0]) if value]
    assert {row["note"][-4:] for row in rows} == {"door"}
    assert [row[0] for row in short.expected().values()] == [r[0] for r in long.expected().values()]


@pytest.mark.parametrize(
    ("data", "side", "column"),
    [
        (TemporalData(20_000, 300), 0, "order_time"),
        (TemporalData(20_000, 300), 1, "changed_at"),
        (IntervalData(20_000, 10_000), 0, "placed_at"),
        (IntervalData(20_000, 10_000), 1, "sent_at"),
    ],
    ids=lambda case: case if isinstance(case, str) else "",
)
def test_no_row_is_late(data: TemporalData | IntervalData, side: int, column: str) -> None:
    highest = 0
    steps_back = 0
    for _, value in changes(data, data.topics[side]):
        assert value is not None
        time = value[column]
        assert time >= highest - DISORDER_MS
        steps_back += time < highest
        highest = max(highest, time)
    assert steps_back > 1_000


def test_the_same_at_every_run() -> None:
    one, other = RegularData(1_000, 100), RegularData(1_000, 100)
    for topic in one.topics:
        assert list(one.records(topic, 1, 2)) == list(other.records(topic, 1, 2))
