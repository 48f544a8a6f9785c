"""The command `rejoin`: parses options, calls one function, turns errors into exit codes."""

import sys
import traceback
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.text import Text
from typer.core import TyperGroup
from typer.exceptions import TyperException

from spark_jobs.errors import ConfigError, MachineError, RejoinError
from spark_jobs.settings import Overrides, read_sql
from spark_jobs.sizing import command as sizing
from spark_jobs.terminal import (
    AsJson,
    AsJsonLines,
    SparkProperties,
    screen,
    show_error,
    show_error_json,
    write_json,
)


class _Commands(TyperGroup):
    """Imports the module of a command below when it is asked for: `run` need not wait for it."""

    def list_commands(self, ctx: Any) -> list[str]:
        return [*super().list_commands(ctx), *_LATER]

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        if cmd_name not in self.commands:  # all of them, to suggest one for an unknown name
            added = typer.Typer(add_completion=False, rich_markup_mode=None)
            for name in [cmd_name] if cmd_name in _LATER else _LATER:
                _LATER[name](added)
            self.commands.update(typer.main.get_group(added).commands)
        return super().get_command(ctx, cmd_name)


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    help="Streaming joins in Flink SQL, executed by Spark, from Kafka to Kafka.\n\n"
    "A job is one SQL file. Start with 'rejoin demo', which needs nothing else on the machine; "
    "then explain, test, check and run a file of your own.\n\n"
    "With --json every command prints JSON, errors included. Terminals get colours, unless "
    "NO_COLOR is set.\n\n"
    "Exit codes: 0 success; 2 the job or its settings are wrong; 3 Kafka, a schema registry or the "
    "machine failed; 4 rejoin failed.",
    epilog="Example: rejoin explain orders.sql",
)

SqlFile = Annotated[Path, typer.Argument(metavar="JOB.sql", help="Tables, settings and INSERTs.")]


@app.command(
    short_help="Run a job file.",
    epilog="Example: rejoin run orders.sql --checkpoint /var/lib/rejoin/orders",
)
def run(
    job: SqlFile,
    checkpoint: Annotated[
        str | None, typer.Option(help="Folder of the checkpoint; a restart continues from it.")
    ] = None,
    status_dir: Annotated[
        Path | None, typer.Option(help="Folder for status.json, which the sidecar reads.")
    ] = None,
    sidecar_port: Annotated[
        int | None, typer.Option(help="Port of the sidecar; 9640 or a free one if omitted.")
    ] = None,
    sidecar: Annotated[
        bool,
        typer.Option("--sidecar/--no-sidecar", help="Serve health, metrics and page."),
    ] = True,
    epoch_written: Annotated[
        list[str] | None,
        typer.Option(
            metavar="[QUERY=]yes|no",
            help="After SINK_LEDGER_MISSING: is that epoch in the sink? Repeatable.",
        ),
    ] = None,
    master: Annotated[
        str | None,
        typer.Option(
            metavar="MASTER",
            help="Spark master, such as spark://host:7077; this process alone if omitted.",
        ),
    ] = None,
    spark_properties: SparkProperties = None,
    as_json: AsJsonLines = False,
) -> None:
    """Run the INSERTs of a job file until their inputs end, or for ever.

    SIGTERM and Ctrl-C are a graceful stop: the running epoch finishes. A restart continues from the
    checkpoint; no row is lost or repeated. Progress lines go to stderr and show lag, rate and the
    time until the job has caught up; with --json they go to stdout.
    """
    from spark_jobs.driver.console import JsonConsole, TextConsole
    from spark_jobs.main import run_job

    overrides = Overrides(
        checkpoint,
        status_dir,
        sidecar_port,
        sidecar,
        epoch_written or (),
        master,
        spark_properties,
    )
    run_job(job, overrides, JsonConsole(sys.stdout) if as_json else TextConsole(sys.stderr))


