"""The verbs of `rejoin dlq`: options in, letters out."""

import sys
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from spark_jobs.dlq import render
from spark_jobs.dlq.handling import BATCH, Handler, read_contents
from spark_jobs.dlq.letter import Letter
from spark_jobs.dlq.places import LetterTopic, find_topics
from spark_jobs.dlq.reading import TopicReader
from spark_jobs.dlq.replaying import Choice, Left, choose, replay_all
from spark_jobs.dlq.selection import Selection, parse_places, parse_since
from spark_jobs.errors import ConfigError

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Read dead letters, repair them, put them back.",
)

JobFile = Annotated[
    Path | None, typer.Argument(metavar="JOB.sql", help="Its tables name the topics.")
]
Topic = Annotated[str | None, typer.Option(help="This dead-letter topic only.")]
Servers = Annotated[str | None, typer.Option(help="Its brokers, where no JOB.sql is given.")]
Properties = Annotated[
    Path | None, typer.Option(help="Java client properties for --bootstrap-server.")
]
Tables = Annotated[list[str] | None, typer.Option("--table", help="Of this table; repeatable.")]
Reasons = Annotated[list[str] | None, typer.Option("--reason", help="Of this reason; repeatable.")]
Since = Annotated[
    str | None, typer.Option(help="Records since a time (2024-01-31T12:00) or a duration (2 h).")
]
Offsets = Annotated[str | None, typer.Option(help="Places in the dead-letter topic: 0:17,1:20-35.")]
AsJson = Annotated[bool, typer.Option("--json", help="An object in each line.")]
Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Say what would be done.")]


@dataclass(frozen=True, slots=True)
class Output:
    """Where words go: a person at a terminal, a pipe, a program."""

    console: Console
    as_json: bool

    def progress(self, done: int, of: int) -> None:
        if self.console.is_terminal and not self.as_json and of > BATCH:
            self.console.print(f"{done:,} of {of:,}", end="\r")

    def outcome(self, topic: str, what: str, count: int, left: list[Left]) -> None:
        if self.as_json:
            kept = [
                {"place": str(item.letter.place), "source": render.source_text(item.letter),
                 "why": item.why}
                for item in left
            ]  # fmt: skip
            typer.echo(render.as_line({"topic": topic, what: count, "left": kept}))
            return
        render.show_left(left)
        typer.echo(f"{topic}: {what} {count}, left {len(left)}")


@dataclass(frozen=True, slots=True)
class Wanted:
    """What to handle, and how far to go without a person's consent."""

    selection: Selection
    dry_run: bool
    yes: bool
    output: Output

    @property
    def looks_first(self) -> bool:
        return self.dry_run or not self.yes


def _output(as_json: bool) -> Output:
    return Output(Console(soft_wrap=True), as_json)


def _selection(
    tables: list[str] | None, reasons: list[str] | None, since: str | None, offsets: str | None
) -> Selection:
    return Selection(
        tables=frozenset(tables or ()),
        reasons=frozenset(reasons or ()),
        since_ms=None if since is None else parse_since(since, datetime.now(UTC)),
        places=() if offsets is None else parse_places(offsets),
    )


@app.command(epilog="Example: rejoin dlq ls orders.sql --since '2 h'")
def ls(
    job: JobFile = None,
    topic: Topic = None,
    bootstrap_server: Servers = None,
    properties: Properties = None,
    table: Tables = None,
    reason: Reasons = None,
    since: Since = None,
    as_json: AsJson = False,
) -> None:
    """Count dead letters by table and reason, with an example of each."""
    selection = _selection(table, reason, since, None)
    output = _output(as_json)
    found: list[render.Group] = []
    for place in find_topics(job, topic, bootstrap_server, properties):
        with TopicReader(place.config) as reader:
            found += render.groups(read_contents(reader, place, settled=False), selection)
    if as_json:
        for group in found:
            typer.echo(render.as_line(group.json()))
    else:
        render.show_groups(found, output.console)


