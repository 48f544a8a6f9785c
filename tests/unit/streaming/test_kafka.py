"""Options of the Kafka source, and offsets as the broker (librdkafka's own mock) answers them."""

from collections.abc import Iterator

import pytest
from confluent_kafka import Producer

from spark_jobs.errors import ConfigError, KafkaError
from spark_jobs.streaming.kafka import (
    EARLIEST,
    KafkaEdge,
    Limit,
    Subscription,
    offsets_json,
    read_offsets,
)

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
def edge(mock_servers: str) -> Iterator[KafkaEdge]:
    with KafkaEdge("orders", ["orders"], {"bootstrap.servers": mock_servers}) as asked:
        yield asked


def test_partition_counts(edge: KafkaEdge) -> None:
    assert edge.partition_counts() == {"orders": 4}


def test_latest_and_earliest(edge: KafkaEdge) -> None:
    assert edge.ends(Limit("latest-offset")) == {"orders": dict.fromkeys(range(4), 10)}
    assert edge.starts(Limit("earliest-offset")) == {"orders": dict.fromkeys(range(4), EARLIEST)}
    assert edge.exact_starts(Limit("earliest-offset")) == {"orders": dict.fromkeys(range(4), 0)}


def test_specific_offsets_leave_the_others_at_their_default(edge: KafkaEdge) -> None:
    limit = Limit("specific-offsets", offsets={1: 3, 2: 7})
    assert edge.starts(limit) == {"orders": {0: EARLIEST, 1: 3, 2: 7, 3: EARLIEST}}
    assert edge.ends(limit) == {"orders": {0: 10, 1: 3, 2: 7, 3: 10}}


def test_specific_offset_of_a_partition_that_is_not_there(edge: KafkaEdge) -> None:
    with pytest.raises(ConfigError, match="SPECIFIC_OFFSETS_PARTITION"):
        edge.starts(Limit("specific-offsets", offsets={9: 0}))


def test_group_offsets_without_group(edge: KafkaEdge) -> None:
    with pytest.raises(ConfigError, match="GROUP_ID_MISSING"):
        edge.starts(Limit("group-offsets"))


def test_group_offsets_fall_back_as_the_table_says(mock_servers: str) -> None:
    properties = {"bootstrap.servers": mock_servers, "group.id": "unknown"}
    with (
        KafkaEdge("orders", ["orders"], properties) as edge,
        pytest.raises(ConfigError, match="GROUP_OFFSETS_MISSING"),
    ):
        edge.starts(Limit("group-offsets"))
    with KafkaEdge("orders", ["orders"], {**properties, "auto.offset.reset": "latest"}) as edge:
        assert edge.starts(Limit("group-offsets")) == {"orders": dict.fromkeys(range(4), 10)}


def test_broker_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("spark_jobs.streaming.kafka._TIMEOUT_S", 0.3)
    properties = {"bootstrap.servers": "127.0.0.1:1"}
    with (
        KafkaEdge("orders", ["orders"], properties) as edge,
        pytest.raises(KafkaError, match="KAFKA_UNREACHABLE"),
    ):
        edge.partition_counts()


def test_source_options() -> None:
    properties = {
        "bootstrap.servers": "b:1",
        "group.id": "shop",
        "auto.offset.reset": "earliest",
        "isolation.level": "read_uncommitted",
    }
    starts, ends = {"orders": {0: EARLIEST}}, {"orders": {0: 5}}
    options = Subscription("q", "0-o", ("orders",), starts, ends, properties, 10, False).options()
    assert options["subscribe"] == "orders"
    assert options["startingOffsets"] == '{"orders": {"0": -2}}'
    assert options["rejoin.ends"] == '{"orders": {"0": 5}}'
    assert options["kafka.isolation.level"] == "read_uncommitted"
    assert options["kafka.fetch.max.wait.ms"] == "10"
    assert options["groupIdPrefix"] == "shop"
    assert not {"kafka.group.id", "kafka.auto.offset.reset"} & options.keys()


def test_offsets_text_round_trip() -> None:
    offsets = {"a": {0: 1, 10: 2}, "b": {0: 3}}
    assert read_offsets(offsets_json(offsets)) == offsets


def test_source_options_hold_the_reference_and_not_the_secret() -> None:
    entry = 'x.ScramLoginModule required username="u" password="${env:REJOIN_NOT_THERE}";'
    properties = {"bootstrap.servers": "b:1", "sasl.jaas.config": entry}
    starts = {"orders": {0: EARLIEST}}
    options = Subscription("q", "0-o", ("orders",), starts, None, properties, 10, False).options()
    assert options["kafka.sasl.jaas.config"] == entry
