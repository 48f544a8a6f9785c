"""The verbs of `rejoin state`: options in, tables or objects out."""

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
from spark_jobs.state.operators import Wanted
from spark_jobs.state.values import Told
from spark_jobs.terminal import AsJsonLines, write_json

SHOWN = "Shows the last committed epoch; writes nothing, and the job, running or not, runs on."

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help=f"Look into what a job keeps. {SHOWN}",
)

SqlFile = Annotated[Path, typer.Argument(metavar="JOB.sql", help="The job as it was started.")]
Checkpoint = Annotated[
    str | None, typer.Option(help="Folder of the checkpoint; the job's own if omitted.")
]
Query = Annotated[str | None, typer.Option(help="Of this query only.")]
Operator = Annotated[str | None, typer.Option(help="Of this operator only; `ls` shows their ids.")]
Side = Annotated[str | None, typer.Option(help="left, right, input, or 'side 2' of a multi-join.")]
Epoch = Annotated[
    int | None, typer.Option(help="An older committed epoch, while the checkpoint has it.", min=0)
]


@contextmanager
def _opened(job: Path, checkpoint: str | None, wanted: Wanted) -> Iterator[list[Any]]:
    """The queries that are wanted; on a terminal, with a sign that something is going on."""
    from spark_jobs.driver.queries import sinks_of
    from spark_jobs.state.reading import open_queries, state_jvm

    bound = bind(read_sql(job), str(job))
    sinks = sinks_of(plan(bound))
    overrides = Overrides(checkpoint=checkpoint)
    settings = job_settings(bound.settings, job.stem, overrides, read_environment())
    with Console(stderr=True).status("reading state ..."), state_jvm() as jvm:
        queries, notes = open_queries(jvm, sinks, settings, wanted)
        for note in notes:
            typer.echo(note, err=True)
        yield queries


def _print(told: Iterable[Told]) -> None:
    for line in told:
        write_json(line)


@app.command(epilog="Example: rejoin state ls orders.sql --checkpoint /var/lib/rejoin/orders")
def ls(
    job: SqlFile,
    checkpoint: Checkpoint = None,
    query: Query = None,
    operator: Operator = None,
    epoch: Epoch = None,
    as_json: AsJsonLines = False,
) -> None:
    """List operators: rows by side, keys, bytes of what is stored.

    Shows the last committed epoch, and reads all of its state to count it; writes nothing, and the
    job, running or not, runs on.
    """
    from spark_jobs.state import asking

    wanted = Wanted(query, operator, epoch=epoch)
    with _opened(job, checkpoint, wanted) as queries:
        told = [line for of in queries for line in asking.sizes(of, wanted)]
    if as_json:
        _print(told)
    else:
        typer.echo(views.sizes_table(told) if told else "the job keeps no state")


@app.command(epilog="Example: rejoin state top orders.sql --operator regular-join --limit 3")
def top(
    job: SqlFile,
    checkpoint: Checkpoint = None,
    query: Query = None,
    operator: Operator = None,
    side: Side = None,
    epoch: Epoch = None,
    limit: Annotated[int, typer.Option(help="Keys per operator and side.", min=1)] = 10,
    as_json: AsJsonLines = False,
) -> None:
    """Show the keys with the most rows, per operator and side.

    Oldest and newest are event times, or the last write where rows expire; some rows have neither.
    Shows the last committed epoch, and reads all of its state to count it; writes nothing, and the
    job, running or not, runs on.
    """
    from spark_jobs.state import asking

    wanted = Wanted(query, operator, side, epoch)
    with _opened(job, checkpoint, wanted) as queries:
        told = [line for of in queries for line in asking.largest(of, wanted, limit)]
    if as_json:
        _print(told)
    else:
        typer.echo(views.largest_table(told) if told else "no operator keeps a row")


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
    query: Query = None,
    operator: Operator = None,
    side: Side = None,
    epoch: Epoch = None,
    limit: Annotated[int, typer.Option(help="Rows shown per side.", min=1)] = 50,
    as_json: AsJsonLines = False,
) -> None:
    """Show the rows that are kept under a join key, on every side.

    Shows the last committed epoch, and reads the one partition that holds the key; writes nothing,
    and the job, running or not, runs on.
    """
    from spark_jobs.state import asking

    wanted = Wanted(query, operator, side, epoch)
    told: list[Told] = []
    others: list[str] = []
    with _opened(job, checkpoint, wanted) as queries:
        for of in queries:
            found, not_found = asking.rows_of(of, wanted, key, limit)
            told += found
            others += not_found
    if not told:
        raise asking.no_such_key(key, others)
    if as_json:
        _print(told)
    else:
        typer.echo(views.rows_text(told))
