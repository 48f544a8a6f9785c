"""`rejoin rescale` and `rejoin checkpoint`: their options, and what they print."""

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer

from spark_jobs.settings import Overrides, read_environment, read_spark_properties
from spark_jobs.terminal import AsJsonLines, SparkProperties, size_text, write_json

SqlFile = Annotated[Path, typer.Argument(metavar="JOB.sql", help="The file of the stopped job.")]
Checkpoint = Annotated[
    str | None, typer.Option(help="Folder of the checkpoint; the job's default if omitted.")
]

_SHOWN_EVERY_S = 1.0

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Work with the checkpoint of a stopped job.",
)


@app.callback()
def checkpoint_verbs() -> None:
    """Keep `copy` a verb, even as the only one."""


@app.command(
    short_help="Copy a checkpoint to another folder or store.",
    epilog="Example: rejoin checkpoint copy /var/lib/rejoin/orders /mnt/new/orders",
)
def copy(
    source: Annotated[
        str, typer.Argument(metavar="SOURCE", help="The folder given as --checkpoint so far.")
    ],
    target: Annotated[
        str, typer.Argument(metavar="TARGET", help="Where it is to be: absent, or empty.")
    ],
    spark_properties: SparkProperties = None,
    as_json: AsJsonLines = False,
) -> None:
    """Copy the checkpoint of a stopped job, so that it can go on from the copy.

    Copying with `cp` is not enough: Spark keeps the full path of the folder in some of the files.
    Start the job with --checkpoint TARGET afterwards. Start only one of the two: once the copy has
    run, an exactly-once job is refused on the source (SINK_LEDGER_GAP).

    Connects to no broker. The source stays; a copy that was cut off is refused by `rejoin run`.
    """
    from spark_jobs.checkpoint.copy import Progress, copy_checkpoint
    from spark_jobs.kernel.standalone import local_kernel
    from spark_jobs.streaming.object_store import jars_for, properties_for

    started = shown = time.monotonic()

    def show(progress: Progress) -> None:
        nonlocal shown
        if time.monotonic() - shown < _SHOWN_EVERY_S:
            return
        shown = time.monotonic()
        if as_json:
            write_json(asdict(progress))
        else:
            files = f"{progress.files} of {progress.of_files} files"
            size = f"{size_text(progress.bytes)} of {size_text(progress.of_bytes)}"
            typer.echo(f"{files} copied, {size}", err=True)

    stores = (source, target)
    jars = {jar for store in stores for jar in jars_for(store)}
    file = spark_properties or read_environment().spark_properties
    properties = properties_for({} if file is None else read_spark_properties(file), *stores)
    with local_kernel(*jars, properties=properties) as kernel:
        copied = copy_checkpoint(kernel, source, target, show)
    if as_json:
        write_json(asdict(copied))
        return
    took = time.monotonic() - started
    typer.echo(f"copied {copied.files} files, {size_text(copied.bytes)}, in {took:.0f} s")
    typer.echo(f"start the job with --checkpoint {target}, and no longer with {source}")


def rescale(
    job: SqlFile,
    parallelism: Annotated[
        int, typer.Option(metavar="N", help="Tasks of a stateful operator from now on.", min=1)
    ],
    checkpoint: Checkpoint = None,
    spark_properties: SparkProperties = None,
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
    from spark_jobs.checkpoint.rescale_job import rescale_job

    rescale_job(job, parallelism, Overrides(checkpoint, spark_properties=spark_properties), as_json)
