"""`rejoin rescale`: from the job's file to a rescaled checkpoint, and what is printed of it."""

import time
from dataclasses import asdict, replace
from functools import partial
from pathlib import Path

import typer
from pyspark.sql import SparkSession

from spark_jobs.checkpoint.rescale import Progress, check_parallelism, rescale
from spark_jobs.driver.queries import sinks_of
from spark_jobs.kernel.build import kernel_jar
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
from spark_jobs.streaming.object_store import jars_for
from spark_jobs.streaming.session import start_session, stop_session
from spark_jobs.terminal import size_text, write_json


def rescale_job(job: Path, parallelism: int, overrides: Overrides, as_json: bool) -> None:
    """Rescale all queries of the file, and print the progress and what became of each."""
    bound = bind(read_sql(job), str(job))
    sinks = sinks_of(plan(bound))
    settings = job_settings(bound.settings, job.stem, overrides, read_environment())
    check_parallelism(settings, parallelism)
    started = time.monotonic()
    show = _show_json if as_json else _show_text
    spark = _session(settings, min(parallelism, available_cores()))
    try:
        say = partial(typer.echo, err=True)
        queries = rescale(spark, sinks, settings, parallelism, show, say)
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


def _session(settings: JobSettings, cores: int) -> SparkSession:
    # the progress counts the jobs that Spark has ended, of which it keeps few otherwise
    properties = {"spark.ui.retainedJobs": "1000", **settings.spark_properties}
    own = replace(settings, parallelism=cores, spark_properties=properties)
    return start_session(own, [kernel_jar(), *jars_for(settings.checkpoint)])


def _show_json(progress: Progress) -> None:
    write_json(asdict(progress))


def _show_text(progress: Progress) -> None:
    moved = f"query {progress.query}: {progress.done} of {progress.of} operators moved"
    typer.echo(f"{moved} ({size_text(progress.bytes)} of state files in all)", err=True)


def result_line(query: str, before: int, now: int, operators: int, size: int) -> str:
    """What became of a query; `size` of its state files, in bytes."""
    if before == now:
        return f"query {query}: has {now} tasks already"
    plural = "" if operators == 1 else "s"
    moved = f"{operators} operator{plural}, {size_text(size)}" if operators else "no state"
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
