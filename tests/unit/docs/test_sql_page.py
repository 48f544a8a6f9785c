"""docs/sql.md lists every option, setting and function of the code, with its default."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from spark_jobs.options.connectors import CONNECTORS
from spark_jobs.options.formats import FORMATS
from spark_jobs.options.kinds import Option
from spark_jobs.options.settings import REFUSED_SETTINGS, SETTINGS
from spark_jobs.plan.spark_sql.functions import RENDERS
from spark_jobs.sql.bind.metadata import keys_of
from spark_jobs.sql.types.functions import EXTRACTS, FUNCTIONS, GROUP_FUNCTIONS, SYNONYMS
from tools.sql_reference import BLOCKS, generated, rendered

FILE = Path(__file__).parents[3] / "docs" / "sql.md"


def page() -> str:
    """As it is now: `make golden` writes it."""
    return FILE.read_text(encoding="utf-8")


def test_tables_are_what_parser_and_planner_answer(golden: Callable[[Path, str], None]) -> None:
    assert {name for _, name, _ in generated(page())} == set(BLOCKS)
    golden(FILE, rendered(page()))


def _cells() -> dict[str, list[str]]:
    """Table rows by the name in their first cell."""
    rows = [line for line in page().splitlines() if line.startswith("| `")]
    split = [[c.strip() for c in r.replace(r"\|", "¦").split("|")[1:-1]] for r in rows]
    return {cells[0].strip("`"): cells for cells in split}


def _options() -> Iterator[tuple[str, Option]]:
    for options in CONNECTORS.values():
        yield from options.items()
    for kind in FORMATS.values():
        yield from ((f"{kind.name}.{n}", o) for n, o in kind.options.items())
    yield from SETTINGS.items()


@pytest.mark.parametrize(("name", "option"), [o for o in _options() if not o[1].refused])
def test_option_is_listed(name: str, option: Option) -> None:
    cells = _cells()[name]
    if option.default:
        assert cells[2] == f"`{option.default}`"
    assert option.help in cells[3]


def test_refused_names_say_what_to_do_instead() -> None:
    connectors: Mapping[str, Option] = {n: o for c in CONNECTORS.values() for n, o in c.items()}
    refused = {n: o.refused for n, o in connectors.items() if o.refused}
    cells = _cells()
    for name, instead in {**refused, **REFUSED_SETTINGS}.items():
        assert cells[name][1] == instead


@pytest.mark.parametrize("name", [*FUNCTIONS, *SYNONYMS, *EXTRACTS, *GROUP_FUNCTIONS])
def test_function_is_listed(name: str) -> None:
    assert f"`{name}`" in page()


def test_metadata_is_listed() -> None:
    for name, key in keys_of("debezium-json").items():
        assert key.refused or f"`{name}`" in page()


def test_only_known_functions_have_renderings() -> None:
    assert set(RENDERS) <= set(FUNCTIONS)
