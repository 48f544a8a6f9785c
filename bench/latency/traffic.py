"""What a measured job reads, and who reads its results: stamped records and a consumer."""

import multiprocessing
import re
import time
from collections.abc import Iterable
from multiprocessing.connection import Connection

from confluent_kafka import Consumer, Producer, TopicPartition

from bench.latency.workloads import RESULT
from bench.workloads.records import PARTITIONS
from spark_jobs.errors import KafkaError

Latency = tuple[float, float]  # when a record was sent, and how many ms its result took
KEYS = 5_000
_QUIET_S = 5.0  # nothing has come for so long: there is nothing more
_SENT = re.compile(rb'"sent":(\d+)')  # reading each result as JSON would cost its engine the time
_AT_ONCE = 1000  # messages that have come, read with one look at the clock


class Feed:
    """Records of both tables, sent at once."""

    def __init__(self, servers: str) -> None:
        # while an engine starts, the broker may take nothing for seconds
        room = {"queue.buffering.max.messages": 1_000_000}
        self._producer = Producer({"bootstrap.servers": servers, "linger.ms": 0, **room})

    def left(self, ids: Iterable[int]) -> None:
        """A record for each id, stamped with the same moment."""
        now_us = time.time_ns() // 1000
        at = _text(now_us)
        made = [(f'{{"id":{id_},"sent":{now_us},"at":"{at}"}}', f'{{"id":{id_}}}') for id_ in ids]
        for value, key in made:  # together: the producer sends what is there
            self._producer.produce("l", value, key)
        self._producer.poll(0)

    def right(self, id_: int) -> None:
        self._send("r", id_, f'"amount":{id_ % 1000}', time.time_ns() // 1000)

    def move_watermarks(self) -> None:
        """One record in each partition of the right table."""
        now_us = time.time_ns() // 1000
        for partition in range(PARTITIONS):
            self._send("r", KEYS + partition, '"amount":0', now_us, partition)

    def wait(self) -> None:
        if self._producer.flush(60):
            raise KafkaError("BENCH_LOAD_FAILED", "the broker does not take the records")

    def close(self) -> None:
        """A producer that stays open goes on asking for the broker, also when that has stopped."""
        self._producer.close()

    def _send(self, topic: str, id_: int, field: str, at_us: int, partition: int = -1) -> None:
        value = f'{{"id":{id_},{field},"at":"{_text(at_us)}"}}'
        self._producer.produce(topic, value, f'{{"id":{id_}}}', partition)
        self._producer.poll(0)

    def run(self, rate: int, seconds: float, *, moves: bool) -> None:
        """Stamp `rate` records a second, evenly."""
        started, sent, moved = time.monotonic(), 0, 0.0
        while (elapsed := time.monotonic() - started) < seconds:
            due = int(elapsed * rate)
            self.left(id_ % KEYS for id_ in range(sent, due))
            sent = due
            if moves and elapsed - moved >= 0.005:
                moved = elapsed
                self.move_watermarks()
            time.sleep(0.001)
        self.wait()


def _text(at_us: int) -> str:
    seconds, micros = divmod(at_us, 1_000_000)
    return time.strftime("%Y-%m-%d %H:%M:%S", time.gmtime(seconds)) + f".{micros // 1000:03}Z"


def watch(servers: str, results: Connection) -> None:
    """A process of its own: sends a latency in ms for each result once it is told to end."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": "latency",
            "isolation.level": "read_committed",
            "fetch.wait.max.ms": 10,
        }
    )
    consumer.assign([TopicPartition(RESULT, p, 0) for p in range(PARTITIONS)])
    found: list[Latency] = []
    last = time.monotonic()
    while not (results.poll() and time.monotonic() - last > _QUIET_S):
        first = consumer.poll(0.2)
        if first is None:
            continue
        messages = [first, *consumer.consume(_AT_ONCE, 0)]
        last, now_us = time.monotonic(), time.time_ns() // 1000
        for message in messages:
            value = None if message.error() else message.value()
            stamp = None if value is None else _SENT.search(value)
            if stamp is not None:
                if not found:
                    results.send("first")
                sent = int(stamp[1])
                found.append((sent / 1e6, (now_us - sent) / 1000))
    consumer.close()
    results.recv()
    results.send(found)


class Watcher:
    """A consumer of committed records, in a process of its own."""

    def __init__(self, servers: str) -> None:
        self._pipe, theirs = multiprocessing.Pipe()
        self._process = multiprocessing.Process(target=watch, args=(servers, theirs))

    def __enter__(self) -> "Watcher":
        self._process.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._process.terminate()
        self._process.join()

    @property
    def has_started(self) -> bool:
        return self._pipe.poll()

    def results(self) -> list[Latency]:
        self._pipe.recv()  # "first"
        self._pipe.send("end")
        found: list[Latency] = self._pipe.recv()
        return found
