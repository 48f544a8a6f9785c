"""What the sidecar shows of records, and how it takes a status that names what no topic is."""

from collections.abc import Callable

import pytest

from service.broker import MASK, BrokerClient, _text
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
