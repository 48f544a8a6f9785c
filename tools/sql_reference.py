"""The tables of docs/sql.md that follow from the code: `make golden` writes them, a test compares.

Each stands between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Sequence

from spark_jobs.errors import SqlErrors
from spark_jobs.options.connectors import CONNECTORS
from spark_jobs.options.formats import FORMATS
from spark_jobs.options.kinds import Option
from spark_jobs.options.settings import REFUSED_SETTINGS, SETTINGS
from spark_jobs.sql.bind.binder import bind
from spark_jobs.sql.types import functions
from spark_jobs.sql.types.functions import (
    EXTRACTS,
    GROUP_FUNCTIONS,
    SIGNATURES,
    SYNONYMS,
    UNITS_OF,
)
from tools.sql_probes import (
    ANY_INSERT,
    CHANGELOGS,
    CLAUSES,
    INSERT,
    JOINS,
    KAFKA,
    QUERIES,
    SINK,
    SINKS,
    STATEMENTS,
    TABLES,
    TYPES,
    table,
    verdict,
)

_BLOCK = re.compile(r"(<!-- generated: (\w+) -->\n).*?(<!-- end -->)", re.DOTALL)


def generated(page: str) -> list[tuple[str, str, str]]:
    """The blocks of a page: mark, name, mark."""
    return _BLOCK.findall(page)


def rendered(page: str) -> str:
    """The page with its generated blocks as the code has them now.

    Raises KeyError for a block that nobody generates.
    """

    def block(found: re.Match[str]) -> str:
        return found[1] + "\n".join(BLOCKS[found[2]]()) + "\n" + found[3]

    return _BLOCK.sub(block, page)


def _table(heading: Sequence[str], rows: Iterable[Sequence[str]]) -> Iterator[str]:
    yield _row(heading)
    yield _row(["---"] * len(heading)).replace(" ", "")
    for cells in rows:
        yield _row(cells)


def _row(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cell.replace("|", r"\|") for cell in cells) + " |"


class _Notes:
    """Refusals as numbers in narrow cells, and what the numbers mean below the table."""

    def __init__(self) -> None:
        self._codes: list[str] = []

    def cell(self, text: str) -> str:
        taken, code = verdict(text)
        if taken:
            return taken
        if code not in self._codes:
            self._codes.append(code)
        return f"no ({self._codes.index(code) + 1})"

    def lines(self) -> Iterator[str]:
        if self._codes:
            numbered = enumerate(self._codes, 1)
            yield ""
            yield "Refused: " + ", ".join(f"({n}) `{code}`" for n, code in numbered) + "."


def _joins() -> Iterator[str]:
    notes = _Notes()
    pairs = [(left, right) for left in CHANGELOGS for right in CHANGELOGS]
    rows = [
        [
            name,
            *(
                notes.cell(table("a", left) + table("b", right) + SINK + f"{INSERT} {join};")
                for left, right in pairs
            ),
        ]
        for name, join in JOINS.items()
    ]
    yield from _table(["join", *(f"{left}, {right}" for left, right in pairs)], rows)
    yield from notes.lines()


def _sinks() -> Iterator[str]:
    notes = _Notes()

    def cell(columns: str, query: str) -> str:
        sink = f"CREATE TABLE sink ({columns}, 'topic' = 'sink');\n"
        found = notes.cell(f"{table('a')}{table('b')}{sink}INSERT INTO sink {query};")
        return found if found.startswith("no") else "yes"

    rows = [[name, *(cell(sink, q) for q in QUERIES.values())] for name, sink in SINKS.items()]
    yield from _table(["sink", *QUERIES], rows)
    yield from notes.lines()


def _statements() -> Iterator[str]:
    rows = ([f"`{name}`", _answer(TABLES + text + ANY_INSERT)] for name, text in STATEMENTS.items())
    yield from _table(["statement", "taken"], rows)


def _clauses() -> Iterator[str]:
    rows = (
        [name if name.startswith("a ") else f"`{name}`", _answer(f"{TABLES}INSERT INTO sink {q};")]
        for name, q in CLAUSES.items()
    )
    yield from _table(["in a query", "taken"], rows)


def _answer(text: str) -> str:
    taken, code = verdict(text)
    return "yes" if taken else f"no: `{code}`"


def _types() -> Iterator[str]:
    def cells(name: str) -> list[str]:
        text = f"CREATE TABLE a (c {name}) WITH ({KAFKA}, 'topic' = 'a', 'format' = 'json');\n"
        text += SINK + ANY_INSERT.replace("id", "1")
        try:
            found = bind(text).tables["a"].column("c").type
        except SqlErrors as refused:
            [first, *_] = refused.errors
            hint = "" if first.hint is None else f"; {first.hint}"
            return [f"`{name}`", "no", f"`{first.code}`{hint}"]
        spark = found.spark_json()
        return [
            f"`{name}`",
            f"`{found.sql()}`",
            f"`{spark}`" if isinstance(spark, str) else "nested",
        ]

    yield from _table(["written", "is", "in Spark"], map(cells, TYPES))


def _options() -> Iterator[str]:
    merged: dict[str, Option] = {}
    owners: dict[str, list[str]] = {}
    for connector, options in CONNECTORS.items():
        for name, option in options.items():
            merged.setdefault(name, option)
            owners.setdefault(name, []).append(connector)
    rows = [["`connector`", " | ".join(CONNECTORS), "", "required"]]
    for name, option in merged.items():
        only = "" if len(owners[name]) == len(CONNECTORS) else f" ({', '.join(owners[name])})"
        if not option.refused:
            rows.append(_option(name, option, option.help + only))
    for kind in FORMATS.values():
        rows += [
            _option(f"{kind.name}.{name}", option, option.help)
            for name, option in kind.options.items()
            if not option.refused
        ]
    yield from _table(["option", "value", "default", "meaning"], rows)
    yield ""
    refused = ([f"`{n}`", o.refused] for n, o in merged.items() if o.refused)
    yield from _table(["refused", "instead"], refused)


def _settings() -> Iterator[str]:
    rows = (_option(name, option, option.help) for name, option in SETTINGS.items())
    yield from _table(["setting", "value", "default", "meaning"], rows)
    yield ""
    refused = ([f"`{name}`", instead] for name, instead in REFUSED_SETTINGS.items())
    yield from _table(["refused", "instead"], refused)


def _option(name: str, option: Option, meaning: str) -> list[str]:
    default = f"`{option.default}`" if option.default else ""
    return [f"`{name}`", option.expected, default, meaning]


_RESULTS = {
    "arg": "as its argument",
    "last": "as its last argument",
    "same": "the common type",
    "coalesce": "the common type",
    "mod": "as the second argument",
    "round": "as its argument, with fewer digits",
    "floor": "as its argument, whole",
}


def _functions() -> Iterator[str]:
    also: dict[str, list[str]] = {}
    for other, name in SYNONYMS.items():
        also.setdefault(name, []).append(f"`{other}`")
    rows = []
    for name, text in SIGNATURES.items():
        arguments, _, result = (part.strip() for part in text.partition("->"))
        bare = result.rstrip("?")
        given = _RESULTS.get(bare, bare) + (", may be NULL" if result.endswith("?") else "")
        units = f"; unit: {', '.join(UNITS_OF[name])}" if name in UNITS_OF else ""
        called = ", ".join([f"`{name}`", *also.get(name, [])])
        rows.append([called, (arguments or "none") + units, given])
    for name, unit in EXTRACTS.items():
        rows.append([f"`{name}`", "datetime", f"as EXTRACT({unit} FROM ...)"])
    for name in GROUP_FUNCTIONS:
        rows.append([f"`{name}`", "an aggregate function", "see Aggregates"])
    yield from _table(["function", "arguments", "result"], rows)
    yield ""
    for why, names in _REFUSED_FUNCTIONS.items():
        yield f"Refused, because {why}: {', '.join(f'`{n}`' for n in sorted(names))}."
        yield ""


_REFUSED_FUNCTIONS = {
    "a batch that is computed again must give the same rows": functions.UNREPEATABLE,
    "rejoin has no such aggregates": functions.AGGREGATES,
    "rejoin has no windows": functions.WINDOWS,
}
BLOCKS: dict[str, Callable[[], Iterable[str]]] = {
    "statements": _statements,
    "clauses": _clauses,
    "joins": _joins,
    "sinks": _sinks,
    "types": _types,
    "options": _options,
    "settings": _settings,
    "functions": _functions,
}