@app.command(
    short_help="Show the plan of a job, with advice, or how many executors it needs.",
    epilog="Example: rejoin explain orders.sql --size --rows-per-second orders=80k "
    "--rows-per-second prices=500 --keys prices=2M",
)
def explain(
    job: SqlFile,
    size: Annotated[
        bool, typer.Option("--size", help="How many executors the job needs, instead of its plan.")
    ] = False,
    rows_per_second: sizing.Rows = None,
    keys: sizing.Keys = None,
    record_bytes: sizing.RecordBytes = None,
    partitions: sizing.Partitions = None,
    results_per_second: sizing.Results = None,
    text_bytes: sizing.TextBytes = None,
    epoch_seconds: sizing.EpochSeconds = 1.0,
    executors: sizing.Executors = None,
    executor_cores: sizing.Cores = 4,
    executor_memory_mb: sizing.HeapMb = 4096,
    network_mbit: sizing.Network = 10_000.0,
    as_json: AsJson = False,
) -> None:
    """Show the plan of a job file: which joins run, what state they keep, and advice.

    For writing SQL, before it runs; connects to nothing. Advice comes with the lines to add. The
    last statement of the file may be a SELECT.

    With --size it predicts, for 1, 10 and 100 executors, cores, state, memory, checkpoint and
    network, the most records per second, and which limit comes first: CPU, source partitions, key
    groups, memory, network or the records of an epoch. Say how many records arrive per second in
    each table, and how many keys there are where state is kept by key. The constants behind it were
    measured; the output says when, and how far they were off (docs/tuning.md).
    """
    from spark_jobs.plan.text.explain import explain_json, explain_text
    from spark_jobs.sizing.report import render_json, render_text

    options = sizing.SizeOptions(
        rows_per_second=rows_per_second or (),
        keys=keys or (),
        record_bytes=record_bytes or (),
        partitions=partitions or (),
        results_per_second=results_per_second,
        text_bytes=text_bytes or (),
        epoch_seconds=epoch_seconds,
        executors=executors or (),
        executor_cores=executor_cores,
        executor_memory_mb=executor_memory_mb,
        network_mbit=network_mbit,
    )
    text = read_sql(job)
    if size:
        report = sizing.size_job(text, str(job), options)
        _show_plan(as_json, partial(render_json, report), partial(render_text, report))
    else:
        sizing.refuse_without_size(options)
        plan = (text, str(job))
        _show_plan(as_json, partial(explain_json, *plan), partial(explain_text, *plan))


def _show_plan(as_json: bool, document: Callable[[], object], text: Callable[[], str]) -> None:
    if as_json:
        write_json(document())
        return
    out = screen(sys.stdout)
    for line in text().splitlines():
        out.print(Text(line, style="bold" if line.startswith("== ") else ""))


