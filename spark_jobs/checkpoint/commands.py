"""`rejoin rescale`: its options, and what it prints."""

import time
from dataclasses import asdict, replace
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.plan.planner import plan
from spark_jobs.settings import (
    JobSettings,
    Overrides,
    available_cores,
    job_settings,
    read_environment,
    read_sql,
)
from spark_jobs.sql.bind.binder import bind
from spark_jobs.terminal import AsJsonLines, write_json

SqlFile = Annotated[Path, typer.Argument(metavar="JOB.sql", help="The file of the stopped job.")]
Checkpoint = Annotated[
    str | None, typer.Option(help="Folder of the checkpoint; the job's default if omitted.")
]


def rescale(
    job: SqlFile,
    parallelism: Annotated[
        int, typer.Option(metavar="N", help="Tasks of a stateful operator from now on.", min=1)
    ],
    checkpoint: Checkpoint = None,
    as_json: AsJsonLines = False,
) -> None:
    """Move the state of a stopped job to another number of tasks ('rejoin.parallelism').

    For a job that has outgrown its cores, or no longer needs them. Stop the job gracefully first;
    afterwards SET 'rejoin.parallelism' in the job file, if it is there, and start the job: it
    continues where it stopped, and no result is lost or repeated. At most 'rejoin.key-groups'.

    Connects to no broker. All queries of the job are rescaled or none; if it is interrupted, repeat
    it or start the job as it was. It rewrites the state: have as much room for it again in the
    checkpoint and in Spark's local folder (/tmp).
    """
    from spark_jobs.checkpoint.rescale import Progress, check_parallelism
    from spark_jobs.checkpoint.rescale import rescale as rescale_all
    from spark_jobs.driver.queries import sinks_of
    from spark_jobs.kernel.build import kernel_jar
    from spark_jobs.streaming.session import start_session, stop_session

    def show(progress: Progress) -> None:
        if as_json:
            write_json(asdict(progress))
        else:
            moved = f"query {progress.query}: {progress.done} of {progress.of} operators moved"
            typer.echo(f"{moved} ({_megabytes(progress.bytes)} of state files in all)", err=True)

    def say(line: str) -> None:
        typer.echo(line, err=True)

    bound = bind(read_sql(job), str(job))
    sinks = sinks_of(plan(bound))
    overrides = Overrides(checkpoint=checkpoint)
    settings = job_settings(bound.settings, job.stem, overrides, read_environment())
    check_parallelism(settings, parallelism)
    started = time.monotonic()
    cores = replace(settings, parallelism=min(parallelism, available_cores()))
    spark = start_session(cores, [kernel_jar()])
    try:
        queries = rescale_all(spark, sinks, settings, parallelism, show, say)
    finally:
        stop_session(spark, within_s=10)
    if as_json:
        for query in queries:
            write_json({**asdict(query), "parallelism": parallelism})
        return
    for query in queries:
        typer.echo(
            result_line(query.query, query.before, parallelism, query.operators, query.bytes)
        )
    typer.echo(f"took {time.monotonic() - started:.0f} s; {next_step(job, settings, parallelism)}")


def result_line(query: str, before: int, now: int, operators: int, size: int) -> str:
    """What became of a query; `size` of its state files, in bytes."""
    if before == now:
        return f"query {query}: has {now} tasks already"
    plural = "" if operators == 1 else "s"
    moved = f"{operators} operator{plural}, {_megabytes(size)}" if operators else "no state"
    return f"query {query}: from {before} to {now} tasks, {moved}"


def next_step(job: Path, settings: JobSettings, parallelism: int) -> str:
    """What the job's file has to say, as a start with another number is refused."""
    if settings.parallelism is None:
        return f"{job} does not set 'rejoin.parallelism': the next start uses the checkpoint's"
    if settings.parallelism == parallelism:
        return f"{job} has the new number: start the job"
    return (
        f"{job} says {settings.parallelism}: before the next start, write "
        f"SET 'rejoin.parallelism' = '{parallelism}';"
    )


def _megabytes(size: int) -> str:
    return f"{size / 1e6:,.1f} MB"
