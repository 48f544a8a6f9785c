"""The measured constants of the model: one data file, with what each of them rests on.

`python -m bench.sizing --write` writes the file from runs of the benchmark's jobs; no formula of
the model has a figure of its own.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cache
from pathlib import Path
from typing import Literal, TypeAlias

DATA = Path(__file__).with_name("coefficients.json")
FITTED = "fitted to"
"""How the source of a fitted coefficient begins."""

CostKind: TypeAlias = Literal["regular", "temporal", "interval"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficients:
    """What a row, a byte, a key, a task and an epoch cost; units are in the names.

    Processor time: `regular_row_us` and its like per row that an operator reads, with decoding and
    exchange; `record_byte_ns` per byte of a record; `touched_key_us` per different key of an epoch;
    `result_us` per result; `executor_row_us` per row beside that on executors; `task_cpu_ms` per
    stateful task and epoch; `read_share` is the part of it before the exchange.

    Waiting: an epoch takes `epoch_s`, `driver_task_ms` for each stateful task, one after the other,
    `task_wait_ms` for each stateful task of a core, and `wait_factor` times what its work takes on
    all cores.

    Bytes: of a row in the exchange (`shuffle_row_bytes`, and `shuffle_ratio` of its packed form),
    in a changelog file per byte of a stored row, in RocksDB per byte of state, in Kafka per byte
    of a record or of a packed result, and of heap per record of an epoch.
    """

    regular_row_us: float
    temporal_row_us: float
    interval_row_us: float
    record_byte_ns: float
    touched_key_us: float
    result_us: float
    executor_row_us: float
    task_cpu_ms: float
    read_share: float
    epoch_s: float
    driver_task_ms: float
    task_wait_ms: float
    wait_factor: float
    shuffle_row_bytes: float
    shuffle_ratio: float
    regular_changelog_ratio: float
    temporal_changelog_ratio: float
    interval_changelog_ratio: float
    state_ratio: float
    kafka_in_ratio: float
    kafka_out_ratio: float
    heap_record_bytes: float
    heap_base_mb: float

    def row_us(self, kind: CostKind) -> float:
        return {
            "regular": self.regular_row_us,
            "temporal": self.temporal_row_us,
            "interval": self.interval_row_us,
        }[kind]

    def changelog_ratio(self, kind: CostKind) -> float:
        return {
            "regular": self.regular_changelog_ratio,
            "temporal": self.temporal_changelog_ratio,
            "interval": self.interval_changelog_ratio,
        }[kind]


@dataclass(frozen=True, slots=True)
class Measured:
    """When, from which commit and on what machine the points were measured."""

    at: str
    commit: str
    machine: str


@dataclass(frozen=True, slots=True)
class HeldOut:
    """A figure of a run that the fit has not seen."""

    point: str
    figure: str
    unit: str
    predicted: float
    measured: float

    @property
    def error(self) -> float:
        """The share by which the prediction is too high; negative if it is too low."""
        return self.predicted / self.measured - 1


@dataclass(frozen=True, slots=True)
class Calibration:
    """The coefficients, what each rests on, and the error on the runs that were held out.

    `measured` is None as long as no runs were measured for the model.
    """

    coefficients: Coefficients
    rests_on: Mapping[str, str]
    measured: Measured | None
    held_out: tuple[HeldOut, ...]

    @property
    def not_fitted(self) -> dict[str, str]:
        """The sources of the coefficients that are from elsewhere."""
        return {n: why for n, why in self.rests_on.items() if not why.startswith(FITTED)}

    @property
    def largest_error(self) -> float | None:
        """The largest absolute error on a figure that was held out."""
        return max((abs(figure.error) for figure in self.held_out), default=None)


@cache
def calibration() -> Calibration:
    """The data file of this release."""
    return read_calibration(DATA.read_text(encoding="utf-8"))


def read_calibration(text: str) -> Calibration:
    """The content of a data file; raises KeyError for a coefficient that is missing."""
    data = json.loads(text)
    given = data["coefficients"]
    names = [field.name for field in fields(Coefficients)]
    if unknown := set(given) - set(names):
        raise KeyError(f"unknown coefficients: {', '.join(sorted(unknown))}")
    measured = data["measured"]
    return Calibration(
        Coefficients(**{name: float(given[name]["value"]) for name in names}),
        {name: given[name]["rests_on"] for name in names},
        None if measured is None else Measured(**measured),
        tuple(HeldOut(**figure) for figure in data["held_out"]),
    )