@app.command(
    short_help="Check whether a job would run.",
    epilog="Example: rejoin check orders.sql --checkpoint /var/lib/rejoin/orders",
)
def check(
    job: SqlFile,
    checkpoint: Annotated[
        str | None,
        typer.Option(help="Folder of the checkpoint; the job's default if omitted."),
    ] = None,
    offline: Annotated[
        bool, typer.Option("--offline", help="Check plan and checkpoint only; connect to nothing.")
    ] = False,
    spark_properties: SparkProperties = None,
    as_json: AsJsonLines = False,
) -> None:
    """Check whether a job would run and continue from its checkpoint, without running it.

    For the step before a deployment. Checks the plan, the checkpoint, topics with their settings
    and newest records, rights, schema registries and clocks, and estimates how fast state grows
    (docs/check.md). Writes nothing. Exits 0 if `run` would start, else 2 or 3 for the worst error.
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

    overrides = Overrides(checkpoint=checkpoint, spark_properties=spark_properties)
    raise typer.Exit(check_job(job, overrides, offline, show))


@app.command(
    short_help="Watch rejoin work, on this machine alone.",
    epilog="Example: rejoin demo --seconds 30 --corrupt",
)
def demo(
    seconds: Annotated[
        float | None, typer.Option(help="How long to run; until Ctrl-C if omitted.")
    ] = None,
    rate: Annotated[float, typer.Option(help="Orders per second.", min=0.1)] = 200.0,
    sidecar_port: Annotated[
        int | None, typer.Option(help="Port of the live page; a free one if omitted.")
    ] = None,
    open_page: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    corrupt: Annotated[bool, typer.Option("--corrupt", help="Send broken records too.")] = False,
    avro: Annotated[
        bool, typer.Option("--avro", help="Use Avro and a schema registry instead of JSON.")
    ] = False,
    keep: Annotated[Path | None, typer.Option(help="Keep topics, state and logs there.")] = None,
    as_json: AsJsonLines = False,
) -> None:
    """Run broker, data generator, job and subscriber on this machine; verify every joined row.

    For a first look: there is nothing to install or configure, and nothing is left behind. Exits 0
    if every row was right, none was missing and none arrived twice.
    """
    from spark_jobs.demo.run import DemoOptions, run_demo

    options = DemoOptions(seconds, rate, sidecar_port, corrupt, avro, keep, open_page, as_json)
    raise typer.Exit(run_demo(options))


@app.command(
    short_help="A Kafka broker for laptops and tests.",
    epilog="Example: rejoin kafka --port 9092 --data-dir /tmp/kafka --topic orders:3",
)
def kafka(
    data_dir: Annotated[Path, typer.Option(help="Folder of topics, kept between starts.")],
    port: Annotated[int | None, typer.Option(help="Port; a free one if omitted.")] = None,
    topic: Annotated[
        list[str] | None,
        typer.Option(
            metavar="NAME[:PARTITIONS][:compact]", help="Create it if it is missing; repeatable."
        ),
    ] = None,
    as_json: AsJsonLines = False,
) -> None:
    """Run a Kafka broker with one node in the foreground, for laptops and tests.

    It is Apache Kafka in KRaft mode and listens on the loopback interface only. Ctrl-C or SIGTERM
    stops it. Writing to a topic does not create it.
    """
    from spark_jobs.embedded.broker import run_broker

    run_broker(port, data_dir, topic or (), as_json)


@app.command(
    short_help="A schema registry for laptops and tests.",
    epilog="Example: rejoin registry --port 8081 --schema-dir schemas",
)
def registry(
    schema_dir: Annotated[Path, typer.Option(help="Folder of the schemas.")] = Path("schemas"),
    port: Annotated[int | None, typer.Option(help="Port; a free one if omitted.")] = None,
    as_json: AsJsonLines = False,
) -> None:
    """Run a schema registry in the foreground, for laptops and tests.

    It implements the part of Confluent's API that clients use, on the loopback interface only.
    """
    from spark_jobs.embedded.registry import run_registry

    run_registry(port, schema_dir, as_json)


def _add_checkpoint(to: typer.Typer) -> None:
    from spark_jobs.checkpoint.commands import app as checkpoint

    help_ = "Copy the checkpoint of a stopped job."
    to.add_typer(checkpoint, name="checkpoint", short_help=help_)


def _add_dlq(to: typer.Typer) -> None:
    from spark_jobs.dlq.commands import app as dlq

    to.add_typer(dlq, name="dlq", short_help="Read, repair and replay dead letters.")


def _add_state(to: typer.Typer) -> None:
    from spark_jobs.state.commands import app as state

    to.add_typer(state, name="state", short_help="Inspect the state of a job.")


def _add_table(to: typer.Typer) -> None:
    from spark_jobs.table.command import table

    to.command(
        short_help="Print CREATE TABLE for topics, and a join of two.",
        epilog="Example: rejoin table orders customers --bootstrap-server localhost:9092",
    )(table)


def _add_rescale(to: typer.Typer) -> None:
    from spark_jobs.checkpoint.commands import rescale

    to.command(
        short_help="Change the number of tasks of a stopped job.",
        epilog="Example: rejoin rescale orders.sql --parallelism 8 "
        "--checkpoint /var/lib/rejoin/orders",
    )(rescale)


def _add_test(to: typer.Typer) -> None:
    from spark_jobs.scenario.command import run_tests

    to.command(
        "test",
        short_help="Test a job's SQL with rows in files.",
        epilog="Example: rejoin test scenarios --junit build/junit.xml",
    )(run_tests)


def _add_bench(to: typer.Typer) -> None:
    from bench.cli import bench

    to.command(
        short_help="Measure joins and verify their results.",
        epilog="Example: rejoin bench regular-upsert --rows 1000000 --peers rejoin,flink-tuned",
    )(bench)


_LATER = {
    "table": _add_table,
    "rescale": _add_rescale,
    "test": _add_test,
    "bench": _add_bench,
    "checkpoint": _add_checkpoint,
    "dlq": _add_dlq,
    "state": _add_state,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the command line. Errors are printed as text or JSON; only internal ones with a trace."""
    given = list(sys.argv[1:] if arguments is None else arguments)
    as_json = "--json" in given
    try:
        sys.exit(app(given, prog_name="rejoin", standalone_mode=not as_json))
    except (typer.Abort, BrokenPipeError):  # a declined confirmation, or a closed pipe
        sys.exit(1)
    except TyperException as error:  # the command line itself is wrong
        shown: RejoinError = ConfigError("COMMAND_LINE", error.format_message(), hint="see --help")
    except RejoinError as error:
        shown = error
        if error.domain == "internal" and error.__cause__ is not None:
            traceback.print_exception(error.__cause__)
    except OSError as error:
        shown = MachineError("SYSTEM_REFUSED", str(error))
    except Exception as error:
        traceback.print_exception(error)
        shown = RejoinError("COMMAND_FAILED", repr(error), hint="report this defect with the trace")
    (show_error_json if as_json else show_error)(shown, sys.stderr)
    sys.exit(shown.exit_code)


if __name__ == "__main__":
    main()
