"""The command `rejoin bench`: its options, and its report as a table or JSON."""

from argparse import ArgumentTypeError
from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench.campaign import Step, full_steps, quick_steps
from bench.figures import REFERENCE, Outcome, mib
from bench.job_settings import setting
from bench.peers.catalog import peers as all_peers
from bench.run import RESULTS, BenchPlan, run_bench
from bench.workloads.catalog import WORKLOADS
from spark_jobs.terminal import AsJson, write_json

_ALL = "all"
_PEERS = tuple(all_peers({}, {}))

WorkloadName = Annotated[
    str | None, typer.Argument(metavar="WORKLOAD", help=f"One of {', '.join(WORKLOADS)}.")
]
RowCount = Annotated[int | None, typer.Option(help="Records in all topics together.", min=1_000)]
KeyCount = Annotated[int | None, typer.Option(help="Distinct keys; default by records.", min=1)]
PeerNames = Annotated[
    str | None,
    typer.Option(help=f"Who runs it, with commas: {', '.join(_PEERS)}, or {_ALL}."),
]
TurnCount = Annotated[int, typer.Option(help="Runs of each, in alternating order.", min=1)]
Everything = Annotated[bool, typer.Option("--all", help="Every workload, one after the other.")]
Quick = Annotated[bool, typer.Option("--quick", help="With --all: fewer records, tuned peers.")]
Resume = Annotated[
    bool, typer.Option("--resume", help="Keep the runs that the result files have already.")
]
Setting = Annotated[
    list[str] | None, typer.Option("--set", help="Setting of rejoin's job, name=value.")
]
FlinkSetting = Annotated[list[str] | None, typer.Option(help="Setting of Flink's job, name=value.")]
Timeout = Annotated[float, typer.Option(help="Most seconds that one run may take.", min=10)]
Keep = Annotated[bool, typer.Option("--keep", help="Keep data, logs and state in build/bench.")]


def bench(
    workload: WorkloadName = None,
    everything: Everything = False,
    quick: Quick = False,
    peers: PeerNames = None,
    rows: RowCount = None,
    keys: KeyCount = None,
    turns: TurnCount = 1,
    settings: Setting = None,
    flink_set: FlinkSetting = None,
    timeout: Timeout = 900,
    keep: Keep = False,
    resume: Resume = False,
    as_json: AsJson = False,
) -> None:
    """Measure joins from Kafka to Kafka, and verify every result row before any time is printed.

    For comparing engines, machines, settings or releases. Data, broker and registry are created for
    it. Figures go to build/bench/results as JSON; `python -m bench.report --print FILE` makes
    tables of them.
    """
    known = all_peers(_pairs(settings), _pairs(flink_set))
    say = partial(typer.echo, err=True)
    outcomes = []
    steps = _steps(workload, everything, quick, peers, rows, keys)
    for number, step in enumerate(steps, start=1):
        say(f"{number} of {len(steps)}: {step.workload}, {step.rows:,} records")
        plan = BenchPlan(
            workload=WORKLOADS[step.workload],
            rows=step.rows,
            keys=keys or WORKLOADS[step.workload].keys(step.rows),
            peers=[known[name] for name in step.peers],
            turns=turns,
            timeout_s=timeout,
            keep=keep,
            resume=resume,
            tolerant=everything,
        )
        outcomes.append(run_bench(plan, say))
        if not as_json:
            Console().print(table_of(outcomes[-1]))
    if as_json:
        write_json([asdict(outcome) for outcome in outcomes])
    else:
        say(f"results: {RESULTS}")


def _steps(
    workload: str | None,
    everything: bool,
    quick: bool,
    peers: str | None,
    rows: int | None,
    keys: int | None,
) -> tuple[Step, ...]:
    if everything == (workload is not None):
        raise typer.BadParameter("give a workload or --all, one of the two")
    if quick and not everything:
        raise typer.BadParameter("--quick goes with --all")
    if everything and keys is not None:
        raise typer.BadParameter("--keys goes with one workload")
    if workload is not None:
        if workload not in WORKLOADS:
            raise typer.BadParameter(f"'{workload}' is none of {', '.join(WORKLOADS)}")
        return (Step(workload, rows or 4_000_000, _names(peers or REFERENCE)),)
    names = _names(peers or _ALL)
    steps = quick_steps(names) if quick else full_steps(names)
    return tuple(Step(s.workload, rows or s.rows, s.peers) for s in steps)


def _names(text: str) -> tuple[str, ...]:
    names = _PEERS if text == _ALL else tuple(dict.fromkeys(text.split(",")))
    if wrong := [name for name in names if name not in _PEERS]:
        raise typer.BadParameter(f"'{wrong[0]}' is none of {', '.join(_PEERS)}")
    return names


def _pairs(settings: list[str] | None) -> dict[str, str]:
    try:
        return dict(map(setting, settings or ()))
    except ArgumentTypeError as cause:
        raise typer.BadParameter(str(cause)) from None


def table_of(outcome: Outcome) -> Table:
    """The figures of a workload, one column for each peer."""
    title = f"{outcome.title}: {outcome.rows:,} records, {outcome.conditions.cores} cores"
    left_out = "\n".join(f"{peer}: {why}" for peer, why in outcome.left_out.items())
    table = Table(title=title, caption=left_out or None)
    table.add_column("")
    for peer in outcome.peers:
        table.add_column(peer, justify="right")
    for label, figure, cell in _LINES:
        cells = (cell(outcome.median(peer, figure)) for peer in outcome.peers)
        table.add_row(label, *cells)
    ratios = [outcome.ratio(peer) for peer in outcome.peers]
    table.add_row(
        "time, rejoin = 1", *("" if ratio is None else f"{ratio:.2f}" for ratio in ratios)
    )
    return table


_LINES: tuple[tuple[str, str, Callable[[float], str]], ...] = (
    ("whole run", "seconds", lambda s: f"{s:.1f} s"),
    ("processor time", "processor_s", lambda s: f"{s:.1f} s"),
    ("rows/s, whole run", "rows_per_second", lambda n: f"{n:,.0f}"),
    ("rows/s, warm", "warm_rows_per_second", lambda n: f"{n:,.0f}"),
    ("peak memory", "peak_rss_bytes", mib),
    ("peak size of checkpoints", "peak_state_bytes", mib),
    ("records written", "output_records", lambda n: f"{n:,.0f}"),
    ("rows in the result", "output_rows", lambda n: f"{n:,.0f}"),
)
