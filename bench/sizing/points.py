"""What `bench.sizing` runs, and what a run has shown, which is kept as JSON for other fits."""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Literal

from bench.workloads.catalog import WORKLOADS
from bench.workloads.records import BenchData
from bench.workloads.regular import RegularData
from bench.workloads.workload import Workload
from spark_jobs.sizing.coefficients import Measured

CORES = 2
JoinName = Literal["regular", "temporal", "interval"]
_WORKLOADS: dict[JoinName, str] = {
    "regular": "regular-upsert",
    "temporal": "temporal-left",
    "interval": "interval-left",
}


@dataclass(frozen=True, slots=True)
class Setup:
    """One run. Runs with the same `data` read the same topics.

    `offsets`: most records of a table in an epoch. `held_out`: the fit does not see it. `inner`: an
    inner join instead of the left join.
    """

    name: str
    job: JoinName
    rows: int
    keys: int
    note_bytes: int = 0
    offsets: int = 150_000
    parallelism: int = CORES
    on_executors: bool = False
    inner: bool = False
    held_out: bool = False

    @property
    def data(self) -> tuple[JoinName, int, int, int]:
        return self.job, self.rows, self.keys, self.note_bytes

    def bench_data(self) -> BenchData:
        """The data of the run, not generated yet."""
        if self.job == "regular":
            return RegularData(self.rows, self.keys, self.note_bytes)
        return WORKLOADS[_WORKLOADS[self.job]].data(self.rows, self.keys)

    def workload(self) -> Workload:
        """The workload of the run."""
        found = WORKLOADS[_WORKLOADS[self.job]]
        return replace(found, sql=found.sql.replace("LEFT JOIN", "JOIN")) if self.inner else found


@dataclass(frozen=True, slots=True)
class Point:
    """What a run has shown between two commits of epochs, once warm.

    `rows` by table. `record_bytes` and `text_bytes` are means of the generated records, by table.
    Bytes of Kafka are those on the broker's disk, as they crossed the network. `state_rows` by side
    and `state_bytes` belong to the moment at which the state was largest.
    """

    setup: Setup
    epochs: int
    seconds: float
    rows: Mapping[str, int]
    results: float
    record_bytes: Mapping[str, float]
    text_bytes: Mapping[str, float]
    job_cpu_s: float
    driver_cpu_s: float
    broker_cpu_s: float
    read_cpu_share: float
    shuffle_bytes: int
    changelog_bytes: int
    kafka_in_bytes: float
    kafka_out_bytes: float
    state_rows: Mapping[str, int]
    state_bytes: int
    peak_rss_bytes: int
    whole_run_s: float
    epoch_seconds: Sequence[float] = field(default_factory=tuple)

    @property
    def rows_in(self) -> int:
        return sum(self.rows.values())


def setups(rows: int) -> tuple[Setup, ...]:
    """All runs, in order; what comes last is left out if the time is short."""
    regular = Setup("regular", "regular", rows, 500_000)
    executors = replace(regular, name="regular, executors", on_executors=True)
    temporal = Setup("temporal", "temporal", rows, 100_000)
    interval = Setup("interval", "interval", rows, rows // 2)
    return (
        regular,
        executors,
        replace(regular, name="regular, short epochs", offsets=60_000),
        replace(regular, name="regular, 8 tasks", parallelism=8),
        replace(executors, name="regular, executors, 8 tasks", parallelism=8),
        temporal,
        replace(temporal, name="temporal, executors", on_executors=True),
        interval,
        replace(interval, name="interval, inner", inner=True),
        replace(regular, name="regular, few keys", keys=20_000),
        replace(regular, name="regular, long notes", note_bytes=300),
        *_held_out(rows),
        replace(temporal, name="temporal, few keys", keys=2_000),
    )


def _held_out(rows: int) -> tuple[Setup, ...]:
    """Other keys, widths and epochs than those of the fit."""
    regular = Setup("held out: regular", "regular", rows, 150_000, 120)
    temporal = Setup("held out: temporal, executors", "temporal", rows, 30_000, on_executors=True)
    interval = Setup("held out: interval", "interval", rows, rows // 3)
    return tuple(replace(s, offsets=100_000, held_out=True) for s in (regular, temporal, interval))


def quick_setups() -> tuple[Setup, ...]:
    """A few short runs that show whether measuring works; too short for figures."""
    rows = 400_000
    plain = Setup("regular", "regular", rows, 50_000, offsets=40_000)
    return (
        plain,
        replace(plain, name="regular, executors", on_executors=True),
        Setup("temporal", "temporal", rows, 10_000, offsets=40_000),
        Setup("interval", "interval", rows, rows // 2, offsets=40_000),
        Setup("held out: regular", "regular", rows, 20_000, 120, 40_000, held_out=True),
    )


def write_points(path: Path, points: Sequence[Point], measured: Measured) -> None:
    """Write what the data file of the model has, too, but for the fit."""
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {"measured": asdict(measured), "points": [asdict(point) for point in points]}
    path.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def read_points(text: str) -> tuple[Measured | None, list[Point]]:
    """What `write_points` has written, or the points of a data file; None if it has none."""
    document = json.loads(text)
    measured = document["measured"]
    points = [Point(**{**p, "setup": Setup(**p["setup"])}) for p in document["points"]]
    return None if measured is None else Measured(**measured), points
