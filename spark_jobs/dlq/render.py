"""Letters as a person or a program reads them."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from spark_jobs.dlq.dead_letter import Contents, Letter, once
from spark_jobs.dlq.replaying import Left
from spark_jobs.dlq.selection import Selection
from spark_jobs.terminal import utc_text

_SHOWN_BYTES = 4096


@dataclass(frozen=True, slots=True)
class Group:
    """Letters of one table and reason; times are those of the records."""

    topic: str
    table: str
    reason: str
    open: int
    handled: int
    first_ms: int
    last_ms: int
    example: Letter

    def json(self) -> dict[str, object]:
        return {
            "topic": self.topic,
            "table": self.table,
            "reason": self.reason,
            "open": self.open,
            "handled": self.handled,
            "first": _time_text(self.first_ms),
            "last": _time_text(self.last_ms),
            "example": str(self.example.place),
            "source": source_text(self.example),
            "message": self.example.message,
        }


def groups(contents: Contents, selection: Selection) -> list[Group]:
    """By table and reason, most open letters first; a record counts once for each table."""
    found: dict[tuple[str, str], list[Letter]] = {}
    for letter in once(filter(selection.takes, contents.letters)):
        found.setdefault((letter.table, letter.reason), []).append(letter)
    made = [_group(contents, *names, letters) for names, letters in found.items()]
    return sorted(made, key=lambda group: (-group.open, group.table, group.reason))


def _group(contents: Contents, table: str, reason: str, letters: Sequence[Letter]) -> Group:
    done = Counter(contents.handled(letter) is not None for letter in letters)
    times = [letter.timestamp_ms for letter in letters]
    unhandled = (letter for letter in letters if contents.handled(letter) is None)
    return Group(
        topic=letters[0].topic,
        table=table,
        reason=reason,
        open=done[False],
        handled=done[True],
        first_ms=min(times),
        last_ms=max(times),
        example=next(unhandled, letters[0]),
    )


_COLUMNS = ("topic", "table", "reason", "open", "handled", "first", "last", "example", "message")


def show_groups(found: Sequence[Group], console: Console) -> None:
    """A table on a terminal; elsewhere lines of columns with tabs between, without a heading."""
    rows = [[str(group.json()[name]) for name in _COLUMNS] for group in found]
    if not console.is_terminal:
        for row in rows:
            typer.echo("\t".join(row))
        return
    table = Table(*_COLUMNS, box=None, header_style="bold")
    for row in rows:
        table.add_row(*row)
    console.print(table if rows else "no dead letters")


def letter_json(letter: Letter, handled: str | None) -> dict[str, object]:
    return {
        "topic": letter.topic,
        "place": str(letter.place),
        "table": letter.table,
        "reason": letter.reason,
        "message": letter.message,
        "source": source_text(letter),
        "time": _time_text(letter.timestamp_ms),
        "handled": handled,
        "key": bytes_json(letter.key),
        "value": bytes_json(letter.value),
        "headers": [[name, bytes_json(value)] for name, value in letter.headers],
        "told": dict(letter.told),
    }


def letter_text(letter: Letter, handled: str | None) -> str:
    """One letter on lines of its own: what is wrong, where it comes from, what is in it."""
    lines = [
        f"{letter.place}  {letter.reason}: {letter.message}",
        f"  record   {source_text(letter) or '-'}, {_time_text(letter.timestamp_ms)}",
        f"  table    {letter.table or '-'}, read by {letter.query or '-'}, "
        f"epoch {letter.told.get('rejoin.epoch', '-')}",
    ]
    if handled is not None:
        lines.append(f"  handled  {handled}")
    for part, content in (("key", letter.key), ("value", letter.value)):
        lines.append(f"  {part:<8} {content_text(part, content, letter)}")
    lines += [f"  header   {name} = {bytes_text(value)}" for name, value in letter.headers]
    return "\n".join(lines)


def show_letter(letter: Letter, handled: str | None, console: Console) -> None:
    """On a terminal its reason stands out."""
    first, *rest = letter_text(letter, handled).splitlines()
    console.print(Text(first, style="bold yellow"))
    for line in rest:
        console.print(Text(line))


def content_text(part: str, content: bytes | None, letter: Letter) -> str:
    omitted = letter.told.get(f"rejoin.{part}.omitted")
    return bytes_text(content) if omitted is None else f"left out, {omitted} bytes"


def bytes_text(content: bytes | None) -> str:
    r"""Text where it is text, else hex.

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
    """Text as text, other bytes as `{"hex": ...}`; all of them."""
    if content is None:
        return None
    try:
        return content.decode()
    except UnicodeDecodeError:
        return {"hex": content.hex()}


def source_text(letter: Letter) -> str | None:
    return None if letter.source is None else str(letter.source)


def _time_text(ms: int) -> str:
    """Records may have no time."""
    return utc_text(ms) if ms > 0 else "-"


def show_left(left: Iterable[Left]) -> None:
    for letter, why in left:
        source = source_text(letter) or letter.topic
        typer.echo(f"left {letter.place} ({source}): {why}")
