"""What the sidecar shows of records, and how it takes a status that names what no topic is."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest

from service.masking import MASK
from service.models import SampleRow
from service.topics.broker import BrokerClient, _text, sample_rows
from spark_jobs.job_record import GraphNode, JobRecord, QueryRecord
from spark_jobs.status import JobStatus, PartitionStatus, QueryStatus, SourceStatus


def test_what_has_no_columns_to_mask_is_not_shown() -> None:
    """The bare key of a 'raw' format may be the column that is to be masked."""
    hidden = frozenset({"card"})
    assert _text(b'{"card": 4111, "id": 1}', hidden) == f'{{"card": "{MASK}", "id": 1}}'
    for raw in (b"4111111111111111", b'"4111 1111"', b"[4111]", b"4111 1111"):
        assert "4111" not in (_text(raw, hidden) or "")
    assert _text(b"7", frozenset()) == "7"
    assert _text(b"[" * 100_000, frozenset()) == "100000 bytes"


class Read:
    """A record as the client gives it."""

    def __init__(self, offset: int, key: bytes | None, value: bytes | None) -> None:
        self._parts = {"offset": offset, "key": key, "value": value}

    def __getattr__(self, name: str) -> Any:
        given = {"topic": "t", "partition": 0, "timestamp": (1, 5)} | self._parts
        return lambda: given[name]


def sampled(*records: Any, mode: str, nodes: tuple[GraphNode, ...] = ()) -> Iterator[SampleRow]:
    query = QueryRecord(name="q", nodes=nodes, edges=(), plan={"mode": mode})
    return sample_rows(records, frozenset({"card"}), query)


def changes(*records: Any, mode: str) -> list[tuple[str, str | None, str | None]]:
    return [(row.change, row.before, row.value) for row in sampled(*records, mode=mode)]


def test_what_an_upsert_takes_back() -> None:
    found = changes(
        Read(3, b"1", None),
        Read(0, b"1", b'{"n": 1, "card": 4}'),
        Read(1, b"2", b'{"n": 7}'),
        Read(2, b"1", b'{"n": 2}'),
        Read(4, b"3", None),
        mode="upsert",
    )
    first = '{"n": 1, "card": "***"}'
    assert found == [
        ("written", None, first),
        ("written", None, '{"n": 7}'),
        ("corrected", first, '{"n": 2}'),
        ("taken back", '{"n": 2}', None),
        ("taken back", None, None),  # its row is older than the sample
    ]


def test_what_a_changelog_takes_back() -> None:
    gone = b'{"before": {"n": 1}, "after": null, "op": "d"}'
    come = b'{"before": null, "after": {"n": 1}, "op": "c"}'
    canal = b'{"data": [{"n": 1}], "type": "DELETE"}'
    records = [Read(i, None, v) for i, v in enumerate((come, gone, canal, b"x"))]
    found = changes(*records, mode="retract")
    assert [change for change, _, _ in found] == ["written", "taken back", "taken back", "written"]
    # the columns of an append table may have any name
    assert {change for change, _, _ in changes(*records, mode="append")} == {"written"}


@pytest.mark.parametrize(("topic", "partition"), [("t", 2**40), ("t\0", 0)], ids=["far", "nul"])
def test_places_that_no_broker_has(
    job: Callable[..., JobStatus], topic: str, partition: int
) -> None:
    part = PartitionStatus(partition=partition, offset=0, latest_offset=5)
    source = SourceStatus(table="t", topic=topic, partitions=(part,))
    query = QueryStatus(name="q", sink=topic, sources=(source,))
    broker = BrokerClient(None)
    record = JobRecord(job="j", servers=("127.0.0.1:1",))
    answered = broker.lag(job(queries=(query,)), record)
    assert answered.problem is not None
    assert answered.lag_records == 5


def keyed(operator: str, *columns: str) -> GraphNode:
    return GraphNode(
        id=operator, kind="operator", title="a join", operator=f"q/{operator}", key_columns=columns
    )


def test_the_keys_of_the_state_behind_a_row() -> None:
    nodes = (
        keyed("one", "id"),
        keyed("two", "price", "id"),
        keyed("other", "place"),
        keyed("masked", "card"),
        keyed("untold"),
        GraphNode(id="sink", kind="sink", title="t"),
    )
    value = b'{"price": 9.90, "card": 4111, "place": null}'
    [row] = sampled(Read(0, b'{"id": 9007199254740993}', value), mode="upsert", nodes=nodes)
    assert [(link.operator, link.columns, link.key) for link in row.state] == [
        ("q/one", ("id",), "[9007199254740993]"),
        ("q/two", ("price", "id"), '["9.90", 9007199254740993]'),
    ]


@pytest.mark.parametrize(
    "value",
    [
        b'{"before": null, "after": {"id": "a"}, "op": "c"}',
        b'{"before": {"id": "a"}, "after": null, "op": "d"}',
        b'{"data": [{"id": "a"}], "type": "DELETE"}',
        b'{"data": {"id": "a"}, "op": "-U"}',
    ],
)
def test_the_key_is_in_the_image_of_a_changelog(value: bytes) -> None:
    [row] = sampled(Read(0, None, value), mode="retract", nodes=(keyed("one", "id"),))
    assert [link.key for link in row.state] == ['["a"]']


@pytest.mark.parametrize("value", [None, b"\xff", b"[1]", b'"id"', b'{"id": {"a": 1}}', b"[" * 99])
def test_a_row_without_the_key_has_no_link(value: bytes | None) -> None:
    [row] = sampled(Read(0, b"17", value), mode="upsert", nodes=(keyed("one", "id"),))
    assert row.state == ()
