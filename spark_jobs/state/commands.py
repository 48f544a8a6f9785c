"""The verbs of `rejoin state`: their options, and what each of them prints."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console

from spark_jobs.plan.planner import plan
from spark_jobs.settings import Overrides, job_settings, read_environment, read_sql
from spark_jobs.sql.bind.binder import bind
from spark_jobs.state import views
from spark_jobs.state.operators import StateSelection
from spark_jobs.state.values import JsonObject
from spark_jobs.terminal import AsJsonLines, SparkProperties, write_json

_SHOWN = "Shows the last committed epoch; writes nothing and does not disturb a running job."

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help=f"Inspect the state of a job. {_SHOWN}",
)

SqlFile = Annotated[Path, typer.Argument(metavar="JOB.sql", help="The file of the job.")]
Checkpoint = Annotated[
    str | None, typer.Option(help="Folder of the checkpoint; the job's default if omitted.")
]
Query = Annotated[str | None, typer.Option(help="Only this query.")]
Operator = Annotated[str | None, typer.Option(help="Only this operator; `ls` shows the ids.")]
Side = Annotated[str | None, typer.Option(help="Only this side: left, right, input, or 'side 2'.")]
Epoch = Annotated[
    int | None, typer.Option(help="An older committed epoch that the checkpoint still has.", min=0)
]


@contextmanager
def _queries(
    job: Path, checkpoint: str | None, properties: Path | None, selection: StateSelection
) -> Iterator[list[Any]]:
    """Opens the selected queries; a terminal shows a spinner meanwhile."""
    from spark_jobs.driver.queries import sinks_of
    from spark_jobs.state.reading import open_queries, state_kernel

    bound = bind(read_sql(job), str(job))
    sinks = sinks_of(plan(bound))
    overrides = Overrides(checkpoint=checkpoint, spark_properties=properties)
    settings = job_settings(bound.settings, job.stem, overrides, read_environment())
    with Console(stderr=True).status("reading state ..."), state_kernel(settings) as kernel:
        queries, notes = open_queries(kernel, sinks, settings, selection)
        for note in notes:
            typer.echo(note, err=True)
        yield queries


def _print_json(objects: Iterable[JsonObject]) -> None:
    for line in objects:
        write_json(line)


@app.command(epilog="Example: rejoin state ls orders.sql --checkpoint /var/lib/rejoin/orders")
def ls(
    job: SqlFile,
    checkpoint: Checkpoint = None,
    spark_properties: SparkProperties = None,
    query: Query = None,
    operator: Operator = None,
    epoch: Epoch = None,
    as_json: AsJsonLines = False,
) -> None:
    """List operators: rows by side, keys, bytes of what is stored.

    Reads all state of the last committed epoch; writes nothing and does not disturb a running job.
    """
    from spark_jobs.state import inspection

    selection = StateSelection(query, operator, epoch=epoch)
    with _queries(job, checkpoint, spark_properties, selection) as queries:
        objects = [line for q in queries for line in inspection.sizes(q, selection)]
    if as_json:
        _print_json(objects)
    else:
        typer.echo(views.sizes_table(objects) if objects else "the job keeps no state")


@app.command(epilog="Example: rejoin state top orders.sql --operator regular-join --limit 3")
def top(
    job: SqlFile,
    checkpoint: Checkpoint = None,
    spark_properties: SparkProperties = None,
    query: Query = None,
    operator: Operator = None,
    side: Side = None,
    epoch: Epoch = None,
    limit: Annotated[int, typer.Option(help="Keys per operator and side.", min=1)] = 10,
    as_json: AsJsonLines = False,
) -> None:
    """Show the keys with the most rows, per operator and side.

    Oldest and newest are event times, or the last write where rows expire; some rows have neither.
    Reads all state of the last committed epoch; writes nothing and does not disturb a running job.
    """
    from spark_jobs.state import inspection

    selection = StateSelection(query, operator, side, epoch)
    with _queries(job, checkpoint, spark_properties, selection) as queries:
        objects = [line for q in queries for line in inspection.largest(q, selection, limit)]
    if as_json:
        _print_json(objects)
    else:
        typer.echo(views.largest_table(objects) if objects else "no operator keeps any rows")


@app.command(epilog="Example: rejoin state get orders.sql 42 --operator regular-join")
def get(
    job: SqlFile,
    key: Annotated[
        str,
        typer.Argument(
            metavar="KEY",
            help='The join key: 42, abc, \'[42, "abc"]\' or \'{"id": 42, "name": "abc"}\'.',
        ),
    ],
    checkpoint: Checkpoint = None,
    spark_properties: SparkProperties = None,
    query: Query = None,
    operator: Operator = None,
    side: Side = None,
    epoch: Epoch = None,
    limit: Annotated[int, typer.Option(help="Rows shown per side.", min=1)] = 50,
    as_json: AsJsonLines = False,
) -> None:
    """Show the rows that are kept under a join key, on every side.

    Reads the one partition of the last committed epoch that holds the key; writes nothing and does
    not disturb a running job.
    """
    from spark_jobs.state import inspection

    selection = StateSelection(query, operator, side, epoch)
    objects: list[JsonObject] = []
    others: list[str] = []
    with _queries(job, checkpoint, spark_properties, selection) as queries:
        for opened in queries:
            found, not_found = inspection.rows_of(opened, selection, key, limit)
            objects += found
            others += not_found
    if not objects:
        raise inspection.key_error(key, others)
    if as_json:
        _print_json(objects)
    else:
        typer.echo(views.rows_text(objects))