@app.command(epilog="Example: rejoin dlq show orders.sql --reason json-malformed --limit 3")
def show(
    job: JobFile = None,
    topic: Topic = None,
    bootstrap_server: Servers = None,
    properties: Properties = None,
    table: Tables = None,
    reason: Reasons = None,
    since: Since = None,
    offsets: Offsets = None,
    limit: Annotated[int, typer.Option(help="At most so many of a topic.", min=1)] = 10,
    handled: Annotated[bool, typer.Option("--handled", help="Handled ones too.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show letters one by one: what is wrong, where they come from, key, value and headers."""
    selection = _selection(table, reason, since, offsets)
    for place in find_topics(job, topic, bootstrap_server, properties):
        with TopicReader(place.config) as reader:
            contents = read_contents(reader, place, settled=False)
        letters = contents.letters if handled else contents.open()
        for letter in list(filter(selection.takes, letters))[:limit]:
            done = contents.handled(letter)
            if as_json:
                typer.echo(render.as_line(render.letter_json(letter, done)))
            else:
                typer.echo(render.letter_text(letter, done))


@app.command(epilog="Example: rejoin dlq replay orders.sql --reason json-malformed --fix ./fix.py")
def replay(
    job: JobFile = None,
    topic: Topic = None,
    bootstrap_server: Servers = None,
    properties: Properties = None,
    table: Tables = None,
    reason: Reasons = None,
    since: Since = None,
    offsets: Offsets = None,
    fix: Annotated[
        str | None,
        typer.Option(metavar="CMD", help="Gets each value on stdin, gives the new one on stdout."),
    ] = None,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also records whose key has a later one.")
    ] = False,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Put records back on the topics that they came from, exactly once.

    Records and the marks that they are handled commit in one transaction, so a crash repeats
    nothing and a second replay does nothing. A letter whose command fails stays open, and so does
    an old version of a row: a record whose key has a later one in its topic.
    """
    wanted = Wanted(_selection(table, reason, since, offsets), dry_run, yes, _output(as_json))
    for place in find_topics(job, topic, bootstrap_server, properties):
        _replay(place, wanted, fix, superseded)


@app.command(epilog="Example: rejoin dlq drop orders.sql --table orders --reason null-record-key")
def drop(
    job: JobFile = None,
    topic: Topic = None,
    bootstrap_server: Servers = None,
    properties: Properties = None,
    table: Tables = None,
    reason: Reasons = None,
    since: Since = None,
    offsets: Offsets = None,
    dry_run: DryRun = False,
    yes: Yes = False,
    as_json: AsJson = False,
) -> None:
    """Mark letters as handled without a replay. They stay in their topic until it expires them."""
    wanted = Wanted(_selection(table, reason, since, offsets), dry_run, yes, _output(as_json))
    for place in find_topics(job, topic, bootstrap_server, properties):
        _drop(place, wanted)


def _replay(place: LetterTopic, wanted: Wanted, fix: str | None, superseded: bool) -> None:
    def chosen(reader: TopicReader, *, settled: bool) -> Choice:
        contents = read_contents(reader, place, settled=settled)
        return choose(reader, place, contents, wanted.selection, superseded=superseded)

    with TopicReader(place.config) as reader:
        if wanted.looks_first:
            choice = chosen(reader, settled=False)
            count = len(choice.ready)
            if wanted.dry_run:
                return wanted.output.outcome(place.name, "would replay", count, choice.left)
            if count == 0:
                return wanted.output.outcome(place.name, "replayed", 0, choice.left)
            _confirm(f"Replay {count} records of {place.name}?")
        with Handler(place) as handler:
            choice = chosen(reader, settled=True)
            count, left = replay_all(handler, reader, choice, fix, wanted.output.progress)
    wanted.output.outcome(place.name, "replayed", count, left)


def _drop(place: LetterTopic, wanted: Wanted) -> None:
    def chosen(reader: TopicReader, *, settled: bool) -> list[Letter]:
        contents = read_contents(reader, place, settled=settled)
        return list(filter(wanted.selection.takes, contents.open()))

    with TopicReader(place.config) as reader:
        if wanted.looks_first:
            count = len(chosen(reader, settled=False))
            if wanted.dry_run:
                return wanted.output.outcome(place.name, "would drop", count, [])
            if count == 0:
                return wanted.output.outcome(place.name, "dropped", 0, [])
            _confirm(f"Drop {count} letters of {place.name}?")
        with Handler(place) as handler:
            letters = chosen(reader, settled=True)
            for start in range(0, len(letters), BATCH):
                handler.drop(letters[start : start + BATCH])
    wanted.output.outcome(place.name, "dropped", len(letters), [])


def _confirm(question: str) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("DLQ_NOT_CONFIRMED", f"{question} Nobody is here to ask", hint="--yes")
    if not typer.confirm(question):
        raise typer.Abort
