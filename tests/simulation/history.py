"""Random histories: what is fed, how time passes, what fails and when.

A step is a list, its name first:
["topic", table, partitions]        the topic has as many partitions from now on
["feed", table, partition, key, value]   a record; key and value are JSON text or null
["wait", ms]                        time passes; idle producers' hearts beat
["discover"]                        the driver notices the present partition counts
["start", replaces, fault, call]    starts the query where it does not run: one that failed, in
                                    its driver; or a new driver, in place of a living one if
                                    `replaces`. The fault is at a call to Kafka during the start
["epoch", driver, {...}]            the next epoch of the last driver (0) or the one before (1);
                                    fields: EpochStep in kernel/SimulatedDriver.scala
["kill", with executors]            of the last driver
["wake", calls]                     tasks that were thought dead go on by some calls; 0: to their
                                    end, and drivers note the epoch that they had written
"""

import json
import random
from dataclasses import dataclass, field
from typing import Any, TypeAlias

from tests.simulation.jobs import IDLE_MS, JOBS, PARALLELISM, Job, Source

Step: TypeAlias = list[Any]

FAULTS = ("unfenced", "lost-mark", "live-idle")
WRITERS = {"union": 2 * PARALLELISM}
_TRANSACTION_TIMEOUT_MS = 600_000
_CALL_FAULTS = ("die-before", "die-after", "fail-before", "fail-after")
_KEYS = 4
_ALL = 1_000


@dataclass(frozen=True, slots=True)
class History:
    """`settling`: how many steps at the end let everything that waits happen."""

    job: str
    local: bool
    steps: tuple[Step, ...]
    settling: int

    def text(self) -> str:
        lines = [f"job {self.job}, {'one JVM' if self.local else 'a driver and two executors'}"]
        lines += [f"{i:3} {json.dumps(step)}" for i, step in enumerate(self.steps)]
        return "\n".join(lines)


def random_history(seed: int, number: int) -> History:
    rng = random.Random(f"{seed}/{number}")  # noqa: S311
    return _Writer(rng, JOBS[rng.choice(list(JOBS))]).history()


