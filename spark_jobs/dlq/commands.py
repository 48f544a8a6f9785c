"""The verbs of `rejoin dlq`: options in, letters out."""

import inspect
import sys
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import wraps
from pathlib import Path
from typing import Annotated

import typer
from rich.console import Console

from spark_jobs.dlq import render
from spark_jobs.dlq.dead_letter import Letter
from spark_jobs.dlq.handling import BATCH, Handler, read_contents
from spark_jobs.dlq.reading import TopicReader
from spark_jobs.dlq.replaying import Choice, Left, choose, replay_all
from spark_jobs.dlq.selection import Selection, parse_places, parse_since
from spark_jobs.dlq.topics import LetterTopic, find_topics
from spark_jobs.errors import ConfigError
from spark_jobs.terminal import AsJsonLines, screen, write_json

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Read dead letters, repair them, put them back.\n\n"
    "For whoever is on call: docs/dead-letters.md says what the reasons mean.",
    epilog="Example: rejoin dlq ls orders.sql",
)

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

    def outcome(self, topic: str, what: str, count: int, left: list[Left], more: int = 0) -> None:
        """`more`: those beyond the limit, for another time."""
        if self.as_json:
            kept = [
                {"place": str(item.letter.place), "source": render.source_text(item.letter),
                 "why": item.why}
                for item in left
            ]  # fmt: skip
            write_json({"topic": topic, what: count, "left": kept, "more": more})
            return
        render.show_left(left)
        beyond = f", {more} more beyond the limit" if more else ""
        typer.echo(f"{topic}: {what} {count}, left {len(left)}{beyond}")


@dataclass(frozen=True, slots=True)
class Request:
    """What every verb is told: which topics, which of their letters, how to answer."""

    topics: list[LetterTopic]
    selection: Selection
    output: Output


@dataclass(frozen=True, slots=True)
class Consent:
    """How far to go without a person's."""

    dry_run: bool
    yes: bool

    @property
    def looks_first(self) -> bool:
        return self.dry_run or not self.yes


@dataclass(frozen=True, slots=True)
class Bounds:
    """Of a replay: whether old versions of rows go back too, how many records of a topic."""

    with_superseded: bool
    limit: int | None


def _request(
    job: Annotated[
        Path | None, typer.Argument(metavar="JOB.sql", help="Its tables name the topics.")
    ] = None,
    topic: Annotated[str | None, typer.Option(help="This dead-letter topic only.")] = None,
    bootstrap_server: Annotated[
        str | None, typer.Option(help="Its brokers, where no JOB.sql is given.")
    ] = None,
    properties: Annotated[
        Path | None, typer.Option(help="Java client properties for --bootstrap-server.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Of this table; repeatable.")
    ] = None,
    reason: Annotated[
        list[str] | None, typer.Option("--reason", help="Of this reason; repeatable.")
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Records since a time (2024-01-31T12:00) or a duration (2 h)."),
    ] = None,
    offsets: Annotated[
        str | None, typer.Option(help="Places in the dead-letter topic: 0:17,1:20-35.")
    ] = None,
    as_json: AsJsonLines = False,
) -> Request:
    selection = Selection(
        tables=frozenset(table or ()),
        reasons=frozenset(reason or ()),
        since_ms=None if since is None else parse_since(since, datetime.now(UTC)),
        places=() if offsets is None else parse_places(offsets),
    )
    found = find_topics(job, topic, bootstrap_server, properties)
    return Request(found, selection, Output(screen(sys.stdout), as_json))


