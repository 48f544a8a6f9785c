"""Offsets as the broker (librdkafka's own mock) answers them."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from spark_jobs.access.topics import (
    EARLIEST,
    Limit,
    TableTopics,
    open_topics,
)
from spark_jobs.errors import ConfigError, KafkaError

RECORDS = 40


@pytest.fixture(scope="module")
def mock_servers() -> Iterator[str]:
    """A mock cluster with 40 records in a topic of four partitions."""
    producer = Producer({"test.mock.num.brokers": 1, "bootstrap.servers": ""})
    for i in range(RECORDS):
        producer.produce("orders", key=b"k", value=b"v", partition=i % 4, timestamp=1000 + i)
    producer.flush()
    broker = next(iter(producer.list_topics().brokers.values()))
    yield f"{broker.host}:{broker.port}"
    producer.flush()


@pytest.fixture
def edge(mock_servers: str) -> Iterator[TableTopics]:
    with open_topics("orders", ["orders"], {"bootstrap.servers": mock_servers}) as asked:
        yield asked


def test_partition_counts(edge: TableTopics) -> None:
    assert edge.partition_counts() == {"orders": 4}


def test_latest_and_earliest(edge: TableTopics) -> None:
    assert edge.ends(Limit("latest-offset")) == {"orders": dict.fromkeys(range(4), 10)}
    assert edge.starts(Limit("earliest-offset")) == {"orders": dict.fromkeys(range(4), EARLIEST)}
    assert edge.exact_starts(Limit("earliest-offset")) == {"orders": dict.fromkeys(range(4), 0)}


def test_specific_offsets_leave_the_others_at_their_default(edge: TableTopics) -> None:
    limit = Limit("specific-offsets", offsets={1: 3, 2: 7})
    assert edge.starts(limit) == {"orders": {0: EARLIEST, 1: 3, 2: 7, 3: EARLIEST}}
    assert edge.ends(limit) == {"orders": {0: 10, 1: 3, 2: 7, 3: 10}}


def test_specific_offset_of_a_partition_that_is_not_there(edge: TableTopics) -> None:
    with pytest.raises(ConfigError, match="SPECIFIC_OFFSETS_PARTITION"):
        edge.starts(Limit("specific-offsets", offsets={9: 0}))


def test_group_offsets_without_group(edge: TableTopics) -> None:
    with pytest.raises(ConfigError, match="GROUP_ID_MISSING"):
        edge.starts(Limit("group-offsets"))


def test_group_offsets_fall_back_as_the_table_says(mock_servers: str) -> None:
    properties = {"bootstrap.servers": mock_servers, "group.id": "unknown"}
    with (
        open_topics("orders", ["orders"], properties) as edge,
        pytest.raises(ConfigError, match="GROUP_OFFSETS_MISSING"),
    ):
        edge.starts(Limit("group-offsets"))
    with open_topics("orders", ["orders"], {**properties, "auto.offset.reset": "latest"}) as edge:
        assert edge.starts(Limit("group-offsets")) == {"orders": dict.fromkeys(range(4), 10)}


def test_broker_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_jobs.access.topics._TIMEOUT_S", 0.3)
    properties = {"bootstrap.servers": "127.0.0.1:1"}
    with (
        open_topics("orders", ["orders"], properties) as edge,
        pytest.raises(KafkaError, match="KAFKA_UNREACHABLE"),
    ):
        edge.partition_counts()
