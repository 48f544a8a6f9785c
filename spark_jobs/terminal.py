"""Output of the commands: coloured on a terminal, plain in a pipe, or JSON.

Whether there are colours depends on the stream, NO_COLOR and TERM; no command writes escape codes
itself.
"""

import json
import sys
from collections.abc import Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated, TextIO

import typer
from rich.console import Console
from rich.text import Text

from spark_jobs.errors import RejoinError

AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]
SparkProperties = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Spark's properties, as in spark-defaults.conf."),
]
AsJsonLines = Annotated[bool, typer.Option("--json", help="Print JSON, one object per line.")]


def screen(out: TextIO) -> Console:
    """A console that prints text unchanged: no markup, no highlighting, no wrapping."""
    return Console(file=out, markup=False, highlight=False, soft_wrap=True)


def json_line(document: object) -> str:
    return json.dumps(document, ensure_ascii=False)


def write_json(document: object, out: TextIO | None = None) -> None:
    """Write one JSON document on a line of its own."""
    (out or sys.stdout).write(json_line(document) + "\n")
    (out or sys.stdout).flush()


def show_error(error: RejoinError, out: TextIO) -> None:
    """Print position, code and message, the SQL line with a caret, and the hint."""
    console = screen(out)
    for problem in error.problems:
        first, *rest = problem.render().splitlines()
        before, code, message = first.partition(problem.code)
        console.print(Text.assemble(before, (code, "bold red"), message))
        for line in rest:
            console.print(Text(line, style="cyan" if line.startswith("  hint:") else ""))


def show_error_json(error: RejoinError, out: TextIO) -> None:
    """`{"errors": [{"code", "message", "hint", "place"}]}`."""
    write_json({"errors": [problem.json() for problem in error.problems]}, out)


def utc_text(ms: int) -> str:
    """Unix milliseconds as ISO 8601; a number where Python's calendar ends.

    >>> utc_text(1_704_110_400_000), utc_text(2**62)
    ('2024-01-01T12:00:00Z', '4611686018427387904')
    """
    try:
        return datetime.fromtimestamp(ms / 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    except (OverflowError, ValueError, OSError):
        return str(ms)


def aligned(rows: Sequence[Sequence[str]], right: frozenset[int] = frozenset()) -> list[str]:
    """Rows as lines with aligned columns; the columns in `right` are right-aligned.

    >>> aligned([("a", "10"), ("bcd", "9")], frozenset({1}))
    ['a    10', 'bcd   9']
    """
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return [
        "  ".join(
            cell.rjust(width) if i in right else cell.ljust(width)
            for i, (cell, width) in enumerate(zip(row, widths, strict=True))
        ).rstrip()
        for row in rows
    ]


def size_text(count: float) -> str:
    """A number of bytes for people.

    >>> size_text(3 * 2**20)
    '3.0 MiB'
    """
    for unit, bytes_of in (("TiB", 2**40), ("GiB", 2**30), ("MiB", 2**20), ("KiB", 2**10)):
        if count >= bytes_of:
            return f"{count / bytes_of:.1f} {unit}"
    return f"{count:.0f} bytes"
