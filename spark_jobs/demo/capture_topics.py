"""The topics of the capture demo, and their records: Avro with the schemas of a registry."""

import io
import json
import struct
import uuid
from collections.abc import Iterator
from typing import Any

import fastavro
import httpx
from confluent_kafka import OFFSET_BEGINNING, Consumer, KafkaException, Message, TopicPartition
from confluent_kafka import KafkaError as ClientError
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.errors import KafkaError

CUSTOMERS = "shop.public.customers"
PURCHASES = "shop.public.purchases"
PAYMENTS = "shop.public.payments"
ADDRESSED = "purchases_by_address"
PROMPT = "prompt_payments"
DEAD_LETTERS = "cdc_dead_letters"

_PREFIX = struct.Struct(">bI")  # Confluent's framing: a zero byte, the schema id
_TIMEOUT_S = 15.0
_BATCH = 500
_FOR_EVER = {"retention.ms": "-1"}
_COMPACTED = {"cleanup.policy": "compact"}
# one partition where a watermark comes from: none is idle while the others move
_TOPICS = {
    CUSTOMERS: (1, _FOR_EVER),
    PURCHASES: (1, _FOR_EVER),
    PAYMENTS: (1, _FOR_EVER),
    ADDRESSED: (2, _FOR_EVER),  # a log of retractions is never compacted
    PROMPT: (2, _COMPACTED),
    DEAD_LETTERS: (1, _FOR_EVER),
}


def create_topics(servers: str) -> None:
    """Create those that are missing."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    new = [NewTopic(name, count, 1, config=c) for name, (count, c) in _TOPICS.items()]
    try:
        for future in admin.create_topics(new, request_timeout=_TIMEOUT_S).values():
            try:
                future.result(_TIMEOUT_S)
            except KafkaException as cause:
                if cause.args[0].code() != ClientError.TOPIC_ALREADY_EXISTS:
                    raise
    except (KafkaException, TimeoutError) as cause:
        raise KafkaError("KAFKA_UNREACHABLE", f"{servers} created no topics: {cause}") from cause


class Reader:
    """Every committed record of all topics, from their beginnings on."""

    def __init__(self, servers: str) -> None:
        self._consumer = Consumer(
            {
                "bootstrap.servers": servers,
                "group.id": f"rejoin-capture-{uuid.uuid4().hex[:8]}",
                "isolation.level": "read_committed",
                "enable.auto.commit": False,
                "log_level": 2,
            }
        )
        self._consumer.assign(
            [
                TopicPartition(topic, partition, OFFSET_BEGINNING)
                for topic, (count, _) in _TOPICS.items()
                for partition in range(count)
            ]
        )

    def poll(self, timeout_s: float) -> Iterator[Message]:
        """What arrives within that time; what is passing, such as a broker that is down, is not
        told."""
        for message in self._consumer.consume(_BATCH, timeout=timeout_s):
            error = message.error()
            if error is None:
                yield message
            elif error.fatal():
                raise KafkaError("KAFKA_FAILED", f"reading the topics failed: {error}")

    def close(self) -> None:
        self._consumer.close()


class AvroReader:
    """Values framed as Confluent does, read with the schema that they name."""

    def __init__(self, registry_url: str) -> None:
        self._url = registry_url
        self._schemas: dict[int, Any] = {}

    def fields(self, value: bytes) -> dict[str, Any]:
        """Raises ValueError if it is no record, httpx.HTTPError if the registry does not help."""
        zero, schema_id = _PREFIX.unpack_from(value.ljust(_PREFIX.size))
        if zero != 0:
            raise ValueError(f"no Confluent framing: {value[:20]!r}")
        body = io.BytesIO(value[_PREFIX.size :])
        fields = fastavro.schemaless_reader(body, self._schema(schema_id), None)
        if body.read(1) or not isinstance(fields, dict):
            raise ValueError(f"not a record of schema {schema_id}: {value[:20]!r}")
        return fields

    def _schema(self, schema_id: int) -> Any:
        if schema_id not in self._schemas:
            url = f"{self._url}/schemas/ids/{schema_id}"
            text = httpx.get(url, timeout=_TIMEOUT_S).raise_for_status().json()["schema"]
            self._schemas[schema_id] = fastavro.parse_schema(json.loads(text))
        return self._schemas[schema_id]
