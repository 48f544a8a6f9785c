"""Temporal table functions, SNAPSHOT, and FOR SYSTEM_TIME AS OF."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.bind.temporal_functions import create_temporal_table_function
from spark_jobs.sql.logical import Deduplicate, Filter, Join, Project, Snapshot
from tests.unit.sql.shapes import shape, text
from tests.unit.sql.texts import script

TABLES = script(
    "CREATE TABLE Orders (o_amount INT, o_currency STRING, o_time TIMESTAMP(3), o_proctime AS"
    " PROCTIME(), WATERMARK FOR o_time AS o_time) <append>;",
    "CREATE TABLE RatesHistory (r_currency STRING, r_rate INT, r_time TIMESTAMP(3), r_proctime AS"
    " PROCTIME(), WATERMARK FOR r_time AS r_time) <append>;",
)
RATES = (
    "CREATE TEMPORAL TABLE FUNCTION Rates FOR RatesHistory TIME ATTRIBUTE r_time"
    " PRIMARY KEY (r_currency);"
)
PROC_RATES = RATES.replace("r_time", "r_proctime")
VERSIONS = "Deduplicate([0], 2, last, Scan(RatesHistory))"


def bound(query: str, *statements: str) -> Project:
    found = bind_query("\n".join((TABLES, *statements, query))).query
    assert isinstance(found, Project)
    return found


def problem(query: str, *statements: str) -> str:
    with pytest.raises(SqlErrors) as caught:
        bind_query("\n".join((TABLES, *statements, query)))
    return caught.value.render()


def test_comma_join_with_a_temporal_table_function() -> None:
    query = bound(
        "SELECT o.o_amount * r.r_rate FROM Orders AS o, LATERAL TABLE (Rates(o.o_time)) AS r"
        " WHERE r.r_currency = o.o_currency",
        RATES,
    )
    joined = f"Join(inner as of $2, TRUE, Scan(Orders), {VERSIONS})"
    assert shape(query) == f"Project([*($0, $5)], Filter(=($4, $1), {joined}))"


def test_a_function_declared_in_python_is_the_same() -> None:
    query = "SELECT r_rate FROM Orders, LATERAL TABLE (Rates(o_time)) WHERE r_currency = o_currency"
    made = create_temporal_table_function("Rates", "RatesHistory", "r_time", ["r_currency"])
    assert shape(bound(query, made)) == shape(bound(query, RATES))


def test_a_function_declared_in_python_needs_a_key() -> None:
    with pytest.raises(ValueError, match="need a key"):
        create_temporal_table_function("Rates", "RatesHistory", "r_time", [])


def test_seed_004_without_an_alias_and_by_processing_time() -> None:
    query = bound(
        "SELECT SUM(o_amount * r_rate) AS amount FROM Orders, LATERAL TABLE (Rates(o_proctime))"
        " WHERE r_currency = o_currency",
        PROC_RATES,
    )
    versions = "Deduplicate([0], 3, last, Scan(RatesHistory))"
    joined = f"Filter(=($4, $1), Join(inner as of $3, TRUE, Scan(Orders), {versions}))"
    assert shape(query) == f"Project([$0], Aggregate([], [SUM(*($0, $5))], {joined}))"


@pytest.mark.parametrize(("words", "kind"), [("JOIN", "inner"), ("LEFT JOIN", "left")])
def test_join_lateral_with_on(words: str, kind: str) -> None:
    query = bound(
        script(
            "SELECT o_amount, r_rate FROM Orders AS o",
            words,
            "LATERAL TABLE (Rates(o.o_time)) AS r ON r.r_currency = o.o_currency",
        ),
        RATES,
    )
    joined = f"Join({kind} as of $2, =($4, $1), Scan(Orders), {VERSIONS})"
    assert shape(query) == f"Project([$0, $5], {joined})"
    assert query.fields[1].type.nullable


def test_functions_see_all_tables_to_their_left() -> None:
    query = bound(
        "SELECT o_amount FROM Orders AS o, LATERAL TABLE (Rates(o.o_time)) AS r (c, x, t, p),"
        " LATERAL TABLE (Rates(r.t)) AS q WHERE x = r_rate",
        RATES,
    )
    assert isinstance(query.input, Filter)
    assert text(query.input.condition) == "=($5, $9)"
    outer = query.input.input
    assert isinstance(outer, Join)
    assert text(outer.as_of) == "$6"


def test_a_function_over_a_view_filters_before_versions() -> None:
    query = bound(
        "SELECT o_amount FROM Orders, LATERAL TABLE (Rates(o_time)) WHERE r_currency = o_currency",
        "CREATE VIEW Good AS SELECT * FROM RatesHistory WHERE r_rate > 110;",
        RATES.replace("RatesHistory", "Good"),
    )
    assert isinstance(query.input, Filter)
    joined = query.input.input
    assert isinstance(joined, Join)
    assert isinstance(joined.right, Deduplicate)
    inside = "Project([$0, $1, $2, $3], Filter(>($1, 110), Scan(RatesHistory)))"
    assert shape(joined.right.input) == inside


@pytest.mark.parametrize(
    ("statement", "says"),
    [
        (RATES.replace("RatesHistory", "RatesHistry"), "did you mean 'RatesHistory'?"),
        (RATES.replace("r_time", "r_rate"), "r_rate is no time attribute of RatesHistory"),
        (RATES.replace("r_time", "r_tim"), "did you mean 'r_time'?"),
        (RATES.replace("(r_currency)", "(currency)"), "no column currency in RatesHistory"),
        (RATES.replace("Rates FOR", "Orders FOR"), "Orders exists already"),
        (RATES + RATES, "Rates exists already"),
        (RATES.replace("TIME ATTRIBUTE", "TIME"), "expected ATTRIBUTE"),
    ],
)
def test_declaration_problem(statement: str, says: str) -> None:
    assert says in problem("SELECT o_amount FROM Orders", statement)


FROM_ORDERS = "SELECT o_amount FROM Orders AS o"


@pytest.mark.parametrize(
    ("query", "says"),
    [
        (f"{FROM_ORDERS}, LATERAL TABLE (Rate(o.o_time)) AS r", "did you mean 'Rates'?"),
        (f"{FROM_ORDERS}, LATERAL TABLE (Rates()) AS r", "Rates takes one time attribute"),
        (f"{FROM_ORDERS}, LATERAL TABLE (Rates(o.o_tim)) AS r", "no column o_tim"),
        (
            f"{FROM_ORDERS} RIGHT JOIN LATERAL TABLE (Rates(o.o_time)) AS r ON TRUE",
            "RIGHT JOIN LATERAL is not supported",
        ),
        (f"{FROM_ORDERS} LEFT JOIN LATERAL TABLE (Rates(o.o_time)) AS r", "no ON condition"),
        ("SELECT r_rate FROM LATERAL TABLE (Rates(r_time)) AS r", "at the beginning of FROM"),
        (f"{FROM_ORDERS}, TABLE (TUMBLE(TABLE Orders)) AS r", "the table function TUMBLE"),
    ],
)
def test_lateral_problem(query: str, says: str) -> None:
    assert says in problem(query, RATES)


AT = "load_completed_time => CAST(TIMESTAMP '2020-01-01 00:00:10' AS TIMESTAMP_LTZ(3))"
USER_TIME = f"load_completed_condition => 'user_time', {AT}"


def with_snapshot(arguments: str) -> str:
    return script(
        "SELECT s.* FROM Orders AS o JOIN LATERAL TABLE(SNAPSHOT(",
        arguments,
        ")) AS s ON o.o_currency = s.r_currency",
    )


def snapshot(arguments: str, *statements: str) -> Join:
    query = bound(
        with_snapshot(arguments),
        *statements,
    )
    assert isinstance(query.input, Join)
    return query.input


def test_snapshot_by_a_time_of_the_user() -> None:
    join = snapshot(f"input => TABLE RatesHistory, {USER_TIME}")
    assert shape(join) == "Join(inner, =($1, $4), Scan(Orders), Scan(RatesHistory))"
    assert (join.snapshot, join.as_of) == (Snapshot(1_577_836_810_000), None)


def test_snapshot_time_is_a_wall_clock_of_the_local_zone() -> None:
    zone = "SET 'table.local-time-zone' = 'Europe/Berlin';"
    join = snapshot(f"input => TABLE RatesHistory, {USER_TIME}", zone)
    assert join.snapshot == Snapshot(1_577_833_210_000)
    offset = "SET 'table.local-time-zone' = 'GMT-08:30';"
    join = snapshot(f"input => TABLE RatesHistory, {USER_TIME}", offset)
    assert join.snapshot == Snapshot(1_577_867_410_000)


def test_snapshot_arguments() -> None:
    join = snapshot(
        "input => TABLE RatesHistory, load_completed_idle_timeout => INTERVAL '10' SECOND,"
        " state_ttl => INTERVAL '1' DAY"
    )
    assert join.snapshot == Snapshot(None, 10_000)
    assert join.ttl_ms == (None, 86_400_000)
    join = snapshot("TABLE RatesHistory, 'user_time', TO_TIMESTAMP_LTZ(5, 0)")
    assert join.snapshot == Snapshot(5_000)


def test_left_snapshot_and_the_short_spelling() -> None:
    query = bound(
        "SELECT o_amount FROM Orders LEFT JOIN LATERAL SNAPSHOT(input => TABLE RatesHistory) AS s"
        " ON o_currency = s.r_currency"
    )
    assert shape(query.input) == "Join(left, =($1, $4), Scan(Orders), Scan(RatesHistory))"


@pytest.mark.parametrize(
    ("arguments", "says"),
    [
        ("inputs => TABLE RatesHistory", "did you mean 'input'?"),
        ("input => TABLE RatesHistory, loaded => 1", "SNAPSHOT has no argument loaded"),
        ("input => TABLE RatesHistory, input => TABLE Orders", "input of SNAPSHOT is given twice"),
        ("TABLE RatesHistory, 'user_time', NULL, NULL, NULL, 7", "SNAPSHOT has no argument 6."),
        ("input => RatesHistory", "SNAPSHOT needs the argument input => TABLE name"),
        (USER_TIME, "SNAPSHOT needs the argument input => TABLE name"),
        ("input => TABLE Rates", "no table or view Rates"),
        (f"input => TABLE RatesHistory, {AT}", "needs load_completed_condition => 'user_time'"),
        (
            "input => TABLE RatesHistory, load_completed_condition => 'user_time'",
            "'user_time' needs load_completed_time",
        ),
        (
            "input => TABLE RatesHistory, load_completed_condition => 'soon'",
            "compile_time or user_time, found 'soon'",
        ),
        (
            "input => TABLE RatesHistory, load_completed_condition => 'user_time',"
            " load_completed_time => TIMESTAMP '2020-01-01 00:00:10'",
            "must be a constant TIMESTAMP_LTZ",
        ),
        (
            "input => TABLE RatesHistory, state_ttl => INTERVAL '1' YEAR",
            "state_ttl must be a constant INTERVAL DAY TO SECOND",
        ),
        (
            "input => TABLE RatesHistory, state_ttl => INTERVAL -'1' DAY",
            "state_ttl must not be negative",
        ),
    ],
)
def test_snapshot_problem(arguments: str, says: str) -> None:
    assert says in problem(with_snapshot(arguments))


@pytest.mark.parametrize(
    "from_",
    [
        "RatesHistory FOR SYSTEM_TIME AS OF r_time",
        "(RatesHistory FOR SYSTEM_TIME AS OF r_time)",
        "Orders JOIN (RatesHistory FOR SYSTEM_TIME AS OF o_time AS r) ON o_currency = r_currency",
        "Orders JOIN RatesHistory FOR SYSTEM_TIME AS OF o_time AS r JOIN Orders AS q"
        " ON r_currency = q.o_currency ON Orders.o_currency = r_currency",
    ],
)
def test_a_version_stands_behind_the_join_of_one_table(from_: str) -> None:
    found = problem(script("SELECT r_rate FROM", from_))
    assert "FOR SYSTEM_TIME AS OF here is not supported" in found


def test_as_of_processing_time_passes() -> None:
    query = bound(
        "SELECT o_amount FROM Orders AS o JOIN RatesHistory FOR SYSTEM_TIME AS OF o.o_proctime AS r"
        " ON o.o_currency = r.r_currency"
    )
    joined = "Join(inner as of $3, =($1, $4), Scan(Orders), Scan(RatesHistory))"
    assert shape(query.input) == joined
