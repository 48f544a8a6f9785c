"""Runs one workload: loads it once, then every peer in alternating order, each turn verified."""

import shutil
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from bench.figures import Outcome, RunFigures, conditions_now, read_outcome, write_outcome
from bench.folders import WORK
from bench.measure import BenchError, Measurement
from bench.peers.peer import PARALLELISM, Folders, Peer
from bench.results import Folded
from bench.turns import Turns, turns, use_cores
from bench.workloads.records import PARTITIONS
from bench.workloads.workload import Workload
from spark_jobs.errors import RejoinError

RESULTS = WORK / "results"
_ANY_RUN = Folders(Path("/RUN"))  # stands for the folder of a run in the settings of a result

Say = Callable[[str], object]


@dataclass(frozen=True, slots=True)
class BenchPlan:
    """What to run. With `resume`, runs that the file of the result has already are kept.

    With `tolerant`, a peer that fails is left out with its error; otherwise the error ends it all.
    """

    workload: Workload
    rows: int
    keys: int
    peers: Sequence[Peer]
    turns: int
    timeout_s: float
    keep: bool = False
    resume: bool = False
    tolerant: bool = False

    @property
    def file(self) -> Path:
        return RESULTS / f"{self.workload.name}-{self.rows}.json"


def run_bench(plan: BenchPlan, say: Say) -> Outcome:
    """Run what is not there yet; the file is written after each run."""
    outcome = _begin(plan)
    todo = [
        (turn, peer)
        for turn in range(plan.turns)
        for peer in (plan.peers if turn % 2 == 0 else reversed(plan.peers))
        if peer.name not in outcome.left_out
        and turn not in {run.turn for run in outcome.of(peer.name)}
    ]
    if not todo:
        say(f"{plan.workload.name}: nothing is left to run")
        return outcome
    for peer in {peer.name: peer for _, peer in todo}.values():
        say(f"{peer.name} is prepared ...")
        peer.prepare()
    use_cores(PARALLELISM)
    RESULTS.mkdir(parents=True, exist_ok=True)
    workload = plan.workload
    data = workload.data(plan.rows, plan.keys)
    with turns("run", workload, data, plan.timeout_s, plan.keep) as made:
        outcome = replace(outcome, load_rows_per_second=round(plan.rows / made.load_s))
        say(f"{workload.name}: loaded {plan.rows:,} records in {made.load_s:.0f} s")
        for turn, peer in todo:
            if peer.name not in outcome.left_out:
                _take_turn(made, plan, outcome, peer, turn, say)
                write_outcome(plan.file, outcome)
    return outcome


def _begin(plan: BenchPlan) -> Outcome:
    """The outcome so far: that of the file if it is to be resumed, else a new one."""
    fresh = _fresh(plan)
    if not plan.resume or not plan.file.exists():
        return fresh
    known = read_outcome(plan.file)
    then, now = ((o.conditions.commit, o.conditions.cores, o.keys) for o in (known, fresh))
    if then != now:
        raise BenchError(
            "BENCH_RESUME_DIFFERS",
            f"{plan.file} is of commit {then[0]}, {then[1]} cores and {then[2]:,} keys; "
            f"this is commit {now[0]}, {now[1]} cores and {now[2]:,} keys",
            hint="move the file away, or run without --resume",
        )
    changed = {peer for peer, own in fresh.settings.items() if own != known.settings.get(peer, own)}
    return replace(
        fresh,
        load_rows_per_second=known.load_rows_per_second,
        settings=known.settings | fresh.settings,
        about=known.about | fresh.about,
        runs=[run for run in known.runs if run.peer not in changed],
    )


def _fresh(plan: BenchPlan) -> Outcome:
    workload = plan.workload
    refusals = {peer.name: peer.refusal(workload) for peer in plan.peers}
    return Outcome(
        workload=workload.name,
        title=workload.title,
        rows=plan.rows,
        keys=plan.keys,
        partitions=PARTITIONS,
        conditions=conditions_now(PARALLELISM),
        settings={
            peer.name: dict(peer.settings(workload, _ANY_RUN))
            for peer in plan.peers
            if refusals[peer.name] is None
        },
        about={peer.name: peer.about for peer in plan.peers},
        left_out={peer: why for peer, why in refusals.items() if why is not None},
    )


def _take_turn(
    made: Turns, plan: BenchPlan, outcome: Outcome, peer: Peer, turn: int, say: Say
) -> None:
    name = f"result_{peer.name}_{turn}"
    try:
        measured, found = made.run(peer, name)
    except RejoinError as failure:
        if not plan.tolerant:
            raise
        outcome.left_out[peer.name] = f"failed: {failure.code}"
        log = Folders(made.work / name).log
        if log.exists():
            shutil.copy(log, plan.file.with_name(f"{plan.workload.name}-{peer.name}.log"))
        say(f"  turn {turn + 1}  {peer.name:24} left out: {failure}")
        return
    figures = _figures(peer.name, turn, plan.rows, measured, found)
    outcome.runs.append(figures)
    say(
        f"  turn {turn + 1}  {peer.name:24} {figures.seconds:6.1f} s, "
        f"{figures.processor_s:6.1f} s of processors, warm {figures.warm_rows_per_second:9,.0f} "
        f"rows/s, {figures.peak_rss_bytes / 2**20:6,.0f} MiB; {figures.output_rows:,} rows as "
        "expected"
    )


def _figures(peer: str, turn: int, rows: int, measured: Measurement, result: Folded) -> RunFigures:
    return RunFigures(
        peer=peer,
        turn=turn,
        seconds=round(measured.seconds, 2),
        rows_per_second=round(rows / measured.seconds),
        warm_rows_per_second=round(rows * measured.warm_share_per_s),
        processor_s=round(measured.processor_s, 2),
        peak_rss_bytes=measured.peak_rss_bytes,
        peak_state_bytes=measured.peak_state_bytes,
        output_records=result.records,
        output_rows=len(result.rows),
    )
