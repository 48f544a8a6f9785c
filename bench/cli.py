"""The command `rejoin bench`: its options, and its report as a table or JSON."""

from collections.abc import Callable
from dataclasses import asdict
from functools import partial
from typing import Annotated

import typer
from rich.console import Console
from rich.table import Table

from bench.engines import Flink, Rejoin
from bench.jobs import JOBS, JobName
from bench.run import BenchPlan, BenchReport, EngineReport, run_bench
from spark_jobs.terminal import AsJson, write_json

JobArgument = Annotated[JobName, typer.Argument(help="The join to measure.")]
RowCount = Annotated[int, typer.Option(help="Records in both topics together.", min=1_000)]
KeyCount = Annotated[int | None, typer.Option(help="Distinct keys; default by join.", min=1)]
WithFlink = Annotated[bool, typer.Option("--flink", help="Also run Flink SQL and compare.")]
OnlyFlink = Annotated[bool, typer.Option("--only-flink", help="Run only Flink SQL.")]
Setting = Annotated[
    list[str] | None, typer.Option("--set", help="Setting of rejoin's job, name=value.")
]
FlinkSetting = Annotated[list[str] | None, typer.Option(help="Setting of Flink's job, name=value.")]
Timeout = Annotated[float, typer.Option(help="Most seconds that an engine may take.", min=10)]
Keep = Annotated[bool, typer.Option("--keep", help="Keep data, logs and state in build/bench.")]


def bench(
    job: JobArgument,
    rows: RowCount = 4_000_000,
    keys: KeyCount = None,
    flink: WithFlink = False,
    only_flink: OnlyFlink = False,
    settings: Setting = None,
    flink_set: FlinkSetting = None,
    timeout: Timeout = 900,
    keep: Keep = False,
    as_json: AsJson = False,
) -> None:
    """Measure a join from Kafka to Kafka with exactly-once delivery, and verify every result row.

    For comparing machines, settings or releases. Data, broker and registry are created for it.
    """
    plan = BenchPlan(
        job=job,
        rows=rows,
        keys=keys or min(JOBS[job].default_keys, rows),
        engines=_engines(flink, only_flink),
        settings={Rejoin.name: _pairs(settings), Flink.name: _pairs(flink_set)},
        timeout_s=timeout,
        keep=keep,
    )
    report = run_bench(plan, partial(typer.echo, err=True))
    if as_json:
        write_json(asdict(report))
    else:
        Console().print(_table(report))


def _engines(flink: bool, only_flink: bool) -> tuple[str, ...]:
    if only_flink:
        return (Flink.name,)
    return (Rejoin.name, Flink.name) if flink else (Rejoin.name,)


def _pairs(settings: list[str] | None) -> dict[str, str]:
    pairs = [setting.partition("=") for setting in settings or ()]
    if wrong := [name for name, sign, _ in pairs if not sign]:
        raise typer.BadParameter(f"'{wrong[0]}' has no '=': give name=value")
    return {name: value for name, _, value in pairs}


def _table(report: BenchReport) -> Table:
    title = f"{report.title}: {report.rows:,} records, {report.parallelism} cores"
    caption = None if report.speedup is None else f"rejoin is {report.speedup:.2f} x as fast"
    table = Table(title=title, caption=caption)
    table.add_column("")
    for engine in report.engines:
        table.add_column(engine.engine, justify="right")
    for label, cell in _LINES:
        table.add_row(label, *(cell(engine) for engine in report.engines))
    return table


def _mib(size: int) -> str:
    return f"{size / 2**20:,.0f} MiB" if size else "unknown"


_LINES: tuple[tuple[str, Callable[[EngineReport], str]], ...] = (
    ("whole run", lambda e: f"{e.seconds:.1f} s"),
    ("rows/s, whole run", lambda e: f"{e.rows_per_second:,}"),
    ("rows/s, warm", lambda e: f"{e.warm_rows_per_second:,}"),
    ("peak memory", lambda e: _mib(e.peak_rss_bytes)),
    ("peak size of checkpoints", lambda e: _mib(e.peak_state_bytes)),
    ("records written", lambda e: f"{e.output_records:,}"),
    ("rows in the result", lambda e: f"{e.output_rows:,}"),
)
