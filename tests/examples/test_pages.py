"""README.md and docs/which-join.md: the rows beside their SQL are what goes in and comes out."""

import re
from pathlib import Path

import pytest

from spark_jobs.scenario.file import Step, parse_scenario
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Record
from spark_jobs.scenario.runner import ScenarioRun, bind_scenario
from tests.harness.gateway import kernel

ROOT = Path(__file__).parents[2]
README = (ROOT / "README.md").read_text(encoding="utf-8")
JOINS = (ROOT / "docs" / "which-join.md").read_text(encoding="utf-8")
QUICKSTART = (ROOT / "docs" / "quickstart.md").read_text(encoding="utf-8")
SQL = re.compile(r"```sql\n(.*?)```", re.DOTALL)
QUERY_AND_ROWS = re.compile(r"```sql\n(SELECT [^`]*)```[^`]*```\n(.*?)```", re.DOTALL)
TABLES = SQL.findall(JOINS)[-1]
# `topic` `value`, or `topic` key `key`, no value
RECORD_IN = re.compile(r"`(\w+)` (?:key `(.+)`, no value|`(.+)`)")


@pytest.mark.parametrize(("query", "rows"), QUERY_AND_ROWS.findall(JOINS))
def test_each_join_gives_the_rows_beside_it(query: str, rows: str) -> None:
    scenario = parse_scenario(f"{TABLES}\nINSERT INTO result\n{query};\n\n{rows}", "which-join")
    bound = bind_scenario(scenario)
    ScenarioRun(bound, MemoryBackend(bound, kernel())).all()


def test_every_join_of_the_page_is_run() -> None:
    """But for one that is shown to be wrong, and the lookup join, which needs a database."""
    assert len(QUERY_AND_ROWS.findall(JOINS)) == len(SQL.findall(JOINS)) - 2 == 5


def test_the_readme_shows_the_bytes_that_leave() -> None:
    bound = bind_scenario(
        parse_scenario(f"{_readme_sql()}\n> orders raw (NULL, '{{}}')\n", "README")
    )
    backend = MemoryBackend(bound, kernel())
    shown = re.findall(r"^\| (`.+?) \| `(.+?)` \|", README, re.MULTILINE)
    assert len(shown) == 4
    for coming, leaving in shown:
        topic, record = _record_in(coming)
        backend.feed(topic, [record])
        records = backend.run_step(Step(line=1), lambda _: True).records["named_orders"]
        assert [r.value for r in records] == [leaving.encode()]


def test_the_readme_has_twelve_lines_of_the_quick_start() -> None:
    assert len(_readme_sql().splitlines()) == 12
    [job] = [text for text in SQL.findall(QUICKSTART) if "-- job.sql" in text]
    assert _words(job.replace("-- job.sql", "")) == _words(_readme_sql())


def _readme_sql() -> str:
    return SQL.findall(README)[0]


def _words(sql: str) -> list[str]:
    """In no order, as that of options does not matter."""
    return sorted(re.findall(r"[\w.'-]+", sql))


def _record_in(cell: str) -> tuple[str, Record]:
    """The record of a cell; customers are keyed by their id."""
    found = RECORD_IN.fullmatch(cell)
    assert found is not None, cell
    topic, key, value = found.groups()
    if value is not None and topic == "customers":
        key = value.partition(",")[0] + "}"
    return topic, Record(key and key.encode(), value and value.encode())
