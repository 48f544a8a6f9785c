"""The verbs of `rejoin dlq`: their options, and what each of them prints."""

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
from spark_jobs.dlq.dead_letter import DeadLetter
from spark_jobs.dlq.handling import BATCH, Handler, read_contents
from spark_jobs.dlq.reading import TopicReader
from spark_jobs.dlq.replaying import ReplayPlan, Unreplayable, fix_command, plan_replay, replay_all
from spark_jobs.dlq.selection import Selection, parse_offset_ranges, parse_since
from spark_jobs.dlq.topics import DeadLetterTopic, find_topics
from spark_jobs.errors import ConfigError
from spark_jobs.terminal import AsJsonLines, screen, write_json

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode=None,
    help="Read, repair and replay dead letters.\n\n"
    "For whoever is on call: docs/dead-letters.md says what the reasons mean.",
    epilog="Example: rejoin dlq ls orders.sql",
)

Yes = Annotated[bool, typer.Option("--yes", "-y", help="Do not ask for confirmation.")]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Count only; write nothing.")]


@dataclass(frozen=True, slots=True)
class Output:
    """Prints results as text, or as JSON lines for programs."""

    console: Console
    as_json: bool

    def progress(self, done: int, of: int) -> None:
        if self.console.is_terminal and not self.as_json and of > BATCH:
            self.console.print(f"{done:,} of {of:,}", end="\r")

    def outcome(
        self, topic: str, what: str, count: int, left: list[Unreplayable], more: int = 0
    ) -> None:
        """`what` was done with `count` records; `more` records lie beyond the limit."""
        if self.as_json:
            kept = [
                {"place": str(item.position), "source": render.source_text(item), "why": why}
                for item, why in left
            ]
            write_json({"topic": topic, what: count, "left": kept, "more": more})
            return
        render.show_unreplayable(left)
        beyond = f", {more} more beyond the limit" if more else ""
        typer.echo(f"{topic}: {what} {count}, left {len(left)}{beyond}")


@dataclass(frozen=True, slots=True)
class Request:
    """What all verbs have in common: the topics, the selected records, the form of the output."""

    topics: list[DeadLetterTopic]
    selection: Selection
    output: Output


@dataclass(frozen=True, slots=True)
class Consent:
    """`yes` skips the confirmation."""

    dry_run: bool
    yes: bool

    @property
    def counts_first(self) -> bool:
        return self.dry_run or not self.yes


@dataclass(frozen=True, slots=True)
class ReplayOptions:
    """`superseded` replays old versions of rows too; `limit` is per topic, None for all."""

    fix: list[str] | None
    superseded: bool
    limit: int | None


def _request(
    job: Annotated[
        Path | None, typer.Argument(metavar="JOB.sql", help="Its tables name the topics.")
    ] = None,
    topic: Annotated[str | None, typer.Option(help="Only this dead-letter topic.")] = None,
    bootstrap_server: Annotated[
        str | None, typer.Option(help="Brokers of --topic, where no JOB.sql is given.")
    ] = None,
    properties: Annotated[
        Path | None, typer.Option(help="File of Java client properties for --bootstrap-server.")
    ] = None,
    table: Annotated[
        list[str] | None, typer.Option("--table", help="Only records of this table; repeatable.")
    ] = None,
    reason: Annotated[
        list[str] | None,
        typer.Option("--reason", help="Only records of this reason; repeatable."),
    ] = None,
    since: Annotated[
        str | None,
        typer.Option(help="Only records since a time (2024-01-31T12:00) or a duration (2 h)."),
    ] = None,
    offsets: Annotated[
        str | None, typer.Option(help="Only these offsets of the dead-letter topic: 0:17,1:20-35.")
    ] = None,
    as_json: AsJsonLines = False,
) -> Request:
    selection = Selection(
        tables=frozenset(table or ()),
        reasons=frozenset(reason or ()),
        since_ms=None if since is None else parse_since(since, datetime.now(UTC)),
        ranges=() if offsets is None else parse_offset_ranges(offsets),
    )
    found = find_topics(job, topic, bootstrap_server, properties)
    return Request(found, selection, Output(screen(sys.stdout), as_json))


