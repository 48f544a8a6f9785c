"""Reading a result back: folding, units of time, and what is said when two results differ."""

import io
import json
from collections.abc import Callable, Mapping
from dataclasses import replace

import fastavro
import pytest

from bench import results
from bench.avro import frame
from bench.measure import BenchError
from bench.results import Decoder, Folded, Verifier, differences, fold, fold_appends
from bench.workloads.catalog import WORKLOADS
from spark_jobs.errors import FormatError

PRICED = {
    "type": "record",
    "name": "priced",
    "fields": [
        {"name": "order_id", "type": "long"},
        {"name": "price", "type": ["null", "double"]},
        {"name": "at", "type": ["null", {"type": "long", "logicalType": "timestamp-millis"}]},
    ],
}
MICROS = json.loads(json.dumps(PRICED).replace("millis", "micros"))
PRICES = replace(WORKLOADS["temporal-left"], columns=("order_id", "at", "price"))
ENVELOPE = {
    "type": "record",
    "name": "change",
    "fields": [
        {"name": "before", "type": ["null", PRICED]},
        {"name": "after", "type": ["null", "priced"]},
        {"name": "op", "type": "string"},
    ],
}


class Record:
    """What is used of a consumed message."""

    def __init__(
        self, key: bytes | None, value: bytes | None, partition: int = 0, sign: bytes = b""
    ) -> None:
        self._parts = (key, value, partition)
        self._headers = [("pathway_time", b"1"), ("pathway_diff", sign)]

    def headers(self) -> list[tuple[str, bytes]]:
        return self._headers

    def key(self) -> bytes | None:
        return self._parts[0]

    def value(self) -> bytes | None:
        return self._parts[1]

    def partition(self) -> int:
        return self._parts[2]


def encoded(schema_id: int, schema: Mapping[str, object] | list[object], **row: object) -> bytes:
    data = io.BytesIO()
    plain = json.loads(json.dumps(schema).replace('"logicalType"', '"ignored"'))
    fastavro.schemaless_writer(data, fastavro.parse_schema(plain), row)
    return frame(schema_id) + data.getvalue()


@pytest.fixture
def decoder(monkeypatch: pytest.MonkeyPatch) -> Decoder:
    nullable = ["null", ENVELOPE]  # as Flink registers it
    schemas = {n: json.dumps(s) for n, s in enumerate((PRICED, MICROS, nullable), start=1)}
    monkeypatch.setattr(results, "schema_by_id", lambda _url, number: schemas[number])
    return Decoder("http://registry", PRICES)


def test_times_have_one_unit(decoder: Decoder) -> None:
    assert decoder(encoded(1, PRICED, order_id=4, price=1.5, at=7)) == (4, (4, 7_000, 1.5))
    assert decoder(encoded(2, MICROS, order_id=4, price=1.5, at=7_000)) == (4, (4, 7_000, 1.5))
    assert decoder(encoded(1, PRICED, order_id=4, price=None, at=None)) == (4, (4, None, None))


def test_a_sink_that_lacks_a_column(decoder: Decoder) -> None:
    with pytest.raises(FormatError, match="lacks"):
        Decoder("http://registry", replace(PRICES, columns=("order_id", "name")))(
            encoded(1, PRICED, order_id=1)
        )


Feed = Callable[[list[Record]], None]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch, decoder: Decoder) -> Feed:
    def put(records: list[Record]) -> None:
        monkeypatch.setattr(results, "committed", lambda _servers, _topic: iter(records))
        monkeypatch.setattr(results, "Decoder", lambda _url, _workload: decoder)

    return put


def row(order: int, price: float) -> bytes:
    return encoded(1, PRICED, order_id=order, price=price, at=0)


def test_upserts_fold_to_the_last(feed: Feed) -> None:
    updates = [(b"1", row(1, 1.0)), (b"2", row(2, 1.0)), (b"1", row(1, 2.0)), (b"2", None)]
    feed([Record(key, value) for key, value in updates])
    folded = fold(WORKLOADS["regular-upsert"], "", "", "t")
    assert folded == Folded({1: (1, 0, 2.0)}, 4, ())


def test_a_key_in_two_partitions_has_no_order(feed: Feed) -> None:
    feed([Record(b"1", row(1, 1.0), 0), Record(b"1", row(1, 2.0), 1)])
    with pytest.raises(FormatError, match="two partitions"):
        fold(WORKLOADS["regular-upsert"], "", "", "t")


def test_appends_count_every_row(decoder: Decoder) -> None:
    assert fold_appends(decoder, [row(1, 1.0), row(2, 1.0), row(1, 1.0)]).repeated == (1,)


def test_appended_rows_are_decoded_once(feed: Feed, monkeypatch: pytest.MonkeyPatch) -> None:
    expected = {n: (n, 0, float(n)) for n in (1, 2, 3)}
    verifier = Verifier(PRICES, expected, "", "")
    one, two, three = (Record(None, row(n, float(n))) for n in (1, 2, 3))
    feed([one, two, three])
    assert verifier.verified("append", "t") == Folded(expected, 3, ())
    feed([one, two, two])
    with pytest.raises(BenchError, match="written twice: 2"):
        verifier.verified("append", "t")
    feed([one, two])
    with pytest.raises(BenchError, match=r"only the expected result has \(3,"):
        verifier.verified("append", "t")
    feed([three, one, two])
    monkeypatch.setattr(results, "Decoder", lambda _url, _workload: None)
    assert verifier.verified("append", "t") == Folded(expected, 3, ())


def change(before: dict[str, object] | None, after: dict[str, object] | None) -> Record:
    return Record(None, encoded(3, ["null", ENVELOPE], before=before, after=after, op="u"))


def test_rows_that_are_taken_back(feed: Feed) -> None:
    one, other = ({"order_id": 1, "price": price, "at": 7} for price in (1.0, 2.0))
    churn = WORKLOADS["regular-outer-churn"]
    feed([change(None, one), change(one, None), change(None, other)])
    assert fold(churn, "", "", "t") == Folded({1: (1, 7_000, 2.0)}, 3, ())
    feed([change(None, one), change(None, one)])
    assert fold(churn, "", "", "t").repeated == (1,)
    feed([change(None, one), change(other, None)])
    with pytest.raises(BenchError, match="taken back once too often"):
        fold(churn, "", "", "t")


def test_rows_with_a_sign(feed: Feed) -> None:
    signed = replace(WORKLOADS["regular-upsert"], sink="signed")
    signs = ((1.0, b"1"), (1.0, b"-1"), (2.0, b"1"))
    feed([Record(b"1", row(1, price), sign=sign) for price, sign in signs])
    assert fold(signed, "", "", "t") == Folded({1: (1, 0, 2.0)}, 3, ())


def test_differences_name_each_kind() -> None:
    assert differences({1: (1,)}, {1: (1,)}, ("a", "b")) == []
    assert differences({1: (1,), 2: (2,)}, {2: (3,), 4: (4,)}, ("a", "b")) == [
        "only b has (4,)",
        "only a has (1,)",
        "a has (2,), b has (3,)",
    ]
