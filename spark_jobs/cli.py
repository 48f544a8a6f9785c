"""The command `rejoin`: options in, one call, exit code out."""

import json
import sys
import traceback
from pathlib import Path
from typing import Annotated, Literal

import typer

from bench.cli import bench
from spark_jobs.dlq.commands import app as dlq
from spark_jobs.errors import RejoinError
from spark_jobs.settings import Overrides, read_sql

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="The streaming joins of Flink SQL on Spark, Kafka to Kafka.\n\n"
    "Exit codes: 0 done, 2 the job or its settings are wrong, 3 Kafka or the registry failed, "
    "4 rejoin failed.",
)

SqlFile = Annotated[Path, typer.Argument(metavar="JOB.sql", help="Tables, settings, INSERT INTO.")]


@app.command(epilog="Example: rejoin run orders.sql --checkpoint /var/lib/rejoin/orders")
def run(
    job: SqlFile,
    checkpoint: Annotated[
        str | None, typer.Option(help="Folder of the checkpoint; a restart goes on from it.")
    ] = None,
    status_dir: Annotated[
        Path | None, typer.Option(help="Where status.json is kept for the sidecar.")
    ] = None,
    sidecar_port: Annotated[
        int | None, typer.Option(help="Of health and metrics; 9640 or a free one if omitted.")
    ] = None,
    sidecar: Annotated[
        bool, typer.Option("--sidecar/--no-sidecar", help="Serve health and metrics.")
    ] = True,
    epoch_written: Annotated[
        Literal["yes", "no"] | None,
        typer.Option(help="After SINK_LEDGER_MISSING: whether the sink has the epoch it names."),
    ] = None,
) -> None:
    """Run the INSERTs of a job file until their inputs end, or for ever.

    SIGTERM and Ctrl-C let the running epoch finish. The checkpoint is where a restart goes on,
    with neither loss nor repetition.
    """
    from spark_jobs.main import run_job
    from spark_jobs.streaming.console import Console

    overrides = Overrides(checkpoint, status_dir, sidecar_port, sidecar, epoch_written)
    run_job(job, overrides, Console(sys.stderr))


@app.command(epilog="Example: rejoin explain orders.sql")
def explain(job: SqlFile) -> None:
    """Show the plans of a job file: what is joined how, what is kept, what to beware of.

    Connects to nothing. A file whose last statement is a SELECT is explained too.
    """
    from spark_jobs.plan.explain import explain_text

    typer.echo(explain_text(read_sql(job), str(job)))


@app.command(epilog="Example: rejoin check orders.sql --checkpoint /var/lib/rejoin/orders")
def check(
    job: SqlFile,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="Folder of the checkpoint; the job's own if omitted and there."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Plan and checkpoint only; connect to nothing.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object per finding.")] = False,
) -> None:
    """Say whether a job would run, and go on from its checkpoint, without running it.

    Looks at the plan, the checkpoint's manifest, topics, their settings and newest records; writes
    nothing. Exits 0 if `run` would start, 2 or 3 for the worst error.
    """
    from spark_jobs.check.finding import Finding
    from spark_jobs.check.run import check_job

    def show(finding: Finding) -> None:
        typer.echo(json.dumps(finding.json()) if as_json else finding.line())

    raise typer.Exit(check_job(job, checkpoint, offline, show))


@app.command(epilog="Example: rejoin demo --seconds 30 --corrupt")
def demo(
    seconds: Annotated[
        float | None, typer.Option(help="End by itself after that; until Ctrl-C if omitted.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Orders per second.", min=0.1)] = 200.0,
    sidecar_port: Annotated[
        int | None, typer.Option(help="Of the live page; a free one if omitted.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    corrupt: Annotated[bool, typer.Option("--corrupt", help="Send broken records too.")] = False,
    avro: Annotated[
        bool, typer.Option("--avro", help="Avro with a schema registry instead of JSON.")
    ] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep topics, state and logs there.")] = None,
) -> None:
    """Broker, shop, job and subscriber on this machine; every joined row is verified.

    Exits 0 if each row was right, none was missing and none came twice.
    """
    from spark_jobs.demo.run import run_demo

    raise typer.Exit(run_demo(seconds, rate, sidecar_port, corrupt, avro, keep, open_page))


@app.command(epilog="Example: rejoin kafka --port 9092 --data-dir /tmp/kafka --topic orders:3")
def kafka(
    data_dir: Annotated[Path, typer.Option(help="Topics and offsets; kept between starts.")],
    port: Annotated[int | None, typer.Option(help="A free one if omitted.")] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME[:PARTITIONS]", help="Create it if it is missing; repeatable."),
    ] = None,
) -> None:
    """Run a Kafka broker of one node in the foreground, for laptops and tests.

    Topics are never created by writing to them.
    """
    from spark_jobs.embedded.broker import run_broker

    run_broker(port, data_dir, topic or ())


@app.command(epilog="Example: rejoin registry --port 8081 --schema-dir schemas")
def registry(
    schema_dir: Annotated[Path, typer.Option(help="A file per subject version.")] = Path("schemas"),
    port: Annotated[int | None, typer.Option(help="A free one if omitted.")] = None,
) -> None:
    """Run a schema registry in the foreground: the part of Confluent's API that clients use."""
    from spark_jobs.embedded.registry import run_registry

    run_registry(port, schema_dir)


app.add_typer(dlq, name="dlq")
app.command(epilog="Example: rejoin bench regular --rows 1000000 --flink")(bench)


def main() -> None:
    """Errors leave as text for people; only a fault of ours shows where it came from."""
    try:
        app()
    except RejoinError as error:
        if error.domain == "internal" and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
        sys.stderr.write(error.render() + "\n")
        sys.exit(error.exit_code)


if __name__ == "__main__":
    main()
