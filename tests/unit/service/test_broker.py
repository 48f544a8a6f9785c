"""What the sidecar shows of records, and how it takes a status that names what no topic is."""

from collections.abc import Callable
from typing import Any

import pytest

from service.broker import MASK, BrokerClient, _text, sample_rows
from spark_jobs.job_record import JobRecord
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


def changes(*records: Any, mode: str) -> list[tuple[str, str | None, str | None]]:
    rows = sample_rows(records, frozenset({"card"}), mode)
    return [(row.change, row.before, row.value) for row in rows]


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
