"""Judges the joins of the tables that Debezium captures (`docker-compose.yml`, profile cdc).

python -m spark_jobs.demo.capture --servers broker:19092 --registry http://registry:8080/apis/ccompat/v7
"""

import argparse
import sys
import time
from collections.abc import Callable
from pathlib import Path

import httpx
from confluent_kafka import Message

from spark_jobs.demo import capture_topics as topics
from spark_jobs.demo.capture_audit import CaptureAudit, Fields
from spark_jobs.demo.capture_topics import AvroReader, Reader, create_topics
from spark_jobs.embedded.process import stop_signals
from spark_jobs.errors import RejoinError

# a difference that lasts longer is a fault, not a job that has not come to it yet
PATIENCE_S = 120.0
_VERDICT_EVERY_S = 5.0
_TOLD = 5


class Judge:
    """The verdict over what has been read: right, waiting for the job, or wrong."""

    def __init__(self, registry_url: str, patience_s: float) -> None:
        self._audit = CaptureAudit()
        self._avro = AvroReader(registry_url)
        self._patience_s = patience_s
        self._since: dict[str, float] = {}
        self._dead_letters = 0
        self._takes: dict[str, Callable[[Fields], None]] = {
            topics.CUSTOMERS: self._audit.customer,
            topics.PURCHASES: self._audit.purchase,
            topics.PAYMENTS: self._audit.payment,
            topics.ADDRESSED: self._audit.addressed,
        }

    def take(self, message: Message) -> None:
        topic, value = message.topic(), message.value()
        if topic == topics.DEAD_LETTERS:
            self._dead_letters += 1
        elif topic == topics.PROMPT:
            payment = self._avro.fields(message.key() or b"")["payment_id"]
            self._audit.prompt(payment, None if value is None else self._avro.fields(value))
        elif value is not None and topic is not None:
            self._takes[topic](self._avro.fields(value))

    def verdict(self, now_s: float) -> str:
        differences = set(self._audit.differences())
        self._since = {text: self._since.get(text, now_s) for text in differences}
        overdue = [t for t, since in self._since.items() if now_s - since > self._patience_s]
        faults = self._audit.broken + sorted(overdue)
        if self._dead_letters:
            faults.append(f"{self._dead_letters} dead letters")
        if faults:
            return f"wrong: {len(faults)} faults: {'; '.join(faults[:_TOLD])}"
        state = "waiting" if differences else "right"
        counts = f"{self._audit.changes} changes, {self._audit.rows} rows"
        return f"{state}: {counts}, {len(differences)} still to come"


def main() -> int:
    """Runs until it is stopped; 1 if the last verdict was a fault."""
    options = _options()
    try:
        if options.create_topics:
            create_topics(options.servers)
            return 0
        return _judge(options)
    except RejoinError as error:
        sys.stderr.write(f"{error.render()}\n")
        return error.exit_code


def _judge(options: argparse.Namespace) -> int:
    judge = Judge(options.registry, PATIENCE_S)
    reader = Reader(options.servers)
    verdict, due_s = "", 0.0
    try:
        with stop_signals() as stop:
            while not stop.is_set():
                for message in reader.poll(0.5):
                    _take(judge, message, stop.wait)
                if time.monotonic() < due_s:
                    continue
                due_s = time.monotonic() + _VERDICT_EVERY_S
                verdict = judge.verdict(time.monotonic())
                options.verdict.write_text(f"{verdict}\n", encoding="utf-8")
                sys.stdout.write(f"{verdict}\n")
                sys.stdout.flush()
    finally:
        reader.close()
    return 1 if verdict.startswith("wrong") else 0


def _take(judge: Judge, message: Message, wait: Callable[[float], bool]) -> None:
    """As often as the registry needs to answer."""
    while True:
        try:
            return judge.take(message)
        except httpx.HTTPError as problem:
            sys.stdout.write(f"the registry: {problem}\n")
            if wait(1.0):
                return None


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m spark_jobs.demo.capture", description=__doc__)
    parser.add_argument("--servers", default="localhost:9092", help="address of the broker")
    parser.add_argument(
        "--registry", default="http://localhost:8081/apis/ccompat/v7", help="schema registry"
    )
    parser.add_argument("--create-topics", action="store_true", help="do that, and end")
    parser.add_argument(
        "--verdict", type=Path, default=Path("verdict"), help="file of the last one"
    )
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
