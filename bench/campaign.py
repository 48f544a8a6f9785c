"""What `rejoin bench --all` runs: every workload beside every peer that can express it."""

from collections.abc import Sequence
from dataclasses import dataclass

from bench.peers.catalog import TUNED_FLINKS
from bench.workloads.catalog import WORKLOADS

_MAIN = ("regular-upsert", "temporal-left", "interval-left")
_OTHERS = tuple(name for name in WORKLOADS if name not in _MAIN)
# those whose plan has an operator that mini-batches change: no join by event time has one
_UNBATCHED = ("temporal", "interval", "reading")
_MINI_BATCHED = tuple(name for name in WORKLOADS if not name.startswith(_UNBATCHED))
_OTHER_ENGINES = ("kafka-streams", "spark", "pathway")


@dataclass(frozen=True, slots=True)
class Step:
    """A workload with so many records, and the peers that run it."""

    workload: str
    rows: int
    peers: tuple[str, ...]


def full_steps(peers: Sequence[str]) -> tuple[Step, ...]:
    """8 M records of the three main joins and 4 M of the others, beside all peers."""
    return tuple(
        Step(name, 8_000_000 if name in _MAIN else 4_000_000, _of(name, peers))
        for name in (*_MAIN, *_OTHERS)
    )


def quick_steps(peers: Sequence[str]) -> tuple[Step, ...]:
    """The same in a fraction of the time, beside the tuned peers; start-up counts for more."""
    tuned = [peer for peer in peers if peer in ("rejoin", *TUNED_FLINKS, *_OTHER_ENGINES)]
    return tuple(
        Step(name, _QUICK_ROWS.get(name, 1_000_000), _of(name, tuned))
        for name in (*_MAIN, *_OTHERS)
    )


_QUICK_ROWS = {"regular-upsert": 4_000_000, "temporal-left": 3_000_000, "interval-left": 3_000_000}


def _of(workload: str, peers: Sequence[str]) -> tuple[str, ...]:
    """Without what would run the same plan twice: mini-batches where no operator has them."""
    batched = workload in _MINI_BATCHED
    return tuple(peer for peer in peers if batched or peer != "flink-tuned-mini-batch")
