"""The pages of the SQL list what the code has, with its defaults, and what Flink has."""

from collections.abc import Callable, Iterator, Mapping
from pathlib import Path

import pytest

from spark_jobs.options.connectors import CONNECTORS
from spark_jobs.options.formats import FORMATS
from spark_jobs.options.kinds import Option
from spark_jobs.options.settings import IDLE_SETTINGS, REFUSED_SETTINGS, SETTINGS
from spark_jobs.plan.spark_sql.functions import RENDERS
from spark_jobs.sizing.coefficients import Calibration, HeldOut, Measured, calibration
from spark_jobs.sql.bind.metadata import keys_of
from spark_jobs.sql.types.functions import EXTRACTS, FUNCTIONS, GROUP_FUNCTIONS, SYNONYMS
from tools.flink_functions import compared, is_repeatable, is_taken, scalar_names
from tools.sizing_reference import sizing_lines
from tools.sql_reference import BLOCKS, generated, rendered

DOCS = Path(__file__).parents[3] / "docs"
PAGES = ("sql.md", "options.md", "functions.md", "flink-sql.md", "tuning.md")
MOST_REFUSED = 0.1


def page(name: str) -> str:
    """As it is now: `make golden` writes it."""
    return (DOCS / name).read_text(encoding="utf-8")


@pytest.mark.parametrize("name", PAGES)
def test_generated_parts_are_what_the_code_says(
    name: str, golden: Callable[[Path, str], None]
) -> None:
    golden(DOCS / name, rendered(page(name)))


def test_every_block_stands_in_one_page() -> None:
    assert sorted(block for name in PAGES for block in generated(page(name))) == sorted(BLOCKS)


def test_few_functions_are_refused() -> None:
    """Of those that give the same for the same arguments."""
    names = [name for name in scalar_names() if is_repeatable(name)]
    assert sum(not is_taken(name) for name in names) <= MOST_REFUSED * len(names)


@pytest.mark.parametrize("name", [name for name in scalar_names() if is_taken(name)])
def test_function_is_compared_with_flink(name: str) -> None:
    """With three results at least; each call is also made of NULL."""
    assert compared().get(name, 0) >= 3


def _cells() -> dict[str, list[str]]:
    """Table rows of the options by the name in their first cell."""
    rows = [line for line in page("options.md").splitlines() if line.startswith("| `")]
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


def test_settings_without_effect_say_what_rejoin_does() -> None:
    cells = _cells()
    assert all(cells[name][2] == idle.instead for name, idle in IDLE_SETTINGS.items())


@pytest.mark.parametrize("name", [*FUNCTIONS, *SYNONYMS, *EXTRACTS, *GROUP_FUNCTIONS])
def test_function_is_listed(name: str) -> None:
    assert f"`{name}`" in page("functions.md")


def test_metadata_is_listed() -> None:
    for name, key in keys_of("debezium-json").items():
        assert key.refused or f"`{name}`" in page("sql.md")


def test_only_known_functions_have_renderings() -> None:
    assert set(RENDERS) <= set(FUNCTIONS)


def test_the_errors_of_the_sizing_model_are_shown() -> None:
    known = Calibration(
        calibration().coefficients,
        {"epoch_s": "12 runs"},
        Measured("2026-01-31", "abc1234", "2 cores"),
        (HeldOut("regular", "records per second", "1/s", 90_000.0, 100_000.0),),
    )
    lines = list(sizing_lines(known))
    assert lines[0] == "Measured 2026-01-31 at commit abc1234, 2 cores."
    assert "| regular | records per second | 90,000 | 100,000 1/s | -10% |" in lines
    assert lines[-1].endswith("| 12 runs |")
    unmeasured = sizing_lines(Calibration(known.coefficients, known.rests_on, None, ()))
    assert "not known" in next(unmeasured)
