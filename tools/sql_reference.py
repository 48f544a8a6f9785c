"""The parts of docs/sql.md, options.md, functions.md and tuning.md that are made from the code.

`make golden` writes them and a test compares. Each stands between `<!-- generated: NAME -->` and
`<!-- end -->`.
"""

import re
import textwrap
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

from spark_jobs.errors import SqlErrors
from spark_jobs.options.connectors import CONNECTORS
from spark_jobs.options.formats import FORMATS
from spark_jobs.options.kinds import Option
from spark_jobs.options.settings import IDLE_SETTINGS, REFUSED_SETTINGS, SETTINGS
from spark_jobs.sql.bind.binder import bind
from spark_jobs.sql.types import functions
from spark_jobs.sql.types.functions import (
    EXTRACTS,
    GROUP_FUNCTIONS,
    SIGNATURES,
    SYNONYMS,
    UNITS_OF,
)
from tools.flink_functions import (
    AGGREGATES,
    INSTEAD,
    SCALARS,
    compared,
    compared_aggregates,
    is_repeatable,
    is_taken,
    scalar_names,
)
from tools.sizing_reference import sizing
from tools.sql_probes import (
    ANY_INSERT,
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


def generated(page: str) -> list[str]:
    """Names of the blocks of a page."""
    return [name for _, name, _ in _BLOCK.findall(page)]


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


_MODES = {"I": "`+I`", "I,UB,UA,D": "all"}


class _Notes:
    """Refusals as numbers in narrow cells, and what the numbers mean below the table."""

    def __init__(self) -> None:
        self._codes: list[str] = []

    def cell(self, text: str) -> str:
        kinds, code = verdict(text)
        if kinds:
            return _MODES.get(kinds, kinds)
        if code not in self._codes:
            self._codes.append(code)
        return f"no ({self._codes.index(code) + 1})"

    def lines(self) -> Iterator[str]:
        if self._codes:
            numbered = enumerate(self._codes, 1)
            yield ""
            yield "Refused: " + ", ".join(f"({n}) `{code}`" for n, code in numbered) + "."


_CHANGING = ("upsert", "retract")
_WHICH_CHANGE = {
    "none": [("append", "append")],
    "only `b`": [("append", b) for b in _CHANGING],
    "only `a`": [(a, "append") for a in _CHANGING],
    "both": [(a, b) for a in _CHANGING for b in _CHANGING],
}


def _joins() -> Iterator[str]:
    """A row per family of joins. Its probes have to agree, or the row would not be true."""
    notes = _Notes()

    def cell(joins: Iterable[str], pairs: Iterable[tuple[str, str]]) -> str:
        inputs = [table("a", left) + table("b", right) + SINK for left, right in pairs]
        [answer] = {notes.cell(f"{i}{INSERT} {join};") for i in inputs for join in joins}
        return answer

    rows = [
        [name, *(cell(joins, pairs) for pairs in _WHICH_CHANGE.values())]
        for name, joins in JOINS.items()
    ]
    yield from _table(["join of `a` and `b`; inputs that change:", *_WHICH_CHANGE], rows)
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
    return _answers({f"`{n}`": TABLES + text + ANY_INSERT for n, text in STATEMENTS.items()})


def _clauses() -> Iterator[str]:
    return _answers(
        {
            name if name.startswith("a ") else f"`{name}`": f"{TABLES}INSERT INTO sink {query};"
            for name, query in CLAUSES.items()
        }
    )


def _answers(jobs: dict[str, str]) -> Iterator[str]:
    """What is taken, and what is refused by each code."""
    names: dict[str, list[str]] = {"": []}
    for name, text in jobs.items():
        names.setdefault(verdict(text)[1], []).append(name)
    for code, found in names.items():
        yield from _sentence(f"Refused with `{code}`" if code else "Taken", found)


def _sentence(before: str, names: Iterable[str]) -> Iterator[str]:
    text = f"{before}: {', '.join(names)}."
    yield from textwrap.wrap(text, 120, break_long_words=False, break_on_hyphens=False)
    yield ""


def _types() -> Iterator[str]:
    taken, refused = [], []
    for name in TYPES:
        text = f"CREATE TABLE a (c {name}) WITH ({KAFKA}, 'topic' = 'a', 'format' = 'json');\n"
        text += SINK + ANY_INSERT.replace("id", "1")
        try:
            found = bind(text).tables["a"].column("c").type
        except SqlErrors as errors:
            [first, *_] = errors.errors
            refused.append([f"`{name}`", f"`{first.code}`", first.hint or ""])
        else:
            spark = found.spark_json()
            nested = "nested" if not isinstance(spark, str) else f"`{spark}`"
            taken.append([f"`{name}`", f"`{found.sql()}`", nested])
    yield from _table(["written", "is", "in Spark"], taken)
    yield ""
    yield from _table(["refused", "code", "instead"], refused)


def _options() -> Iterator[str]:
    """Of the connectors; which one has an option is said where it is not all of them."""
    merged = {name: option for options in CONNECTORS.values() for name, option in options.items()}
    rows = [["`connector`", " | ".join(CONNECTORS), "", "required"]]
    for name, option in merged.items():
        owners = [connector for connector, options in CONNECTORS.items() if name in options]
        only = "" if len(owners) == len(CONNECTORS) else f" ({', '.join(owners)})"
        if not option.refused:
            rows.append(_option(name, option, option.help + only))
    yield from _table(["option", "value", "default", "meaning"], rows)


def _formats() -> Iterator[str]:
    rows = (
        _option(f"{kind.name}.{name}", option, option.help)
        for kind in FORMATS.values()
        for name, option in kind.options.items()
        if not option.refused
    )
    yield from _table(["option", "value", "default", "meaning"], rows)


def _settings() -> Iterator[str]:
    rows = (_option(name, option, option.help) for name, option in SETTINGS.items())
    yield from _table(["setting", "value", "default", "meaning"], rows)


def _refused_options() -> Iterator[str]:
    refused = {name: o.refused for c in CONNECTORS.values() for name, o in c.items() if o.refused}
    yield from _table(["option", "instead"], ([f"`{n}`", i] for n, i in refused.items()))


def _idle_settings() -> Iterator[str]:
    rows = (
        [f"`{name}`", ", ".join(f"`{v}`" for v in idle.values) or "any", idle.instead]
        for name, idle in IDLE_SETTINGS.items()
    )
    yield from _table(["setting", "value", "in rejoin"], rows)


def _refused_settings() -> Iterator[str]:
    rows = ([f"`{name}`", instead] for name, instead in REFUSED_SETTINGS.items())
    yield from _table(["setting", "instead"], rows)


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
    "contains": "BOOLEAN",
    "contains_arg": "as its argument",
    "appended": "as its argument",
    "element": "an element",
    "keys": "ARRAY of the keys",
    "values": "ARRAY of the values",
    "entries": "ARRAY of ROW(key, value)",
    "map": "MAP of both",
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
        yield from _sentence(f"Refused, because {why}", (f"`{n}`" for n in sorted(names)))


_REFUSED_FUNCTIONS = {
    "an epoch that is repeated after a crash must give the same rows": functions.UNREPEATABLE,
    "rejoin does not have these aggregates": functions.AGGREGATES - {"ROW_NUMBER"},
    "rejoin has no windows": functions.WINDOWS,
    "rejoin has no bitmaps": functions.BITMAPS,
    "rejoin does not have their types": functions.UNTYPED,
}


def _names() -> Iterator[str]:
    """Every statement and clause that has a probe, one a row."""
    jobs = {name: TABLES + text + ANY_INSERT for name, text in STATEMENTS.items()}
    yield from _table(["statement", "in rejoin"], ([f"`{n}`", _taken(t)] for n, t in jobs.items()))
    yield ""
    queries = {name: f"{TABLES}INSERT INTO sink {query};" for name, query in CLAUSES.items()}
    rows = (
        [name if name.startswith("a ") else f"`{name}`", _taken(text)]
        for name, text in queries.items()
    )
    yield from _table(["clause of a query", "in rejoin"], rows)


def _taken(text: str) -> str:
    code = verdict(text)[1]
    return f"no (`{code}`)" if code else "yes"


def _flink_functions() -> Iterator[str]:
    """Every function that Flink documents: whether it is there, and what it was compared with."""
    values = compared()
    for kind, names in SCALARS.items():
        rows = ([f"`{n}`", _function(n), _results(values, n)] for n in names.split())
        yield from _table([f"{kind}", "in rejoin", "results compared with Flink"], rows)
        yield ""
    values = compared_aggregates()
    rows = ([f"`{n}`", _function(n), _results(values, n)] for n in AGGREGATES.split())
    heading = ["aggregates and window functions", "in rejoin", "results compared with Flink"]
    yield from _table(heading, rows)
    yield ""
    scalars = list(scalar_names())
    refused = [name for name in scalars if not is_taken(name)]
    lasting = [name for name in refused if is_repeatable(name)]
    repeatable = sum(map(is_repeatable, scalars))
    changing = len(refused) - len(lasting)
    summary = (
        f"Of {len(scalars)} scalar functions {len(refused)} are refused. {changing} of these may"
        " give another value each time, which a repeated epoch must not; of the other"
        f" {repeatable} functions {len(lasting)} are refused, {len(lasting) / repeatable:.1%}."
    )
    yield from textwrap.wrap(summary, 120)


def _results(values: Mapping[str, int], name: str) -> str:
    return str(values[name]) if is_taken(name) and name in values else ""


def _function(name: str) -> str:
    if is_taken(name):
        return "yes"
    return f"no: {INSTEAD[name]}" if name in INSTEAD else "no"


BLOCKS: dict[str, Callable[[], Iterable[str]]] = {
    "statements": _statements,
    "clauses": _clauses,
    "joins": _joins,
    "sinks": _sinks,
    "types": _types,
    "options": _options,
    "formats": _formats,
    "refused_options": _refused_options,
    "idle_settings": _idle_settings,
    "refused_settings": _refused_settings,
    "settings": _settings,
    "functions": _functions,
    "flink_names": _names,
    "flink_functions": _flink_functions,
    "sizing": sizing,
}
