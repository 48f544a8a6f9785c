"""Says after each step whether what happened was allowed; shares nothing with the kernel."""

import json
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from tests.simulation.history import WRITERS, History, Step
from tests.simulation.jobs import JOBS, PARALLELISM, scanned
from tests.simulation.models import Epoch, Read, Row

# of a call that fails on purpose; where another has the task's id, or has written Spark's log
_EXPECTED_ERRORS = ("TimeoutException: fail-", "ProducerFenced", "another driver has")
_ZERO = datetime(2020, 1, 1)


@dataclass(frozen=True, slots=True)
class Violation:
    """`step`: its place in the history; `rule` for what stays the same when a history is shrunk."""

    step: int
    rule: str
    text: str


class Broken(Exception):
    def __init__(self, rule: str, text: str) -> None:
        super().__init__(text)
        self.rule = rule


def judge(history: History, outcomes: Sequence[Any]) -> Violation | None:
    court = _Court(history)
    for number, (step, outcome) in enumerate(zip(history.steps, outcomes, strict=True)):
        try:
            court.hear(step, outcome)
        except Broken as broken:
            return Violation(number, broken.rule, str(broken))
    try:
        if history.settling:
            court.close()
    except Broken as broken:
        return Violation(len(history.steps) - 1, broken.rule, str(broken))
    return None


@dataclass(slots=True)
class _Ledger:
    next: int = 0
    generation: int = 0
    begun: bool = False


class _Court:
    def __init__(self, history: History) -> None:
        self._job = JOBS[history.job]
        self._tables = scanned(history.job)
        self._model = self._job.model()
        self._writers = WRITERS.get(history.job, PARALLELISM)
        self._topics: dict[str, list[list[Read]]] = {s.name: [] for s in self._job.sources}
        self._read: dict[tuple[int, int], int] = {}
        self._ledgers: dict[str, _Ledger] = {}
        self._epochs = 0
        self._view: Counter[Row] = Counter()
        self._by_key: dict[Row, Row] = {}

    def hear(self, step: Step, outcome: Any) -> None:
        if step[0] == "topic":
            logs = self._topics[step[1]]
            logs += [[] for _ in range(step[2] - len(logs))]
        elif step[0] == "feed":
            self._feed(*step[1:])
        for entry in outcome["transactions"]:
            self._hear_commit(*entry)
        for generation, message in outcome["errors"]:
            self._hear_error(generation, message, outcome["generation"])
        for record in outcome["records"]:
            self._fold(*record)
        for logged in outcome["epochs"]:
            self._hear_epoch(logged)
        if all(ledger.next == self._epochs for ledger in self._ledgers.values()):
            self._compare()

    def close(self) -> None:
        """After a settled history nothing waits."""
        for scan, table in enumerate(self._tables):
            for partition, log in enumerate(self._topics[table]):
                if self._read.get((scan, partition), 0) < len(log):
                    raise Broken("liveness", f"{table}-{partition} was not read to its end")
        behind = [name for name, ledger in self._ledgers.items() if ledger.next != self._epochs]
        if behind:
            raise Broken("liveness", f"not all writers wrote epoch {self._epochs - 1}: {behind}")
        if self._job.name == "interval":
            shown = {row[0] for row in self._view}
            rows = [r.values for log in self._topics["a"] for r in log if r.values]
            lost = [r["id"] for r in rows if r["t"] < 1_700_000 and r["id"] not in shown]
            if lost:
                raise Broken("liveness", f"neither joined nor padded: a.id {lost}")

    def _feed(self, table: str, partition: int, key: str | None, value: str | None) -> None:
        values = None if value is None else json.loads(value)
        if values is not None and "t" in values:
            since = datetime.fromisoformat(values["t"]) - _ZERO
            values["t"] = round(since.total_seconds() * 1000)
        self._topics[table][partition].append(Read(partition, key, values))

    def _hear_commit(self, writer: str, following: int, generation: int, records: int) -> None:
        known = self._ledgers.setdefault(writer, _Ledger())
        said = f"{writer}: driver {generation} commits next {following} with {records} records"
        if not known.begun and (following, records) != (0, 0):
            raise Broken("ledger", f"{said}, as its first transaction")
        if generation < known.generation:
            raise Broken("ledger", f"{said} after driver {known.generation}")
        if known.begun and following not in (known.next, known.next + 1):
            raise Broken("ledger", f"{said} after next {known.next}")
        if following == known.next and records:
            raise Broken("ledger", f"{said}, which was committed already")
        known.next, known.generation, known.begun = following, generation, True

    def _hear_error(self, generation: int, message: str, present: int) -> None:
        if generation == present and not any(name in message for name in _EXPECTED_ERRORS):
            raise Broken("refused", f"driver {generation}: {message}")

    def _hear_epoch(self, logged: Any) -> None:
        records: list[list[Read]] = [[] for _ in self._tables]
        for scan, partition, end in logged["ends"]:
            start = self._read.get((scan, partition), 0)
            records[scan] += self._topics[self._tables[scan]][partition][start:end]
            self._read[scan, partition] = end
        self._model.epoch(Epoch(records, logged["counts"], logged["at"]))
        self._epochs += 1
        behind = [n for n, ledger in self._ledgers.items() if ledger.next < self._epochs]
        if behind or len(self._ledgers) < self._writers:
            raise Broken("ledger", f"epoch {self._epochs - 1} is committed without {behind}")

    def _fold(self, key: str | None, value: str | None) -> None:
        if self._job.is_keyed:
            assert key is not None
            place = tuple(json.loads(key).values())
            if place in self._by_key:
                self._view[self._by_key.pop(place)] -= 1
            if value is not None:
                row = tuple(json.loads(value).values())
                self._by_key[place] = row
                self._view[row] += 1
            return
        assert value is not None
        data = json.loads(value)
        kind = data.pop("op", "+I") if "data" in data else "+I"
        row = tuple(data.get("data", data).values())
        self._view[row] += 1 if kind in ("+I", "+U") else -1

    def _compare(self) -> None:
        wanted = self._model.contents()
        if wanted == self._view:
            return
        missing = [row for row in wanted if wanted[row] > self._view[row]]
        surplus = [row for row in self._view if self._view[row] > wanted[row]]
        if missing or surplus or any(n < 0 for n in self._view.values()):
            text = f"after epoch {self._epochs - 1}: missing {missing}, too much {surplus}"
            raise Broken("result", text)
