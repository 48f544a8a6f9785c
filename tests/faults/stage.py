"""One broker behind a proxy, topics, and what a read_committed consumer finds in them."""

import json
import time
import uuid
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import LOOPBACK, free_ports
from tests.faults.data import PARTITIONS, Data
from tests.faults.proxy import Proxy

QUERIES = ("upserted", "retracted")
_ADMIN_S = 60.0
_READ_S = 300.0

Changes = dict[int, list[str]]  # records by result key, in their order


@dataclass(frozen=True, slots=True)
class Difference:
    """How an output differs from the undisturbed run's; `disordered`: keys whose order differs."""

    lost: int
    doubled: int
    disordered: int

    @property
    def is_none(self) -> bool:
        return self == Difference(0, 0, 0)


@dataclass(slots=True)
class Stage:
    """What all runs share; `servers` is the proxy's address."""

    folder: Path
    broker: Broker
    proxy: Proxy
    servers: str
    data: Data
    epochs: int
    expected: dict[str, Changes] = field(default_factory=dict)
    admin: AdminClient = field(init=False)  # kept: its futures die with it

    def __post_init__(self) -> None:
        self.admin = AdminClient({"bootstrap.servers": self.servers, "log_level": 0})

    @property
    def epoch_rows(self) -> int:
        """Of each table."""
        return max(self.data.rows // 2 // self.epochs, 1)

    def create(self, *topics: str) -> None:
        made = self.admin.create_topics([NewTopic(t, PARTITIONS, 1) for t in topics])
        for future in made.values():
            future.result(_ADMIN_S)

    def delete(self, *topics: str) -> None:
        for future in self.admin.delete_topics(list(topics)).values():
            future.result(_ADMIN_S)
        deadline = time.monotonic() + _ADMIN_S
        while set(topics) & set(self.admin.list_topics(timeout=_ADMIN_S).topics):
            if time.monotonic() > deadline:
                raise TimeoutError(f"topics {topics} are still there")
            time.sleep(0.2)

    def load(self, inputs: str) -> None:
        """Fill the two input topics, which exist."""
        producer = Producer(
            {
                "bootstrap.servers": self.servers,
                "linger.ms": 50,
                "log_level": 0,
                "enable.idempotence": True,
            }
        )
        for side in ("left", "right"):
            for partition, key, value in self.data.records(side):
                while True:
                    try:
                        producer.produce(f"{inputs}_{side}", value, key, partition)
                        break
                    except BufferError:
                        producer.poll(0.5)
                producer.poll(0)
        if producer.flush(_ADMIN_S):
            raise TimeoutError("the broker did not take the input")

    def read(self, outputs: str) -> dict[str, Changes]:
        """The committed records of both sinks."""
        return {query: self._read(f"{outputs}_{query}") for query in QUERIES}

    def _read(self, topic: str) -> Changes:
        consumer = Consumer(
            {
                "bootstrap.servers": self.servers,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
                "enable.partition.eof": True,
                "log_level": 0,
            }
        )
        partitions = consumer.list_topics(topic, timeout=_ADMIN_S).topics[topic].partitions
        consumer.assign([TopicPartition(topic, p, 0) for p in partitions])
        found: Changes = defaultdict(list)
        ended: set[int] = set()
        deadline = time.monotonic() + _READ_S
        while len(ended) < len(partitions):
            if time.monotonic() > deadline:
                raise TimeoutError(f"{topic} cannot be read to its end: a transaction is left open")
            message = consumer.poll(1.0)
            if message is None:
                continue
            if message.error() is not None:
                if message.error().name() == "_PARTITION_EOF":
                    ended.add(message.partition())
                continue
            key, text = _keyed(message.key(), message.value())
            found[key].append(text)
        consumer.close()
        return dict(found)


def _keyed(key: bytes | None, value: bytes | None) -> tuple[int, str]:
    """The result key of a record, and a text that tells it from all others of that key."""
    if key is not None:
        return json.loads(key)["id"], "-" if value is None else value.decode()
    event = json.loads(value or b"")
    return (event["after"] or event["before"])["id"], (value or b"").decode()


def difference(found: Changes, wanted: Changes) -> Difference:
    lost = doubled = disordered = 0
    for key in found.keys() | wanted.keys():
        have, want = found.get(key, []), wanted.get(key, [])
        if have == want:
            continue
        missing, more = Counter(want) - Counter(have), Counter(have) - Counter(want)
        lost += missing.total()
        doubled += more.total()
        disordered += not missing and not more
    return Difference(lost, doubled, disordered)


def folded(upserted: Changes) -> dict[int, tuple[object, object]]:
    """The rows that the last record of each key leaves."""
    last = {key: texts[-1] for key, texts in upserted.items()}
    rows = {key: json.loads(text) for key, text in last.items() if text != "-"}
    return {key: (row["left_version"], row["right_version"]) for key, row in rows.items()}


@contextmanager
def stage(folder: Path, data: Data, epochs: int) -> Iterator[Stage]:
    """A broker with the input, as long as the block lasts."""
    port, proxy_port = free_ports(2)
    proxy = Proxy(proxy_port, port)
    try:
        with Broker(folder / "kafka", port, advertised_port=proxy_port) as broker:
            made = Stage(folder, broker, proxy, f"{LOOPBACK}:{proxy_port}", data, epochs)
            made.create("in_left", "in_right")
            made.load("in")
            yield made
    finally:
        proxy.close()
