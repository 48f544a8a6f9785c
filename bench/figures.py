"""The figures of a workload's runs as a JSON file, and the ratios between peers."""

import json
import os
import subprocess
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from statistics import median

REFERENCE = "rejoin"  # what all others are compared with
_ROOT = Path(__file__).resolve().parents[1]


@dataclass(frozen=True, slots=True)
class RunFigures:
    """One run, whose result has been verified. Sizes are 0 where the system does not tell them."""

    peer: str
    turn: int
    seconds: float
    rows_per_second: float
    warm_rows_per_second: float
    processor_s: float
    peak_rss_bytes: int
    peak_state_bytes: int
    output_records: int
    output_rows: int


@dataclass(frozen=True, slots=True)
class Conditions:
    """Where and when it ran. `commit` ends with a plus sign if files had been changed since."""

    date: str
    commit: str
    cores: int
    memory_gib: float


@dataclass(frozen=True, slots=True)
class Outcome:
    """All runs of a workload. `settings` by peer; `left_out` says why a peer has no figures."""

    workload: str
    title: str
    rows: int
    keys: int
    partitions: int
    conditions: Conditions
    load_rows_per_second: float = 0.0
    settings: dict[str, Mapping[str, str]] = field(default_factory=dict)
    about: dict[str, str] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)
    runs: list[RunFigures] = field(default_factory=list)

    @property
    def peers(self) -> list[str]:
        """Those that have run, the reference first, then as they came."""
        found = list(dict.fromkeys(run.peer for run in self.runs))
        return sorted(found, key=lambda peer: peer != REFERENCE)

    def of(self, peer: str) -> list[RunFigures]:
        return [run for run in self.runs if run.peer == peer]

    def median(self, peer: str, figure: str) -> float:
        return float(median(getattr(run, figure) for run in self.of(peer)))

    def ratio(self, peer: str, figure: str = "seconds") -> float | None:
        """Median of the turns' ratios, this peer to the reference; None without common turns."""
        reference = {run.turn: getattr(run, figure) for run in self.of(REFERENCE)}
        pairs = [
            getattr(run, figure) / reference[run.turn]
            for run in self.of(peer)
            if reference.get(run.turn)
        ]
        return float(median(pairs)) if pairs else None


def better(outcome: Outcome, peers: Iterable[str]) -> str | None:
    """Which of these peers had the shortest whole run; None if none of them has run."""
    ran = [peer for peer in peers if outcome.of(peer)]
    return min(ran, key=lambda peer: outcome.median(peer, "seconds"), default=None)


def mib(size: float) -> str:
    return f"{size / 2**20:,.0f} MiB" if size else "unknown"


def conditions_now(cores: int) -> Conditions:
    """This machine, this moment, and the commit of the tree."""
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    changed = "+" if _git("status", "--porcelain", "--untracked-files=no") else ""
    commit = (_git("rev-parse", "--short", "HEAD") or "unknown") + changed
    return Conditions(f"{datetime.now(UTC):%Y-%m-%d}", commit, cores, round(memory, 1))


def _git(*arguments: str) -> str:
    command = ["git", *arguments]
    done = subprocess.run(command, cwd=_ROOT, capture_output=True, text=True, check=False)
    return done.stdout.strip()


def write_outcome(path: Path, outcome: Outcome) -> None:
    """Replace the file at once, so that a run that is stopped leaves a whole one."""
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_suffix(".partial")
    partial.write_text(json.dumps(asdict(outcome), indent=1) + "\n", encoding="utf-8")
    partial.replace(path)


def read_outcome(path: Path) -> Outcome:
    found = json.loads(path.read_text(encoding="utf-8"))
    runs = [RunFigures(**run) for run in found.pop("runs")]
    return Outcome(**{**found, "conditions": Conditions(**found["conditions"]), "runs": runs})
