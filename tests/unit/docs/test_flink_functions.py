"""docs/flink-sql.md: every function that rejoin has was compared with a real Flink."""

import re
from pathlib import Path

from tests.aggregates.cases import CHANGELOGS
from tests.functions.cases import CASES
from tests.functions.jobs import RECORDS
from tools.flink_functions import AGGREGATES, is_taken, scalar_names

PAGE = Path(__file__).parents[3] / "docs" / "flink-sql.md"
_YES = re.compile(r"^\| `(\w+)` \| yes \| (\d*) \|$", re.MULTILINE)
_NAME = re.compile(r"[A-Z][A-Z_0-9]*")


def test_every_function_has_three_results_of_flink() -> None:
    listed = {name: int(count or 0) for name, count in _YES.findall(PAGE.read_text("utf-8"))}
    assert set(listed) == {n for n in (*scalar_names(), *AGGREGATES.split()) if is_taken(n)}
    assert {name: count for name, count in listed.items() if count < 3} == {}


def test_every_scalar_function_was_given_three_values_and_null() -> None:
    """Not all of one call; a function without arguments, as PI, stands beside a column."""
    values: dict[str, set[tuple[object, ...]]] = {}
    for calls, recorded in zip(CASES, RECORDS, strict=True):
        for name in set(_NAME.findall(calls.expression)) if "results" in recorded else ():
            values.setdefault(name, set()).update(calls.rows)
    for name in filter(is_taken, scalar_names()):
        is_null = [all(value is None for value in row) for row in values[name]]
        assert is_null.count(True) >= 1, name
        assert is_null.count(False) >= 3, name


def test_aggregates_were_given_three_values_and_null() -> None:
    """Of each column but the BOOLEAN, which has two values."""
    for changes in CHANGELOGS.values():
        for column in list(zip(*changes, strict=True))[2:]:
            assert None in column
            assert len(set(column)) > 3
