"""The command `rejoin`: options in, one call, exit code out."""

import sys
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import typer
from rich.text import Text
from typer.exceptions import TyperException

from bench.cli import bench
from spark_jobs.dlq.commands import app as dlq
from spark_jobs.errors import ConfigError, MachineError, RejoinError
from spark_jobs.scenario.command import run_tests
from spark_jobs.settings import Overrides, read_sql
from spark_jobs.state.commands import app as state
from spark_jobs.terminal import (
    AsJson,
    AsJsonLines,
    screen,
    show_error,
    show_error_json,
    write_json,
)

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="The streaming joins of Flink SQL on Spark, Kafka to Kafka.\n\n"
    "A job is one SQL file. Begin with 'rejoin demo', which needs nothing else on the machine; "
    "then explain, test, check and run a file of your own.\n\n"
    "With --json every verb answers programs, errors included; colours are for terminals, and "
    "NO_COLOR turns them off.\n\n"
    "Exit codes: 0 done, 2 the job or its settings are wrong, 3 Kafka, the registry or the machine "
    "failed, 4 rejoin failed.",
    epilog="Example: rejoin explain orders.sql",
)

SqlFile = Annotated[Path, typer.Argument(metavar="JOB.sql", help="Tables, settings, INSERT INTO.")]


@app.command(
    short_help="Run a job file.",
    epilog="Example: rejoin run orders.sql --checkpoint /var/lib/rejoin/orders",
)
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
        list[str] | None,
        typer.Option(
            metavar="[QUERY=]yes|no",
            help="After SINK_LEDGER_MISSING: whether the sink has the epoch it names; repeatable.",
        ),
    ] = None,
    as_json: AsJsonLines = False,
) -> None:
    """Run the INSERTs of a job file until their inputs end, or for ever.

    For production and for trying: SIGTERM and Ctrl-C let the running epoch finish. The checkpoint
    is where a restart goes on, with neither loss nor repetition. Progress goes to stderr, with
    lag, rate and the time until it is caught up; as JSON to stdout.
    """
    from spark_jobs.driver.console import JsonConsole, TextConsole
    from spark_jobs.main import run_job

    overrides = Overrides(checkpoint, status_dir, sidecar_port, sidecar, epoch_written or ())
    run_job(job, overrides, JsonConsole(sys.stdout) if as_json else TextConsole(sys.stderr))


@app.command(
    short_help="Show a job's plans, with advice.", epilog="Example: rejoin explain orders.sql"
)
def explain(job: SqlFile, as_json: AsJson = False) -> None:
    """Show the plans of a job file: what is joined how, what is kept, what to do about it.

    For whoever writes the SQL, before it runs: connects to nothing. Advice comes with the line to
    add. A file whose last statement is a SELECT is explained too.
    """
    from spark_jobs.plan.text.explain import explain_json, explain_text

    text = read_sql(job)
    if as_json:
        write_json(explain_json(text, str(job)))
        return
    out = screen(sys.stdout)
    for line in explain_text(text, str(job)).splitlines():
        out.print(Text(line, style="bold" if line.startswith("== ") else ""))


@app.command(
    short_help="Say whether a job would run.",
    epilog="Example: rejoin check orders.sql --checkpoint /var/lib/rejoin/orders",
)
def check(
    job: SqlFile,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="Folder of the checkpoint; the job's own if omitted and there."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Plan and checkpoint only; connect to nothing.")
    ] = False,
    as_json: AsJsonLines = False,
) -> None:
    """Say whether a job would run, and go on from its checkpoint, without running it.

    For the step before a deployment. Looks at the plan, the checkpoint's manifest, topics, their
    settings and newest records, rights, schema registries and clocks, and says how much state an
    hour brings (docs/check.md); writes nothing. Exits 0 if `run` would start, 2 or 3 for the worst
    error.
    """
    from spark_jobs.check.finding import Finding
    from spark_jobs.check.run import check_job

    styles = {"ok": "green", "warning": "yellow", "error": "bold red"}
    out = screen(sys.stdout)

    def show(finding: Finding) -> None:
        if as_json:
            write_json(finding.json())
        else:
            text = Text(finding.line())
            text.stylize(styles[finding.level], 0, len(finding.level))
            out.print(text)

    raise typer.Exit(check_job(job, checkpoint, offline, show))