@dataclass(slots=True)
class _Writer:
    rng: random.Random
    job: Job
    steps: list[Step] = field(default_factory=list)
    partitions: dict[str, int] = field(default_factory=dict)
    # get no records
    quiet: set[tuple[str, int]] = field(default_factory=set)
    places: dict[tuple[str, int], int] = field(default_factory=dict)
    fed: int = 0
    second: int = 20

    def history(self) -> History:
        rng = self.rng
        local = rng.random() < 0.3
        for source in self.job.sources:
            self.partitions[source.name] = rng.choice([1, 2, 2, 3])
            self.steps.append(["topic", source.name, self.partitions[source.name]])
            if self.job.timed and rng.random() < 0.4:
                self.quiet.add((source.name, rng.randrange(self.partitions[source.name])))
        for _ in range(rng.randint(6, 22)):
            self._some_steps()
        before = len(self.steps)
        self._settle()
        steps = tuple(self.steps)
        return History(self.job.name, local, steps, len(steps) - before)

    def _some_steps(self) -> None:
        rng = self.rng
        chance = rng.random()
        if chance < 0.30:
            for _ in range(rng.randint(1, 5)):
                self._feed(rng.choice(self.job.sources))
            self.second += rng.choice([0, 0, 1, 2, 4])
        elif chance < 0.40:
            self.steps.append(["wait", rng.choice([100, 1_000, 6_000, 30_000, 70_000])])
        elif chance < 0.44:
            self._grow()
        elif chance < 0.49:
            self.steps.append(["kill", rng.random() < 0.5])
        elif chance < 0.54:
            self.steps.append(["wake", rng.choice([0, 1, 2])])
        elif chance < 0.60:
            self._start(replaces=True)
        else:
            for _ in range(rng.randint(1, 2)):
                self._feed(rng.choice(self.job.sources))
            if rng.random() < 0.9:
                self._start(replaces=False)
            ago = 1 if rng.random() < 0.1 else 0
            self.steps.append(["epoch", ago, self._epoch(rng.random() < 0.5)])

    def _grow(self) -> None:
        name = self.rng.choice(self.job.sources).name
        if self.partitions[name] < 4:
            self.partitions[name] += 1
            self.steps.append(["topic", name, self.partitions[name]])
            if self.rng.random() < 0.5:
                self.steps.append(["discover"])

    def _start(self, replaces: bool) -> None:
        fault, call = None, 0
        if self.rng.random() < 0.08:
            fault, call = self.rng.choice(_CALL_FAULTS), self.rng.randrange(9)
        self.steps.append(["start", replaces, fault, call])

    def _epoch(self, faulty: bool) -> dict[str, Any]:
        rng = self.rng
        writers = WRITERS.get(self.job.name, PARALLELISM)
        faults = []
        for writer in range(writers):
            if faulty and rng.random() < 0.6:
                kind = rng.choice([*_CALL_FAULTS, "linger", "linger", "twice"])
                faults.append({"writer": writer, "kind": kind, "at": rng.randrange(6)})
        stop = rng.choice(["planned", "written", "written"]) if rng.random() < 0.08 else None
        return {
            "caps": [rng.choice([0, 1, 2, _ALL, _ALL]) for _ in range(rng.randint(1, 5))],
            "places": [rng.randrange(2) for _ in range(writers)],
            "order": rng.randrange(1_000_000),
            "faults": faults,
            "stop": stop,
        }

    def _clean_epoch(self) -> None:
        step = self._epoch(faulty=False) | {"caps": [_ALL], "stop": None}
        self.steps += [["start", False, None, 0], ["epoch", 0, step]]

    def _feed(self, source: Source, second: int | None = None, only: int | None = None) -> None:
        rng = self.rng
        values: dict[str, Any] = {}
        for column in source.columns:
            values[column] = rng.randrange(_KEYS)
        if source.key is None or source.key == "id":
            self.fed += 1
            values[source.columns[0]] = self.fed
        if source.key == "id" and rng.random() < 0.5:
            values["id"] = rng.randrange(1, 6)
        if source.timed:
            at = self.second + rng.randint(-7, 7) if second is None else second
            values["t"] = f"2020-01-01 00:{at // 60:02}:{at % 60:02}.000"
        partition = self._partition(source, values) if only is None else only
        if only is None and (source.name, partition) in self.quiet:
            return
        key = None if source.key is None else json.dumps({source.key: values[source.key]})
        is_deletion = source.key is not None and not source.timed and rng.random() < 0.2
        value = None if is_deletion else json.dumps(values)
        self.steps.append(["feed", source.name, partition, key, value])

    def _partition(self, source: Source, values: dict[str, Any]) -> int:
        """All records of a key are in one partition, also when there are more later."""
        count = self.partitions[source.name]
        if source.key is None:
            return self.rng.randrange(count)
        place = (source.name, values[source.key])
        return self.places.setdefault(place, self.rng.randrange(count))

    def _settle(self) -> None:
        """Everybody wakes, time passes all timeouts, all partitions advance that are not quiet."""
        self.steps += [["wake", 0], ["wait", _TRANSACTION_TIMEOUT_MS + 1_000]]
        self.steps += [["start", False, None, 0], ["discover"]]
        self._clean_epoch()
        self._clean_epoch()
        if not self.job.timed:
            return
        for late in range(3):  # by the last time, what is quiet is idle and all else is not
            self.steps.append(["wait", IDLE_MS * 6 // 10])
            for source in self.job.sources:
                for partition in range(self.partitions[source.name]):
                    if (source.name, partition) not in self.quiet:
                        self._feed_mark(source, partition, late)
            self._clean_epoch()

    def _feed_mark(self, source: Source, partition: int, late: int) -> None:
        """A row far behind all others, which meets none."""
        values = dict.fromkeys(source.columns, 1000 + 10 * partition + late)
        values["t"] = f"2020-01-01 00:30:0{late}.000"  # type: ignore[assignment]
        key = None if source.key is None else json.dumps({source.key: values[source.key]})
        self.steps.append(["feed", source.name, partition, key, json.dumps(values)])
