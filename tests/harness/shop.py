"""`rejoin run` as a process of its own: its topics, what they get, and what comes out of it."""

import json
import sys
import time
import uuid
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from confluent_kafka import Consumer, Message, Producer, TopicPartition
from confluent_kafka.admin import AdminClient, NewTopic

from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child
from spark_jobs.status import JobStatus, read_status

PARTITIONS = 2
START_S = 240.0  # a busy machine starts Spark slowly
PAID = """\
INSERT INTO paid_sink
SELECT o.id, o.customer, p.amount FROM orders AS o JOIN payments AS p ON o.id = p.order_id;
"""

Row = dict[str, object]


@dataclass
class Shop:
    """Topics of one test, the job over them, and what has come out.

    `delivery`: options of the sink, where a test runs with several guarantees.
    """

    broker: Broker
    folder: Path
    prefix: str = field(default_factory=lambda: f"t{uuid.uuid4().hex[:8]}")
    delivery: dict[str, str] = field(default_factory=dict)
    running: list[Child] = field(default_factory=list)
    within_s: float = START_S

    def topic(self, name: str) -> str:
        return f"{self.prefix}_{name}"

    def create(self, *names: str, partitions: int = PARTITIONS) -> None:
        admin = AdminClient({"bootstrap.servers": self.broker.bootstrap_servers})
        wanted = [NewTopic(self.topic(name), partitions, 1) for name in names]
        for made in admin.create_topics(wanted).values():
            made.result(30)

    def send(
        self,
        name: str,
        rows: Sequence[Row | bytes],
        key: str | None = None,
        partition: int = -1,
    ) -> None:
        """Send rows as JSON: by key, to the partition that is given, or each to any."""
        producer = Producer(
            {
                "enable.idempotence": True,
                "sticky.partitioning.linger.ms": 0,  # else a fast machine fills one partition
                "bootstrap.servers": self.broker.bootstrap_servers,
            }
        )
        for row in rows:
            value = row if isinstance(row, bytes) else json.dumps(row).encode()
            own_key = None if key is None or isinstance(row, bytes) else json.dumps({key: row[key]})
            producer.produce(self.topic(name), value, own_key, partition)
            producer.poll(0)
        assert producer.flush(30) == 0

    def delete(self, name: str, key: str, values: Sequence[object]) -> None:
        """Send tombstones."""
        producer = Producer({"bootstrap.servers": self.broker.bootstrap_servers})
        for value in values:
            producer.produce(self.topic(name), None, json.dumps({key: value}))
        assert producer.flush(30) == 0

    def table(self, name: str, columns: str, connector: str = "kafka", **options: str) -> str:
        formats = {"value.format": "json"}
        if connector == "upsert-kafka":
            formats["key.format"] = "json"
        elif "sink" not in name:
            formats["scan.startup.mode"] = "earliest-offset"
        given = {
            "connector": connector,
            "topic": self.topic(name),
            "properties.bootstrap.servers": self.broker.bootstrap_servers,
            **formats,
            **{k.replace("__", ".").replace("_", "-"): v for k, v in options.items()},
        }
        listed = ", ".join(f"'{k}' = '{v}'" for k, v in given.items() if v)
        return f"CREATE TABLE {name} ({columns}) WITH ({listed});\n"

    def start(self, sql: str, *options: str) -> Child:
        job = self.folder / "job.sql"
        job.write_text(f"SET 'rejoin.parallelism' = '2';\n{sql}", encoding="utf-8")
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(job)]
        command += ["--checkpoint", str(self.folder / "checkpoint")]
        command += ["--status-dir", str(self.folder / "status")]
        command += options or ["--no-sidecar"]
        child = Child(command, self.folder / f"run{len(self.running)}.log")
        self.running.append(child)
        return child

    def run(self, sql: str, *options: str) -> Child:
        """A job that ends by itself, with success."""
        child = self.start(sql, *options)
        assert child.wait(self.within_s), child.log_tail(40)
        assert child.exit_code == 0, child.log_tail(40)
        return child

    def status(self) -> JobStatus:
        found = read_status(self.folder / "status")
        assert found is not None
        return found

    def messages(
        self, name: str, enough: Callable[[list[Message]], bool], quiet_s: float = 2.0
    ) -> list[Message]:
        """What a read_committed consumer sees, until it is enough and no more has come for a while.

        The while lasts `quiet_s`; with 0, nothing is waited for once it is enough.
        """
        consumer = Consumer(
            {
                "bootstrap.servers": self.broker.bootstrap_servers,
                "group.id": uuid.uuid4().hex,
                "isolation.level": "read_committed",
            }
        )
        consumer.assign([TopicPartition(self.topic(name), p, 0) for p in range(PARTITIONS)])
        found: list[Message] = []
        deadline = quiet_since = time.monotonic()
        deadline += self.within_s
        while time.monotonic() < deadline:
            message = consumer.poll(0.2)
            if message is not None:
                assert message.error() is None
                found.append(message)
                quiet_since = time.monotonic()
            if time.monotonic() - quiet_since >= quiet_s and enough(found):
                break
        consumer.close()
        return found

    def rows(self, name: str, count: int) -> Counter[str]:
        """Rows of an append topic by their text."""
        found = self.messages(name, lambda messages: len(messages) >= count)
        return Counter(text(json.loads(m.value())) for m in found)


def text(row: Row) -> str:
    return json.dumps(row, sort_keys=True)


def payments_job(shop: Shop, bounded: bool, **sink: str) -> str:
    """An inner join of two append-only tables: each row of the result comes exactly once."""
    ends = {"scan__bounded__mode": "latest-offset"} if bounded else {}
    return (
        shop.table("orders", "id BIGINT, customer STRING", **ends)
        + shop.table("payments", "order_id BIGINT, amount INT", **ends)
        + shop.table("paid_sink", "id BIGINT, customer STRING, amount INT", **sink)
        + PAID
    )


def orders(start: int, end: int) -> list[Row]:
    return [{"id": i, "customer": f"c{i % 7}"} for i in range(start, end)]


def payments(start: int, end: int) -> list[Row]:
    """Some orders are never paid, some twice."""
    return [{"order_id": i, "amount": 10 * i + n} for i in range(start, end) for n in range(i % 3)]


def paid(start: int, end: int) -> Counter[str]:
    """The join, without rejoin."""
    by_id = {o["id"]: o for o in orders(start, end)}
    return Counter(
        text({**by_id[p["order_id"]], "amount": p["amount"]}) for p in payments(start, end)
    )


def wait_until(condition: Callable[[], bool], child: Child, seconds: float = START_S) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, f"timed out:\n{child.log_tail(40)}"
        assert child.exit_code is None, child.log_tail(40)
        time.sleep(0.1)


def written(shop: Shop) -> int:
    found = read_status(shop.folder / "status")
    return 0 if found is None or not found.queries else found.queries[0].output_rows_total
