"""What explain takes that run refuses: a file that ends with a SELECT without INSERT INTO."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.text.explain import explain_json, explain_text
from spark_jobs.sql.bind.binder import bind
from tests.unit.plan.conftest import TABLES

SELECT = "SELECT a1, name FROM a JOIN users ON a1 = id;"


def refused(sql: str) -> list[tuple[str, int | None]]:
    """Codes and lines, as explain says them; its JSON says the same."""
    found = []
    for explain in (explain_text, explain_json):
        with pytest.raises(SqlErrors) as caught:
            explain(TABLES + sql, "job.sql")
        assert all("job.sql" in error.render() for error in caught.value.errors)
        first = TABLES.count("\n")
        found.append([(e.code, (e.line or 0) - first) for e in caught.value.errors])
    assert found[0] == found[1]
    return list(found[0])


def test_a_select_is_planned_up_to_its_last_operator() -> None:
    text = explain_text(TABLES + SELECT)
    assert "Sink" not in text
    assert "RegularJoin" in text.partition("== Rejoin Plan ==")[2]
    [query] = explain_json(TABLES + SELECT)["queries"]
    assert query["name"] == "query"


@pytest.mark.parametrize(
    ("sql", "code"),
    [
        ("SELECT a11, name FROM a JOIN users ON a1 = id;", "UNKNOWN_COLUMN"),
        ("SELECT a1 FROM nowhere;", "UNKNOWN_TABLE"),
        ("SELECT a1 FRO a;", "SQL_SYNTAX"),
        # bound, and refused by the planner
        (
            "SELECT id FROM pay JOIN rates FOR SYSTEM_TIME AS OF pay.at ON land = country;",
            "TEMPORAL_JOIN_KEY",
        ),
    ],
)
def test_its_own_problems_are_all_that_is_said(sql: str, code: str) -> None:
    assert refused(sql) == [(code, 1)]


def test_run_refuses_it() -> None:
    with pytest.raises(SqlErrors) as caught:
        bind(TABLES + SELECT)
    assert caught.value.codes == ("SELECT_WITHOUT_SINK",)


def test_only_the_last_statement_may_be_one() -> None:
    insert = "INSERT INTO append_sink SELECT a1, a3 FROM a;\n"
    assert explain_text(TABLES + insert + SELECT) == explain_text(TABLES + SELECT)
    assert refused(f"{SELECT}\n{insert}") == [("SELECT_WITHOUT_SINK", 1)]
    assert refused(f"{SELECT}\n{SELECT}") == [("SELECT_WITHOUT_SINK", 1)]
    broken = "INSERT INTO append_sink SELECT a11, a3 FROM a;\n"
    assert refused(broken + SELECT) == [("UNKNOWN_COLUMN", 1)]