@app.command(
    short_help="See it work, on this machine alone.",
    epilog="Example: rejoin demo --seconds 30 --corrupt",
)
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
    as_json: AsJsonLines = False,
) -> None:
    """Broker, shop, job and subscriber on this machine; every joined row is verified.

    For a first look: nothing has to be installed or configured, and nothing stays behind. Exits
    0 if each row was right, none was missing and none came twice.
    """
    from spark_jobs.demo.run import run_demo

    raise typer.Exit(run_demo(seconds, rate, sidecar_port, corrupt, avro, keep, open_page, as_json))


@app.command(
    short_help="A Kafka broker for laptops and tests.",
    epilog="Example: rejoin kafka --port 9092 --data-dir /tmp/kafka --topic orders:3",
)
def kafka(
    data_dir: Annotated[Path, typer.Option(help="Topics and offsets; kept between starts.")],
    port: Annotated[int | None, typer.Option(help="A free one if omitted.")] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PARTITIONS][:compact]", help="Create it if it is missing; repeatable."
        ),
    ] = None,
    as_json: AsJsonLines = False,
) -> None:
    """Run a Kafka broker of one node in the foreground, for laptops and tests.

    A real one in KRaft mode, on the loopback interface only; Ctrl-C or SIGTERM ends it. Topics are
    never created by writing to them.
    """
    from spark_jobs.embedded.broker import run_broker

    run_broker(port, data_dir, topic or (), as_json)


@app.command(
    short_help="A schema registry for laptops and tests.",
    epilog="Example: rejoin registry --port 8081 --schema-dir schemas",
)
def registry(
    schema_dir: Annotated[Path, typer.Option(help="A file per subject version.")] = Path("schemas"),
    port: Annotated[int | None, typer.Option(help="A free one if omitted.")] = None,
    as_json: AsJsonLines = False,
) -> None:
    """Run a schema registry in the foreground, for laptops and tests.

    It has the part of Confluent's API that clients use, on the loopback interface only.
    """
    from spark_jobs.embedded.registry import run_registry

    run_registry(port, schema_dir, as_json)


app.add_typer(dlq, name="dlq", short_help="Read, repair and replay dead letters.")
app.add_typer(state, name="state", short_help="Look into what a job keeps.")
app.command(
    "test",
    short_help="Test a job's SQL with rows in files.",
    epilog="Example: rejoin test scenarios --junit build/junit.xml",
)(run_tests)
app.command(
    short_help="Measure a join, and verify its result.",
    epilog="Example: rejoin bench regular --rows 1000000 --flink",
)(bench)


def main(arguments: Sequence[str] | None = None) -> None:
    """Errors leave as text or as JSON; only a fault of ours shows where it came from."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    try:
        sys.exit(app(given, prog_name="rejoin", standalone_mode=not as_json))
    except (typer.Abort, BrokenPipeError):  # somebody said no, or reads no further
        sys.exit(1)
    except TyperException as error:  # the command line itself is wrong
        told: RejoinError = ConfigError("COMMAND_LINE", error.format_message(), hint="see --help")
    except RejoinError as error:
        told = error
        if error.domain == "internal" and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
    except OSError as error:
        told = MachineError("SYSTEM_REFUSED", str(error))
    except Exception as error:
        traceback.print_exception(error)
        told = RejoinError("COMMAND_FAILED", repr(error), hint="a defect: report it with the trace")
    (show_error_json if as_json else show_error)(told, sys.stderr)
    sys.exit(told.exit_code)


if __name__ == "__main__":
    main()
