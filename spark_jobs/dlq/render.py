"""Shows dead-letter records as text for people and as JSON for programs."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.dlq.dead_letter import Contents, DeadLetter, first_of_each
from spark_jobs.dlq.replaying import Unreplayable
from spark_jobs.dlq.selection import Selection
from spark_jobs.terminal import utc_text

_SHOWN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Group:
    """Counts for one table and reason. `first_ms` and `last_ms` are timestamps of the records."""

    topic: str
    table: str
    reason: str
    open: int
    handled: int
    first_ms: int
    last_ms: int
    example: DeadLetter

    def json(self) -> dict[str, object]:
        return {
            "topic": self.topic,
            "table": self.table,
            "reason": self.reason,
            "open": self.open,
            "handled": self.handled,
            "first": _time_text(self.first_ms),
            "last": _time_text(self.last_ms),
            "example": str(self.example.position),
            "source": source_text(self.example),
            "message": self.example.message,
        }


def groups(contents: Contents, selection: Selection) -> list[Group]:
    """One group per table and reason, most open first; a source record counts once per table."""
    found: dict[tuple[str, str], list[DeadLetter]] = {}
    for item in first_of_each(filter(selection.takes, contents.dead_letters)):
        found.setdefault((item.table, item.reason), []).append(item)
    made = [_group(contents, *names, items) for names, items in found.items()]
    return sorted(made, key=lambda group: (-group.open, group.table, group.reason))


def _group(contents: Contents, table: str, reason: str, items: Sequence[DeadLetter]) -> Group:
    done = Counter(contents.handled(item) is not None for item in items)
    times = [item.timestamp_ms for item in items]
    unhandled = (item for item in items if contents.handled(item) is None)
    return Group(
        topic=items[0].topic,
        table=table,
        reason=reason,
        open=done[False],
        handled=done[True],
        first_ms=min(times),
        last_ms=max(times),
        example=next(unhandled, items[0]),
    )


_COLUMNS = ("topic", "table", "reason", "open", "handled", "first", "last", "example", "message")


def show_groups(found: Sequence[Group], console: Console) -> None:
    """A table on a terminal, tab-separated lines without a heading elsewhere."""
    rows = [[str(group.json()[name]) for name in _COLUMNS] for group in found]
    if not console.is_terminal:
        for row in rows:
            typer.echo("\t".join(row))
        return
    table = Table(*_COLUMNS, box=None, header_style="bold")
    for row in rows:
        table.add_row(*row)
    console.print(table if rows else "no dead letters")


def dead_letter_json(dead_letter: DeadLetter, handled: str | None) -> dict[str, object]:
    return {
        "topic": dead_letter.topic,
        "place": str(dead_letter.position),
        "table": dead_letter.table,
        "reason": dead_letter.reason,
        "message": dead_letter.message,
        "source": source_text(dead_letter),
        "time": _time_text(dead_letter.timestamp_ms),
        "handled": handled,
        "key": bytes_json(dead_letter.key),
        "value": bytes_json(dead_letter.value),
        "headers": [[name, bytes_json(value)] for name, value in dead_letter.headers],
        "told": dict(dead_letter.details),
    }


def dead_letter_text(dead_letter: DeadLetter, handled: str | None) -> str:
    """Several lines: what is wrong, where the record comes from, its key, value and headers."""
    lines = [
        f"{dead_letter.position}  {dead_letter.reason}: {dead_letter.message}",
        f"  record   {source_text(dead_letter) or '-'}, {_time_text(dead_letter.timestamp_ms)}",
        f"  table    {dead_letter.table or '-'}, read by {dead_letter.query or '-'}, "
        f"epoch {dead_letter.details.get('rejoin.epoch', '-')}",
    ]
    if handled is not None:
        lines.append(f"  handled  {handled}")
    for part, content in (("key", dead_letter.key), ("value", dead_letter.value)):
        lines.append(f"  {part:<8} {content_text(part, content, dead_letter)}")
    lines += [f"  header   {name} = {bytes_text(value)}" for name, value in dead_letter.headers]
    return "\n".join(lines)


def show_dead_letter(dead_letter: DeadLetter, handled: str | None, console: Console) -> None:
    """Print it; a terminal shows the first line, with the reason, in colour."""
    first, *rest = dead_letter_text(dead_letter, handled).splitlines()
    console.print(Text(first, style="bold yellow"))
    for line in rest:
        console.print(Text(line))


def content_text(part: str, content: bytes | None, dead_letter: DeadLetter) -> str:
    omitted = dead_letter.details.get(f"rejoin.{part}.omitted")
    return bytes_text(content) if omitted is None else f"omitted, {omitted} bytes"


def bytes_text(content: bytes | None) -> str:
    r"""Printable UTF-8 as text, everything else as hex; long content is cut.

    >>> bytes_text(b"a\x00")
    'hex 6100'
    """
    if content is None:
        return "none"
    cut = content[:_SHOWN_BYTES]
    more = f" ... ({len(content)} bytes)" if len(content) > len(cut) else ""
    try:
        text = cut.decode("utf-8", "strict" if not more else "ignore")
    except UnicodeDecodeError:
        text = "\0"
    printable = all(c.isprintable() or c in "\n\t" for c in text)
    return (text if printable else f"hex {cut.hex()}") + more


def bytes_json(content: bytes | None) -> object:
    """UTF-8 as a string, other bytes as `{"hex": ...}`; never cut."""
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"hex": content.hex()}


def source_text(dead_letter: DeadLetter) -> str | None:
    return None if dead_letter.source is None else str(dead_letter.source)


def _time_text(ms: int) -> str:
    """`-` for a record without a timestamp."""
    return utc_text(ms) if ms > 0 else "-"


def show_unreplayable(left: Iterable[Unreplayable]) -> None:
    for dead_letter, why in left:
        source = source_text(dead_letter) or dead_letter.topic
        typer.echo(f"left {dead_letter.position} ({source}): {why}")
