"""Plays a workload into PostgreSQL at a steady rate, in a thread of its own."""

import time
from collections import Counter
from concurrent.futures import Future, ThreadPoolExecutor
from threading import Event

import psycopg

from tests.e2e.postgres import Postgres
from tests.e2e.workload import Transaction, Workload

RATE = 40.0  # transactions per second


class Player:
    """`executed` counts statements by kind, those of rolled back transactions apart."""

    def __init__(self, database: Postgres, workload: Workload, seconds: float) -> None:
        self._database = database
        self._workload = workload
        self._count = int(seconds * RATE)
        self._stop = Event()
        self._pool = ThreadPoolExecutor(1, "player")
        self._future: Future[None] | None = None
        self.executed: Counter[str] = Counter()
        self.done = 0

    @property
    def progress(self) -> float:
        """From 0 to 1."""
        return self.done / max(self._count, 1)

    def start(self) -> None:
        self._future = self._pool.submit(self._play)

    def is_playing(self) -> bool:
        """Raise what ended it, if that was an error."""
        if self._future is not None and self._future.done():
            self._future.result()
            return False
        return True

    def stop(self) -> None:
        self._stop.set()
        self._pool.shutdown()

    def run_now(self, transaction: Transaction) -> None:
        """Outside the rate, by the caller's thread."""
        with self._database.connect() as connection:
            self._run(connection, transaction)

    def _play(self) -> None:
        begun = time.monotonic()
        with self._database.connect() as connection:
            for transaction in self._workload.transactions(self._count):
                self._run(connection, transaction)
                self.done += 1
                ahead = begun + self.done / RATE - time.monotonic()
                if self._stop.wait(max(ahead, 0)):
                    return

    def _run(self, connection: psycopg.Connection, transaction: Transaction) -> None:
        for statement in transaction.statements:
            connection.execute(statement.sql, statement.values)
            kind = statement.kind if transaction.commits else "rolled back"
            self.executed[kind] += 1
        if transaction.commits:
            connection.commit()
        else:
            connection.rollback()