def _verb(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a verb whose command line is that of `_request`, then its own options."""

    def register(function: Callable[..., None]) -> Callable[..., None]:
        common = inspect.signature(_request).parameters
        own = list(inspect.signature(function).parameters.values())[1:]

        @wraps(function)
        def run(**given: object) -> None:
            request = _request(**{name: given.pop(name) for name in common})  # type: ignore[arg-type]
            function(request, **given)

        parameters = [*common.values(), *own]
        run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
        run.__annotations__ = {p.name: p.annotation for p in parameters}
        app.command(epilog=f"Example: {example}")(run)
        return function

    return register


@_verb("rejoin dlq ls orders.sql --since '2 h'")
def ls(request: Request) -> None:
    """Count dead letters by table and reason, with an example of each.

    For a first look after an alert: which tables, why, since when.
    """
    found: list[render.Group] = []
    for place in request.topics:
        with TopicReader(place.config) as reader:
            contents = read_contents(reader, place, settled=False)
            found += render.groups(contents, request.selection)
    if not request.output.as_json:
        render.show_groups(found, request.output.console)
        return
    for group in found:
        write_json(group.json())


@_verb("rejoin dlq show orders.sql --reason json-malformed --limit 3")
def show(
    request: Request,
    limit: Annotated[int, typer.Option(help="At most so many of a topic.", min=1)] = 10,
    handled: Annotated[bool, typer.Option("--handled", help="Handled ones too.")] = False,
) -> None:
    """Show letters one by one: what is wrong, where they come from, key, value and headers.

    For finding out what has to be repaired, in the data or in the table's definition.
    """
    for place in request.topics:
        with TopicReader(place.config) as reader:
            contents = read_contents(reader, place, settled=False)
        letters = contents.letters if handled else contents.open()
        for letter in list(filter(request.selection.takes, letters))[:limit]:
            done = contents.handled(letter)
            if request.output.as_json:
                write_json(render.letter_json(letter, done))
            else:
                render.show_letter(letter, done, request.output.console)


@_verb("rejoin dlq replay orders.sql --reason json-malformed --fix ./fix.py")
def replay(
    request: Request,
    fix: Annotated[
        str | None,
        typer.Option(metavar="CMD", help="Gets each value on stdin, gives the new one on stdout."),
    ] = None,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also records whose key has a later one.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="At most so many of a topic; all if omitted.", min=1)
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Put records back on the topics that they came from, exactly once.

    Records and the marks that they are handled commit in one transaction, so a crash repeats
    nothing and a second replay does nothing. A letter whose command fails stays open, and so does
    an old version of a row: a record whose key has a later one in its topic.
    """
    for place in request.topics:
        _replay(place, request, Consent(dry_run, yes), fix, Bounds(superseded, limit))


@_verb("rejoin dlq drop orders.sql --table orders --reason null-record-key")
def drop(request: Request, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Mark letters as handled without a replay.

    For records that nobody wants any more. They stay in their topic until it expires them.
    """
    for place in request.topics:
        _drop(place, request, Consent(dry_run, yes))


def _replay(
    place: LetterTopic, request: Request, consent: Consent, fix: str | None, bounds: Bounds
) -> None:
    output = request.output

    def chosen(reader: TopicReader, *, settled: bool) -> Choice:
        contents = read_contents(reader, place, settled=settled)
        wanted = request.selection
        found = choose(reader, place, contents, wanted, superseded=bounds.with_superseded)
        return found.within(bounds.limit)

    with TopicReader(place.config) as reader:
        if consent.looks_first:
            choice = chosen(reader, settled=False)
            count = len(choice.ready)
            if consent.dry_run:
                return output.outcome(place.name, "would replay", count, choice.left, choice.more)
            if count == 0:
                return output.outcome(place.name, "replayed", 0, choice.left)
            _confirm(f"Replay {count} records of {place.name}?")
        with Handler(place) as handler:
            choice = chosen(reader, settled=True)
            count, left = replay_all(handler, reader, choice, fix, output.progress)
    output.outcome(place.name, "replayed", count, left, choice.more)


def _drop(place: LetterTopic, request: Request, consent: Consent) -> None:
    output = request.output

    def chosen(reader: TopicReader, *, settled: bool) -> list[Letter]:
        contents = read_contents(reader, place, settled=settled)
        return list(filter(request.selection.takes, contents.open()))

    with TopicReader(place.config) as reader:
        if consent.looks_first:
            count = len(chosen(reader, settled=False))
            if consent.dry_run:
                return output.outcome(place.name, "would drop", count, [])
            if count == 0:
                return output.outcome(place.name, "dropped", 0, [])
            _confirm(f"Drop {count} letters of {place.name}?")
        with Handler(place) as handler:
            letters = chosen(reader, settled=True)
            for start in range(0, len(letters), BATCH):
                handler.drop(letters[start : start + BATCH])
    output.outcome(place.name, "dropped", len(letters), [])


def _confirm(question: str) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError("DLQ_NOT_CONFIRMED", f"{question} Nobody is here to ask", hint="--yes")
    if not typer.confirm(question):
        raise typer.Abort
