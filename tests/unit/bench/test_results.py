"""Reading a result back: folding, units of time, and what is said when two results differ."""

import io
import json
from collections.abc import Callable, Mapping

import fastavro
import pytest

from bench import results
from bench.avro import frame
from bench.jobs import JOBS, BenchJob, render
from bench.results import Decoder, Folded, differences, fold, in_micros
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
COLUMNS = ("order_id", "at", "price")


class Record:
    """What is used of a consumed message."""

    def __init__(self, key: bytes | None, value: bytes | None, partition: int = 0) -> None:
        self._parts = (key, value, partition)

    def key(self) -> bytes | None:
        return self._parts[0]

    def value(self) -> bytes | None:
        return self._parts[1]

    def partition(self) -> int:
        return self._parts[2]


def encoded(schema_id: int, schema: Mapping[str, object], **row: object) -> bytes:
    data = io.BytesIO()
    plain = json.loads(json.dumps(schema).replace('"logicalType"', '"ignored"'))
    fastavro.schemaless_writer(data, fastavro.parse_schema(plain), row)
    return frame(schema_id) + data.getvalue()


@pytest.fixture
def decoder(monkeypatch: pytest.MonkeyPatch) -> Decoder:
    schemas = {1: json.dumps(PRICED), 2: json.dumps(MICROS)}
    monkeypatch.setattr(results, "schema_by_id", lambda _url, number: schemas[number])
    return Decoder("http://registry", COLUMNS)


def test_times_have_one_unit(decoder: Decoder) -> None:
    assert decoder(encoded(1, PRICED, order_id=4, price=1.5, at=7)) == (4, (4, 7_000, 1.5))
    assert decoder(encoded(2, MICROS, order_id=4, price=1.5, at=7_000)) == (4, (4, 7_000, 1.5))
    assert decoder(encoded(1, PRICED, order_id=4, price=None, at=None)) == (4, (4, None, None))


def test_a_sink_that_lacks_a_column(decoder: Decoder) -> None:
    with pytest.raises(FormatError, match="lacks"):
        Decoder("http://registry", ("order_id", "name"))(encoded(1, PRICED, order_id=1))


Feed = Callable[[list[Record]], None]


@pytest.fixture
def feed(monkeypatch: pytest.MonkeyPatch, decoder: Decoder) -> Feed:
    def put(records: list[Record]) -> None:
        monkeypatch.setattr(results, "committed", lambda _servers, _topic: iter(records))
        monkeypatch.setattr(results, "Decoder", lambda _url, _columns: decoder)

    return put


def row(order: int, price: float) -> bytes:
    return encoded(1, PRICED, order_id=order, price=price, at=0)


def test_upserts_fold_to_the_last(feed: Feed) -> None:
    updates = [(b"1", row(1, 1.0)), (b"2", row(2, 1.0)), (b"1", row(1, 2.0)), (b"2", None)]
    feed([Record(key, value) for key, value in updates])
    folded = fold(JOBS["regular"], "", "", "t")
    assert folded == Folded({1: (1, 0, 2.0)}, 4, ())


def test_a_key_in_two_partitions_has_no_order(feed: Feed) -> None:
    feed([Record(b"1", row(1, 1.0), 0), Record(b"1", row(1, 2.0), 1)])
    with pytest.raises(FormatError, match="two partitions"):
        fold(JOBS["regular"], "", "", "t")


def test_appends_count_every_row(feed: Feed) -> None:
    feed([Record(None, row(1, 1.0)), Record(None, row(2, 1.0)), Record(None, row(1, 1.0))])
    assert fold(JOBS["temporal"], "", "", "t").repeated == (1,)


def test_differences_name_each_kind() -> None:
    assert differences({1: (1,)}, {1: (1,)}, ("a", "b")) == []
    assert differences({1: (1,), 2: (2,)}, {2: (3,), 4: (4,)}, ("a", "b")) == [
        "only b has (4,)",
        "only a has (1,)",
        "a has (2,), b has (3,)",
    ]


def test_expected_times_in_the_unit_of_results() -> None:
    assert in_micros({1: (1, 5, 2)}, ("id", "order_time", "x")) == {1: (1, 5_000, 2)}


@pytest.mark.parametrize("job", JOBS.values(), ids=JOBS.keys())
def test_engines_run_one_text(job: BenchJob) -> None:
    one = render(job, {"a": "1"}, "sink_1", "broker:1", "http://r")
    other = render(job, {"b": "2"}, "sink_2", "broker:1", "http://r")
    assert one.splitlines()[0] == "SET 'a' = '1';"
    body = one.split("\n", 1)[1].replace("sink_1", "sink_2")
    assert body == other.split("\n", 1)[1]
    assert "$" not in one
