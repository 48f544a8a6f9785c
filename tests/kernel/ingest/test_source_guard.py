"""Whether the known partitions of a table still end where they did, asked of a real broker."""

import json
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.embedded.broker import Broker
from tests.harness.gateway import jvm

WAIT_S = 60.0


@pytest.fixture
def guard(broker: Broker) -> Iterator[Any]:
    made = jvm().org.apache.spark.sql.rejoin.ingest.SourceGuardRun(broker.bootstrap_servers)
    yield made
    made.close()


@pytest.fixture
def topic(broker: Broker) -> str:
    name = f"guarded-{uuid.uuid4().hex[:8]}"
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic(name, 2, 1)])[name].result(WAIT_S)
    return name


def test_a_record_in_any_partition_moves_the_ends(guard: Any, topic: str, broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for partition, ends in ((0, {"0": 1, "1": 0}), (1, {"0": 1, "1": 1})):
        producer.produce(topic, b"x", partition=partition)
        assert producer.flush(WAIT_S) == 0
        assert guard.haveEnds(json.dumps({topic: ends}))
        assert not guard.haveEnds(json.dumps({topic: {**ends, str(partition): 0}}))


def test_an_uncommitted_record_moves_nothing(guard: Any, topic: str, broker: Broker) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": topic})
    producer.init_transactions(WAIT_S)
    producer.begin_transaction()
    producer.produce(topic, b"x", partition=1)
    assert producer.flush(WAIT_S) == 0
    assert guard.haveEnds(json.dumps({topic: {"0": 0, "1": 0}}))
    producer.commit_transaction(WAIT_S)
    deadline = time.monotonic() + WAIT_S
    while guard.haveEnds(json.dumps({topic: {"0": 0, "1": 0}})):
        assert time.monotonic() < deadline  # the broker marks the partition after its answer
        time.sleep(0.1)


def test_a_topic_that_is_gone_is_for_spark_to_look_at(guard: Any) -> None:
    assert not guard.haveEnds(json.dumps({"no-such-topic": {"0": 0}}))
