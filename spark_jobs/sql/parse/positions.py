"""Where parsed nodes stand in the text, and errors placed there."""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NoReturn

from sqlglot import exp

from spark_jobs.errors import SqlError, UnsupportedError
from spark_jobs.sql.parse.source_text import SourceText
from spark_jobs.sql.parse.statements import Name


@dataclass(frozen=True, slots=True)
class Complaint:
    """Raises errors at nodes of one source."""

    source: SourceText

    def fail(self, code: str, message: str, node: exp.Expr, hint: str | None = None) -> NoReturn:
        """An error that Flink would raise too."""
        raise self.source.place(SqlError(code, message, hint), start_of(node))

    def refuse(self, node: exp.Expr, what: str, hint: str | None = None) -> NoReturn:
        """Flink SQL that rejoin does not support."""
        error = UnsupportedError("UNSUPPORTED_EXPRESSION", f"{what} is not supported", hint)
        raise self.source.place(error, start_of(node))


def start_of(node: exp.Expr) -> int:
    """Where the text of a node begins, from the positions of its parts; 0 if none has one."""
    starts = [n.meta["start"] for n in node.walk() if "start" in n.meta]
    return min(starts, default=0)


def others(node: exp.Expr, known: Iterable[str]) -> list[str]:
    """The parts of a node that are present and not known; none may be ignored."""
    return [part for part, value in node.args.items() if value and part not in known]


def name_path(node: exp.Expr) -> tuple[list[Name], exp.Expr | None]:
    """`a.b.c` as names; what stands before them if it is not a name, such as a call."""
    match node:
        case exp.Column():
            parts = [node.args.get(k) for k in ("catalog", "db", "table", "this")]
            return [_name(p) for p in parts if isinstance(p, exp.Expr)], None
        case exp.Dot():
            names, inner = name_path(node.this)
            return [*names, _name(node.expression)], inner
        case _:
            return [], node


def _name(node: exp.Expr) -> Name:
    return Name(node.name, start_of(node))
