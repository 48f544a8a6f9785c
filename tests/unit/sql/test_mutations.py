"""No text ends in a traceback: changed queries are explained, or refused with a code."""

from collections.abc import Callable, Sequence
from itertools import islice

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.text.explain import explain_text
from tests.unit.sql.mutations import mutants, traceback_of
from tests.unit.sql.texts import script

pytestmark = pytest.mark.service  # it takes long

TABLE = "CREATE TABLE a (id INT, m DECIMAL(10, 2), s STRING, at TIMESTAMP(3)) <append>;"


def tracebacks(seed: int, count: int) -> list[tuple[str, Exception]]:
    found = ((text, traceback_of(text)) for text in islice(mutants(seed), count))
    return [(text, error) for text, error in found if error is not None]


def test_changed_queries() -> None:
    assert tracebacks(seed=20, count=1_000) == []


@pytest.mark.long
@pytest.mark.timeout(1200)
@pytest.mark.parametrize("seed", range(2))
def test_many_changed_queries(seed: int) -> None:
    assert tracebacks(seed, count=7_000) == []


@pytest.mark.parametrize("levels", [100, 350, 450])
@pytest.mark.parametrize(
    "deep",
    [
        lambda n: ("SELECT", " + ".join(["id"] * n), "FROM a"),
        lambda n: ("SELECT", "(" * n, "id", ")" * n, "FROM a"),
        lambda n: ("SELECT id FROM a WHERE", "NOT " * n, "id > 0"),
        lambda n: ("SELECT", "ABS(" * n, "id", ")" * n, "FROM a"),
        lambda n: ("SELECT id FROM", "(SELECT id FROM " * n, "a", ")" * n),
        lambda n: ("SELECT id FROM a", "UNION ALL SELECT id FROM a " * n),
        lambda n: (
            *(f"CREATE VIEW v{i + 1} AS SELECT id + 1 AS id FROM v{i};" for i in range(n)),  # noqa: S608
            f"SELECT id FROM v{n}",  # noqa: S608
        ),
    ],
    ids=("sum", "parentheses", "not", "call", "subquery", "union", "views"),
)
def test_deep_queries(deep: Callable[[int], Sequence[str]], levels: int) -> None:
    view = "CREATE VIEW v0 AS SELECT id FROM a;"
    assert traceback_of(script(TABLE, view, *deep(levels))) is None


@pytest.mark.parametrize("connective", [" AND ", " OR "])
def test_many_conditions(connective: str) -> None:
    conditions = connective.join(f"id <> {i}" for i in range(400))
    assert "id" in explain_text(script(TABLE, "SELECT id FROM a WHERE", conditions))


@pytest.mark.parametrize(
    ("query", "codes"),
    [
        (script("SELECT", " + ".join(["id"] * 450), "FROM a"), ["NESTED_TOO_DEEPLY"]),
        (script("SELECT", "(" * 450, "id", ")" * 450, "FROM a"), ["NESTED_TOO_DEEPLY"]),
        ("SELECT DISTINCT FROM a JOIN a AS b ON a.id = b.id", ["SQL_SYNTAX"]),
        ("SELECT FROM a", ["SQL_SYNTAX"]),
        ("SELECT FLOOR(at) FROM a", ["WRONG_ARGUMENT"]),
        ("SELECT FLOOR(id TO DAY) FROM a", ["WRONG_ARGUMENT"]),
        ("SELECT t.id FROM a t JOIN a FOR SYSTEM_TIME AS OF AS r ON r.id = t.id", ["SQL_SYNTAX"]),
        ("SELECT t.id FROM a t JOIN a FOR SYSTEM_TIME ALL AS r ON r.id = t.id", ["SQL_SYNTAX"]),
    ],
)
def test_once_a_traceback(query: str, codes: Sequence[str]) -> None:
    with pytest.raises(SqlErrors) as caught:
        explain_text(script(TABLE, query))
    assert [error.code for error in caught.value.errors] == list(codes)


def test_top_n_into_an_append_only_sink() -> None:
    query = """
        INSERT INTO shown SELECT id, s FROM (
          SELECT *, ROW_NUMBER() OVER (PARTITION BY id ORDER BY m, s) AS n FROM a
        ) WHERE n = 1"""
    shown = "CREATE TABLE shown (id INT, s STRING) <append>;"
    with pytest.raises(SqlErrors, match="a row that comes before others in order"):
        explain_text(script(TABLE, shown, query))
