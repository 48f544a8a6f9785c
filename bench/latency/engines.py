"""The engines whose latency is measured, at the settings that we found best for it."""

import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from bench.class_archive import ensure_class_archive
from bench.flink.install import install
from bench.peers.flink import flink_command

_SLOTS = "2"
_FLINK = {
    "parallelism.default": _SLOTS,
    "taskmanager.numberOfTaskSlots": _SLOTS,
    "table.local-time-zone": "UTC",
    # the whole state is in the heap: nothing is faster
    "state.backend.type": "hashmap",
    "pipeline.object-reuse": "true",
    # rows wait at most so long for others on each way between tasks; by default 100 ms
    "execution.buffer-timeout.interval": "5 ms",
    # watermarks come as often as the records that move them; by default every 200 ms
    "pipeline.auto-watermark-interval": "5 ms",
    # results of a record key come in order; Flink refuses `temporal` without a sink materialiser,
    # and one would keep state for nothing
    "table.exec.sink.upsert-materialize": "NONE",
}


class Engine(Protocol):
    """An engine that runs a job file until it is stopped; `sink` are options of the sink."""

    @property
    def sink(self) -> Mapping[str, str]: ...
    def prepare(self) -> None: ...
    def settings(self, folder: Path) -> Mapping[str, str]: ...
    def command(self, job: Path, folder: Path) -> list[str]: ...


@dataclass(frozen=True, slots=True)
class Rejoin:
    """rejoin in one of its modes: micro-batches exactly once, or real-time at least once."""

    mode: str
    overrides: Mapping[str, str]
    sink: Mapping[str, str] = field(default_factory=dict)

    def prepare(self) -> None:
        ensure_class_archive()

    def settings(self, folder: Path) -> Mapping[str, str]:
        return {"rejoin.mode": self.mode, **self.overrides}

    def command(self, job: Path, folder: Path) -> list[str]:
        run = [sys.executable, "-m", "spark_jobs.cli", "run", str(job), "--no-sidecar"]
        return [*run, "--checkpoint", f"{folder}/checkpoint", "--status-dir", f"{folder}/status"]


@dataclass(frozen=True, slots=True)
class Flink:
    """Flink SQL in one JVM; results are committed with the checkpoints, if there are any."""

    guarantee: str
    checkpoints: Mapping[str, str]
    overrides: Mapping[str, str]

    @property
    def sink(self) -> Mapping[str, str]:
        exactly_once = {
            "sink.transactional-id-prefix": "latency",
            "properties.transaction.timeout.ms": "900000",
        }
        return {
            "sink.delivery-guarantee": self.guarantee,
            "properties.linger.ms": "0",
            **(exactly_once if self.guarantee == "exactly-once" else {}),
        }

    def prepare(self) -> None:
        install()

    def settings(self, folder: Path) -> Mapping[str, str]:
        state = {
            "execution.checkpointing.dir": (folder / "checkpoint").as_uri(),
            "io.tmp.dirs": str(folder / "tmp"),
        }
        return {**_FLINK, **self.checkpoints, **state, **self.overrides}

    def command(self, job: Path, folder: Path) -> list[str]:
        return flink_command(job, folder, "-Xmx3g")


def engines(overrides: Mapping[str, str], flink: Mapping[str, str]) -> dict[str, Engine]:
    """All engines by name; the settings of rejoin's and Flink's are changed by the arguments."""
    # with 50 ms the median is lower still, and the 99th percentile higher
    often = {"execution.checkpointing.interval": "100 ms"}
    exactly_once = {"sink.delivery-guarantee": "exactly-once"}
    return {
        "rejoin": Rejoin("micro-batch", overrides),
        "rejoin-real-time": Rejoin("real-time", overrides),
        "rejoin-real-time-exactly-once": Rejoin("real-time", overrides, exactly_once),
        "flink": Flink("exactly-once", often, flink),
        "flink-at-least-once": Flink("at-least-once", {}, flink),
    }