def _verb(example: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Registers a verb with the options of `_request` and then its own."""

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

    For a first look after an alert: which tables, which reasons, since when.
    """
    found: list[render.Group] = []
    for topic in request.topics:
        with TopicReader(topic.config) as reader:
            contents = read_contents(reader, topic, settled=False)
            found += render.groups(contents, request.selection)
    if not request.output.as_json:
        render.show_groups(found, request.output.console)
        return
    for group in found:
        write_json(group.json())


@_verb("rejoin dlq show orders.sql --reason json-malformed --limit 3")
def show(
    request: Request,
    limit: Annotated[int, typer.Option(help="Most records to show per topic.", min=1)] = 10,
    handled: Annotated[bool, typer.Option("--handled", help="Show handled records too.")] = False,
) -> None:
    """Show dead letters one by one: reason, source record, key, value and headers.

    For finding out what to repair, in the data or in the definition of the table.
    """
    for topic in request.topics:
        with TopicReader(topic.config) as reader:
            contents = read_contents(reader, topic, settled=False)
        dead_letters = contents.dead_letters if handled else contents.open()
        for dead_letter in list(filter(request.selection.takes, dead_letters))[:limit]:
            done = contents.handled(dead_letter)
            if request.output.as_json:
                write_json(render.dead_letter_json(dead_letter, done))
            else:
                render.show_dead_letter(dead_letter, done, request.output.console)


@_verb("rejoin dlq replay orders.sql --reason json-malformed --fix ./fix.py")
def replay(
    request: Request,
    fix: Annotated[
        str | None,
        typer.Option(metavar="CMD", help="Program that repairs a value: stdin to stdout."),
    ] = None,
    superseded: Annotated[
        bool, typer.Option("--superseded", help="Also replay records whose key has a later one.")
    ] = False,
    limit: Annotated[
        int | None, typer.Option(help="Most records to replay per topic; all if omitted.", min=1)
    ] = None,
    dry_run: DryRun = False,
    yes: Yes = False,
) -> None:
    """Write records back to the topics that they came from, exactly once.

    A record and the mark that it is handled commit in one transaction, so a crash repeats nothing
    and a second replay does nothing. A dead letter whose --fix command fails stays open. So does an
    old version of a row: a record whose key has a later one in its topic.
    """
    options = ReplayOptions(None if fix is None else fix_command(fix), superseded, limit)
    for topic in request.topics:
        _replay(topic, request, Consent(dry_run, yes), options)


@_verb("rejoin dlq drop orders.sql --table orders --reason null-record-key")
def drop(request: Request, dry_run: DryRun = False, yes: Yes = False) -> None:
    """Mark dead letters as handled without a replay.

    For records that nobody needs any more. They stay in their topic until its retention deletes
    them.
    """
    for topic in request.topics:
        _drop(topic, request, Consent(dry_run, yes))


def _replay(
    topic: DeadLetterTopic, request: Request, consent: Consent, options: ReplayOptions
) -> None:
    output = request.output

    def chosen(reader: TopicReader, *, settled: bool) -> ReplayPlan:
        contents = read_contents(reader, topic, settled=settled)
        superseded = options.superseded
        found = plan_replay(reader, topic, contents, request.selection, superseded=superseded)
        return found.within(options.limit)

    with TopicReader(topic.config) as reader:
        if consent.counts_first:
            choice = chosen(reader, settled=False)
            count = len(choice.ready)
            if consent.dry_run:
                return output.outcome(topic.name, "would replay", count, choice.left, choice.more)
            if count == 0:
                return output.outcome(topic.name, "replayed", 0, choice.left)
            _confirm(f"Replay {count} records of {topic.name}?")
        with Handler(topic) as handler:
            choice = chosen(reader, settled=True)
            count, left = replay_all(handler, reader, choice, options.fix, output.progress)
    output.outcome(topic.name, "replayed", count, left, choice.more)


def _drop(topic: DeadLetterTopic, request: Request, consent: Consent) -> None:
    output = request.output

    def chosen(reader: TopicReader, *, settled: bool) -> list[DeadLetter]:
        contents = read_contents(reader, topic, settled=settled)
        return list(filter(request.selection.takes, contents.open()))

    with TopicReader(topic.config) as reader:
        if consent.counts_first:
            count = len(chosen(reader, settled=False))
            if consent.dry_run:
                return output.outcome(topic.name, "would drop", count, [])
            if count == 0:
                return output.outcome(topic.name, "dropped", 0, [])
            _confirm(f"Drop {count} dead letters of {topic.name}?")
        with Handler(topic) as handler:
            dead_letters = chosen(reader, settled=True)
            for start in range(0, len(dead_letters), BATCH):
                handler.drop(dead_letters[start : start + BATCH])
    output.outcome(topic.name, "dropped", len(dead_letters), [])


def _confirm(question: str) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise ConfigError(
            "DLQ_NOT_CONFIRMED", f"{question} There is no terminal to confirm it", hint="add --yes"
        )
    if not typer.confirm(question):
        raise typer.Abort
