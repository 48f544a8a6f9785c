"""Produces the shop's events at a steady rate and records for the audits what was sent."""

import time
from collections.abc import Callable

from confluent_kafka import KafkaError as ClientError
from confluent_kafka import KafkaException, Message, Producer
from confluent_kafka.admin import AdminClient
from confluent_kafka.cimpl import NewTopic

from spark_jobs.demo.encoding import Encoding, broken_records, records_of
from spark_jobs.demo.shop import ORDER_PARTITIONS, ORDERS, PRODUCTS, Order, Record, Shop, ShopEvent
from spark_jobs.demo.verify import DeadLetterAudit, RowAudit
from spark_jobs.errors import ConfigError, KafkaError

RESULTS, DEAD_LETTERS = "enriched_orders", "shop_dead_letters"
SHOP_TOPICS = {ORDERS: ORDER_PARTITIONS, PRODUCTS: 1, RESULTS: 2, DEAD_LETTERS: 1}
BROKEN_EVERY_S = 0.5
_TIMEOUT_S = 15.0


def create_topics(servers: str) -> None:
    """Create missing topics; raises ConfigError if one exists with other partitions."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    new = [NewTopic(name, partitions, 1) for name, partitions in SHOP_TOPICS.items()]
    try:
        for future in admin.create_topics(new, request_timeout=_TIMEOUT_S).values():
            try:
                future.result(_TIMEOUT_S)
            except KafkaException as cause:
                if cause.args[0].code() != ClientError.TOPIC_ALREADY_EXISTS:
                    raise
        known = admin.list_topics(timeout=_TIMEOUT_S).topics
    except (KafkaException, TimeoutError) as cause:
        raise KafkaError(
            "KAFKA_UNREACHABLE", f"{servers} did not create the shop's topics: {cause}"
        ) from cause
    for name, partitions in SHOP_TOPICS.items():
        if name in known and len(known[name].partitions) != partitions:
            raise ConfigError(
                "TOPIC_SHAPE",
                f"topic {name} has {len(known[name].partitions)} partitions, the shop needs "
                f"{partitions}",
                hint="delete the topic, or use another broker",
            )


class Player:
    """Sends each event when it is due. `clock` counts seconds; construction is time zero.

    The audits learn of an event before it is sent, so that no row arrives unexpected.
    """

    def __init__(
        self,
        servers: str,
        shop: Shop,
        encoding: Encoding,
        rows: RowAudit,
        dead_letters: DeadLetterAudit | None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._producer = Producer(
            {
                "bootstrap.servers": servers,
                "enable.idempotence": True,
                "linger.ms": 5,
                "message.timeout.ms": 30_000,
                "log_level": 2,
            }
        )
        self._shop = shop
        self._encoding = encoding
        self._rows = rows
        self._dead_letters = dead_letters
        broken_values = encoding.broken_values()
        self._broken_kinds = len(broken_values)
        self._broken = broken_records(broken_values)
        self._broken_sent = 0
        self._clock = clock
        self._opened = clock()
        self._failure: ClientError | None = None
        for change in shop.opening():
            self._send(change)

    def play_due(self) -> None:
        """Send the events that are due; raises KafkaError if an earlier one was lost."""
        elapsed = self._clock() - self._opened
        for event in self._shop.until(elapsed):
            self._send(event)
        if self._dead_letters is not None:
            while self._broken_sent * BROKEN_EVERY_S < elapsed:
                self._send_broken(self._dead_letters)
        self._producer.poll(0)
        self._check()

    def close(self) -> None:
        """Send the closing events and wait until the broker has all of them."""
        while self._dead_letters is not None and self._broken_sent < self._broken_kinds:
            self._send_broken(self._dead_letters)
        for event in self._shop.closing():
            self._send(event)
        if self._producer.flush(_TIMEOUT_S):
            raise KafkaError("KAFKA_UNREACHABLE", "the broker did not accept the last events")
        self._check()

    def abandon(self) -> None:
        """Drop events that have not been sent yet."""
        self._producer.purge()
        self._producer.flush(1.0)

    def _send(self, event: ShopEvent) -> None:
        if isinstance(event, Order):
            self._rows.expect(event)
        else:
            self._rows.history.add(event)
        for record in records_of(event, self._encoding):
            self._produce(record, self._note_failure)

    def _send_broken(self, dead_letters: DeadLetterAudit) -> None:
        record = next(self._broken)
        self._broken_sent += 1

        def delivered(error: ClientError | None, message: Message) -> None:
            self._note_failure(error, message)
            offset = message.offset()
            if error is None and offset is not None:
                dead_letters.sent[(record.topic, record.partition, offset)] = record

        self._produce(record, delivered)

    def _produce(
        self, record: Record, delivered: Callable[[ClientError | None, Message], None]
    ) -> None:
        try:
            self._producer.produce(
                record.topic,
                record.value,
                record.key,
                record.partition,
                on_delivery=delivered,
            )
        except BufferError:  # the send buffer is full: wait for deliveries, then try once more
            self._producer.poll(1.0)
            self._producer.produce(
                record.topic, record.value, record.key, record.partition, on_delivery=delivered
            )

    def _note_failure(self, error: ClientError | None, _message: Message) -> None:
        self._failure = self._failure or error

    def _check(self) -> None:
        if self._failure is not None:
            raise KafkaError("KAFKA_FAILED", f"an event of the shop was lost: {self._failure}")
