"""`r.t = (SELECT MAX(t) ... r2.t <= o.t)` is refused with the temporal join that it means."""

from pathlib import Path

import pytest

from spark_jobs.errors import PositionedError, SqlErrors
from spark_jobs.plan.nodes.physical import TemporalJoin
from spark_jobs.plan.nodes.walk import stateful_nodes
from spark_jobs.plan.planner import plan_query
from spark_jobs.sql.bind.binder import bind_query

SCENARIO = Path(__file__).parents[3] / "scenarios" / "temporal_version_lookup_of_seed_004.scenario"
WITH = """WITH ('connector' = 'kafka', 'topic' = 't', 'properties.bootstrap.servers' = 'b',
  'format' = 'debezium-json');"""
ORDERS = f"""CREATE TABLE Orders (rowtime TIMESTAMP(3), amount INT, currency STRING,
  WATERMARK FOR rowtime AS rowtime) {WITH.replace("debezium-", "")}
CREATE TABLE A (id INT, amount INT) {WITH.replace("debezium-", "")}
"""
COLUMNS = "rowtime TIMESTAMP(3), currency STRING, rate INT, WATERMARK FOR rowtime AS rowtime"
HISTORY = f"CREATE TABLE RatesHistory ({COLUMNS}) {WITH.replace('debezium-', '')}"
KEYED = f"CREATE TABLE Rates ({COLUMNS}, PRIMARY KEY (currency) NOT ENFORCED) {WITH}"
SEED = """
SELECT
  SUM(o.amount * r.rate) AS amount
FROM Orders AS o,
  RatesHistory AS r
WHERE r.currency = o.currency
AND r.rowtime = (
  SELECT MAX(rowtime)
  FROM RatesHistory AS r2
  WHERE r2.currency = o.currency
  AND r2.rowtime <= o.rowtime);
"""
LATEST = """(SELECT MAX(x.rowtime) FROM Rates AS x
  WHERE o.rowtime >= x.rowtime AND o.currency = x.currency)"""
AS_OF = "Rates FOR SYSTEM_TIME AS OF o.rowtime AS r ON"


def problem(text: str) -> PositionedError:
    with pytest.raises(SqlErrors) as problems:
        bind_query(text)
    (found,) = problems.value.errors
    return found


def rewritten(tables: str, query: str) -> str:
    """The query that the hint shows; it can be planned, as a temporal join."""
    hint = problem(tables + query).hint
    assert hint is not None
    said, _, text = hint.partition(": ")
    assert said == "write it as a temporal join"
    bound = bind_query(f"{tables}{text};")
    planned = plan_query(bound.query, bound.settings).root
    assert [n for n in stateful_nodes(planned) if isinstance(n.machine, TemporalJoin)]
    return text


def test_the_query_of_seed_004() -> None:
    found = problem(ORDERS + HISTORY + SEED)
    assert found.code == "UNSUPPORTED_EXPRESSION"
    assert "SELECT MAX(rowtime) for the version at o.rowtime is not supported" in found.message
    view, query = rewritten(ORDERS + HISTORY, SEED).split("; ")
    scenario = SCENARIO.read_text()
    assert f"{view};\nINSERT INTO totals\n{query};" in scenario


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT o.amount FROM Orders o, Rates r WHERE r.rowtime = <latest>"
            " AND o.currency = r.currency AND o.amount > 1 AND o.amount IN (SELECT id FROM A);",
            "SELECT o.amount FROM Orders AS o JOIN <as of> o.currency = r.currency"
            " WHERE o.amount > 1 AND o.amount IN (SELECT id FROM A)",
        ),
        (
            "SELECT r.rate FROM Orders o LEFT JOIN Rates r ON (r.currency = o.currency"
            " AND <latest> = r.rowtime) AND r.rate > 1;",
            "SELECT r.rate FROM Orders AS o LEFT JOIN <as of> r.currency = o.currency"
            " AND r.rate > 1",
        ),
        (
            "SELECT r.rate FROM Rates r JOIN Orders o ON r.currency = o.currency"
            " WHERE r.rowtime = <latest>;",
            "SELECT r.rate FROM Orders AS o JOIN <as of> r.currency = o.currency",
        ),
        (
            "SELECT r.rate FROM Orders o JOIN A ON A.amount = o.amount JOIN Rates r"
            " ON r.currency = o.currency AND r.rowtime = <latest>;",
            "FROM Orders AS o JOIN A ON A.amount = o.amount JOIN <as of> r.currency = o.currency",
        ),
    ],
    ids=["where", "left", "versions first", "behind a join"],
)
def test_the_hint_keeps_the_rest_of_the_query(query: str, expected: str) -> None:
    query = query.replace("<latest>", LATEST)
    hint = problem(ORDERS + KEYED + query).hint or ""
    assert expected.replace("<as of>", AS_OF) in hint
    if "JOIN A" not in query:  # whose regular join makes the order's time a plain timestamp
        rewritten(ORDERS + KEYED, query)


def test_what_cannot_be_written_again_is_left_out() -> None:
    query = "SELECT CAST(o.amount AS BIGINT), ARRAY[1] FROM Orders o, Rates r"
    where = f"WHERE r.currency = o.currency AND r.rowtime = {LATEST};"
    hint = problem(f"{ORDERS}{KEYED}{query} {where}").hint or ""
    assert "SELECT ... FROM Orders AS o JOIN" in hint
    assert hint.endswith(f"{AS_OF} r.currency = o.currency ...")


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("MAX(x.rowtime)", "MIN(x.rowtime)"),
        ("o.rowtime >= x.rowtime", "o.rowtime > x.rowtime"),
        ("o.currency = x.currency", "o.currency <> x.currency"),
        ("o.currency = x.currency)", "o.currency = x.currency AND x.rate > 1)"),
        ("AND r.currency = o.currency", ""),
        ("AND r.currency = o.currency", "AND r.currency = o.currency OR o.amount > 1"),
        ("r.rowtime =", "NOT r.rowtime ="),
    ],
)
def test_other_queries_get_no_rewrite(old: str, new: str) -> None:
    query = "SELECT o.amount FROM Orders o, Rates r WHERE r.rowtime = <latest>"
    text = f"{query} AND r.currency = o.currency;".replace("<latest>", LATEST)
    assert old in text
    hints: list[str] = []
    try:
        bind_query(ORDERS + KEYED + text.replace(old, new))
    except SqlErrors as refused:
        hints = [error.hint or "" for error in refused.errors]
    assert not any("temporal join" in hint for hint in hints)
