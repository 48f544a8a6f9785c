"""Subqueries in WHERE become semi and anti joins; what cannot be one is refused by name."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Filter, Join, Project
from tests.unit.sql.shapes import shape, text
from tests.unit.sql.texts import script

# L is $0..$2, R behind it $3..$5; n and m are NOT NULL
TABLES = script(
    "CREATE TABLE L (a INT, b STRING, n INT NOT NULL) <append>;",
    "CREATE TABLE R (c INT, d STRING, m INT NOT NULL) <append>;",
)


def where(condition: str, tables: str = "L") -> str:
    """The plan of WHERE, without the select list."""
    query = bind_query(script(TABLES, "SELECT n FROM", tables, "WHERE", condition)).query
    assert isinstance(query, Project)
    return shape(query.input)


def refusal(condition: str) -> str:
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(TABLES, "SELECT n FROM L WHERE", condition))
    return caught.value.render()


NO_NULLS = "Join(anti, =($2, $5), Scan(L), Scan(R))"


@pytest.mark.parametrize(
    ("condition", "plan"),
    [
        ("a IN (SELECT c FROM R)", "Join(semi, =($0, $3), Scan(L), Scan(R))"),
        ("(a IN (SELECT c FROM R))", "Join(semi, =($0, $3), Scan(L), Scan(R))"),
        ("a + 1 IN (SELECT c FROM R)", "Join(semi, =(+($0, 1), $3), Scan(L), Scan(R))"),
        (
            "a IN (SELECT c FROM R WHERE d = 'x')",
            "Join(semi, =($0, $3), Scan(L), Filter(=($1, 'x'), Scan(R)))",
        ),
        (
            "(a, b) IN (SELECT c, d FROM R)",
            "Join(semi, AND(=($0, $3), =($1, $4)), Scan(L), Scan(R))",
        ),
        ("a IN (SELECT DISTINCT c FROM R)", "Join(semi, =($0, $3), Scan(L), Scan(R))"),
        ("EXISTS (SELECT 1 FROM R)", "Join(semi, TRUE, Scan(L), Scan(R))"),
        ("EXISTS (SELECT * FROM R WHERE a = c)", "Join(semi, =($0, $3), Scan(L), Scan(R))"),
        ("NOT EXISTS (SELECT c FROM R WHERE a = c)", "Join(anti, =($0, $3), Scan(L), Scan(R))"),
        # alone on the outer side: part of the condition
        ("EXISTS (SELECT 1 FROM R WHERE n > 2)", "Join(semi, >($2, 2), Scan(L), Scan(R))"),
        # conditions on the subquery alone stay inside
        (
            "EXISTS (SELECT 1 FROM R WHERE L.a = R.c AND m > 2 AND b < d)",
            "Join(semi, AND(=($0, $3), <($1, $4)), Scan(L), Filter(>($2, 2), Scan(R)))",
        ),
        ("n NOT IN (SELECT m FROM R)", NO_NULLS),
        ("NOT n IN (SELECT m FROM R)", NO_NULLS),
        (
            "a NOT IN (SELECT c FROM R)",
            "Join(anti, OR(=($0, $3), IS NULL($0), IS NULL($3)), Scan(L), Scan(R))",
        ),
        (
            "n NOT IN (SELECT c FROM R)",
            "Join(anti, OR(=($2, $3), IS NULL($3)), Scan(L), Scan(R))",
        ),
        (
            "a NOT IN (SELECT m FROM R)",
            "Join(anti, OR(=($0, $5), IS NULL($0)), Scan(L), Scan(R))",
        ),
        # the correlation stays a conjunct of its own
        (
            "a NOT IN (SELECT m FROM R WHERE b = d)",
            "Join(anti, AND(=($1, $4), OR(=($0, $5), IS NULL($0))), Scan(L), Scan(R))",
        ),
        (
            "(n, a) NOT IN (SELECT m, m FROM R)",
            "Join(anti, AND(=($2, $5), OR(=($0, $5), IS NULL($0))), Scan(L), Scan(R))",
        ),
        # an expression of the outer query in the subquery's select list
        ("a IN (SELECT c + n FROM R)", "Join(semi, =($0, +($3, $2)), Scan(L), Scan(R))"),
        (
            "n > 1 AND a IN (SELECT c FROM R) AND n < 9",
            "Join(semi, =($0, $3), Filter(AND(>($2, 1), <($2, 9)), Scan(L)), Scan(R))",
        ),
    ],
)
def test_predicate_is_a_join(condition: str, plan: str) -> None:
    assert where(condition) == plan


@pytest.mark.parametrize(
    ("condition", "plan"),
    [
        (
            "NOT (b LIKE 'x' OR NOT EXISTS (SELECT 1 FROM R))",
            "Join(semi, TRUE, Filter(NOT(LIKE($1, 'x')), Scan(L)), Scan(R))",
        ),
        (
            "NOT (n > 1 OR a IN (SELECT c FROM R) OR b IS NULL)",
            "Join(anti, OR(=($0, $3), IS NULL($0), IS NULL($3)),"
            " Filter(AND(NOT(>($2, 1)), IS NOT NULL($1)), Scan(L)), Scan(R))",
        ),
        ("NOT (NOT (EXISTS (SELECT 1 FROM R)))", "Join(semi, TRUE, Scan(L), Scan(R))"),
        ("NOT (n NOT IN (SELECT m FROM R))", "Join(semi, =($2, $5), Scan(L), Scan(R))"),
    ],
)
def test_negation_is_moved_inward(condition: str, plan: str) -> None:
    assert where(condition) == plan


@pytest.mark.parametrize("asked", ["> 0", ">= 1", "<> 0", "> 0.9", ">= 0.1"])
def test_counting_some_row_is_exists(asked: str) -> None:
    plan = "Join(semi, =($0, $3), Scan(L), Scan(R))"
    assert where(script("(SELECT COUNT(*) FROM R WHERE a = c)", asked)) == plan


@pytest.mark.parametrize("asked", ["0 =", "1 >", "0 >=", "0.5 >"])
def test_counting_no_row_is_not_exists(asked: str) -> None:
    plan = "Join(anti, =($0, $3), Scan(L), Scan(R))"
    assert where(script(asked, "(SELECT COUNT(*) FROM R WHERE a = c)")) == plan


def test_counting_values_leaves_out_nulls() -> None:
    plan = "Join(semi, AND(=($0, $3), IS NOT NULL($4)), Scan(L), Scan(R))"
    assert where("(SELECT COUNT(d) FROM R WHERE a = c) > 0") == plan
    plan = "Join(anti, =($0, $3), Scan(L), Scan(R))"
    assert where("(SELECT COUNT(m) FROM R WHERE a = c) = 0") == plan


@pytest.mark.parametrize(
    ("condition", "same"),
    [
        ("a = ANY (SELECT c FROM R)", "a IN (SELECT c FROM R)"),
        ("a = SOME (SELECT c FROM R)", "a IN (SELECT c FROM R)"),
        ("a <> ALL (SELECT c FROM R)", "a NOT IN (SELECT c FROM R)"),
        ("NOT a = ANY (SELECT c FROM R)", "a NOT IN (SELECT c FROM R)"),
        ("ROW(a, b) IN (SELECT c, d FROM R)", "(a, b) IN (SELECT c, d FROM R)"),
        ("NOT EXISTS ((SELECT 1 FROM R))", "NOT EXISTS (SELECT 1 FROM R)"),
        ("a IN ((SELECT c FROM R))", "a IN (SELECT c FROM R)"),
    ],
)
def test_other_spellings(condition: str, same: str) -> None:
    assert where(condition) == where(same)


@pytest.mark.parametrize(
    ("condition", "plan"),
    [
        ("a < ANY (SELECT c FROM R)", "semi, <($0, $3)"),
        ("a <> SOME (SELECT c FROM R WHERE d = b)", "semi, AND(=($4, $1), <>($0, $3))"),
        ("a > ALL (SELECT c FROM R)", "anti, OR(<=($0, $3), IS NULL($0), IS NULL($3))"),
        ("NOT a >= ANY (SELECT c FROM R)", "anti, OR(>=($0, $3), IS NULL($0), IS NULL($3))"),
        ("NOT a = ALL (SELECT c FROM R)", "semi, <>($0, $3)"),
    ],
)
def test_comparisons_with_any_and_all(condition: str, plan: str) -> None:
    assert where(condition) == f"Join({plan}, Scan(L), Scan(R))"


def test_one_value_of_an_aggregate_is_compared_in_a_semi_join() -> None:
    total = "Aggregate([], [MAX($0)], Scan(R))"
    assert where("a > (SELECT MAX(c) FROM R)") == f"Join(semi, >($0, $3), Scan(L), {total})"
    plan = f"Join(semi, NOT(=($3, $0)), Scan(L), {total})"
    assert where("NOT (SELECT MAX(c) FROM R) = a") == plan


def test_an_aggregate_that_stands_alone_is_a_subquery_like_any_other() -> None:
    grouped = "Filter(>($1, 1), Aggregate([$0], [COUNT(*)], Scan(R)))"
    plan = where("a IN (SELECT c FROM R GROUP BY c HAVING COUNT(*) > 1)")
    assert plan == f"Join(semi, =($0, $3), Scan(L), {grouped})"


# groups by d, which is the outer query's b
def by_key(call: str) -> str:
    return f"Aggregate([$1], [{call}], Scan(R))"


@pytest.mark.parametrize(
    ("condition", "plan"),
    [
        (
            "a IN (SELECT SUM(c) FROM R WHERE d = b)",
            f"Join(semi, AND(=($3, $1), =($0, $4)), Scan(L), {by_key('SUM($0)')})",
        ),
        (
            "a IN (SELECT MAX(c) + 1 FROM R WHERE b = d)",
            f"Join(semi, AND(=($3, $1), =($0, +($4, 1))), Scan(L), {by_key('MAX($0)')})",
        ),
        (
            "a > (SELECT MAX(c) FROM R WHERE d = b)",
            f"Join(semi, AND(=($3, $1), >($0, $4)), Scan(L), {by_key('MAX($0)')})",
        ),
        (
            "NOT a > (SELECT MAX(c) FROM R WHERE d = b)",
            f"Join(semi, AND(=($3, $1), NOT(>($0, $4))), Scan(L), {by_key('MAX($0)')})",
        ),
        # a count is 0 where there is no group
        (
            "(SELECT COUNT(*) FROM R WHERE d = b) > 1",
            f"Join(semi, AND(=($3, $1), >($4, 1)), Scan(L), {by_key('COUNT(*)')})",
        ),
        (
            "(SELECT COUNT(*) FROM R WHERE d = b) < 3",
            f"Join(anti, AND(=($3, $1), NOT(<($4, 3))), Scan(L), {by_key('COUNT(*)')})",
        ),
        (
            "NOT (SELECT COUNT(*) FROM R WHERE d = b) > 1",
            f"Join(anti, AND(=($3, $1), >($4, 1)), Scan(L), {by_key('COUNT(*)')})",
        ),
        (
            "NOT (SELECT COUNT(*) FROM R WHERE d = b) < 3",
            f"Join(semi, AND(=($3, $1), NOT(<($4, 3))), Scan(L), {by_key('COUNT(*)')})",
        ),
        # with GROUP BY there is no row without a group
        (
            "n NOT IN (SELECT COUNT(*) FROM R WHERE d = b GROUP BY m)",
            "Join(anti, AND(=($4, $1), =(CAST($2 AS BIGINT NOT NULL), $5)), Scan(L),"
            " Aggregate([$2, $1], [COUNT(*)], Scan(R)))",
        ),
        (
            "NOT EXISTS (SELECT d FROM R WHERE d = b AND m > 1 GROUP BY d HAVING SUM(c) > 1)",
            "Join(anti, =($3, $1), Scan(L), Filter(>($1, 1),"
            " Aggregate([$1], [SUM($0)], Filter(>($2, 1), Scan(R)))))",
        ),
    ],
)
def test_correlated_aggregates_are_grouped_by_what_they_are_correlated_by(
    condition: str, plan: str
) -> None:
    assert where(condition) == plan


def test_several_predicates_are_joins_one_over_the_other() -> None:
    inner = "Join(semi, =($0, $3), Scan(L), Scan(R))"
    plan = where("a IN (SELECT c FROM R) AND NOT EXISTS (SELECT 1 FROM R AS x WHERE x.m = n)")
    assert plan == f"Join(anti, =($5, $2), {inner}, Scan(R))"


def test_subqueries_over_joins_and_of_joins() -> None:
    both = "Filter(=($2, $5), Join(inner, TRUE, Scan(R), Scan(R)))"
    plan = where("a IN (SELECT x.c FROM R x, R y WHERE x.m = y.m AND y.d = b)")
    assert plan == f"Join(semi, AND(=($7, $1), =($0, $3)), Scan(L), {both})"
    left = "Filter(=($0, $3), Join(inner, TRUE, Scan(L), Scan(R)))"
    plan = where("L.a = r.c AND r.m IN (SELECT m FROM R)", "L, R AS r")
    assert plan == f"Join(semi, =($5, $8), {left}, Scan(R))"


def test_a_subquery_of_a_subquery() -> None:
    plan = where("EXISTS (SELECT 1 FROM R WHERE c = a AND m IN (SELECT n FROM L AS k))")
    inner = "Join(semi, =($2, $5), Scan(R), Scan(L))"
    assert plan == f"Join(semi, =($3, $0), Scan(L), {inner})"


def test_the_nearest_column_of_a_name_counts() -> None:
    plan = where("EXISTS (SELECT 1 FROM L AS k WHERE k.a = L.b OR a = 1)".replace("L.b", "L.a"))
    assert plan == "Join(semi, OR(=($3, $0), =($3, 1)), Scan(L), Scan(L))"


def test_rows_keep_the_left_fields_alone() -> None:
    query = bind_query(script(TABLES, "SELECT * FROM L WHERE a IN (SELECT c FROM R)")).query
    assert [f.name for f in query.fields] == ["a", "b", "n"]


def test_types_meet_as_in_any_comparison() -> None:
    query = bind_query(
        script(
            TABLES,
            "CREATE TABLE W (w BIGINT) <append>; SELECT a FROM L WHERE a IN (SELECT w FROM W)",
        )
    ).query
    assert isinstance(query, Project)
    assert isinstance(query.input, Join)
    assert text(query.input.condition) == "=(CAST($0 AS BIGINT), $3)"


def test_a_condition_without_subquery_stays_as_it_is_written() -> None:
    condition = "NOT (a = 1 AND (n = 2 OR n = 3))"
    query = bind_query(script(TABLES, "SELECT a FROM L WHERE", condition)).query
    assert isinstance(query, Project)
    assert isinstance(query.input, Filter)
    assert text(query.input.condition) == "NOT(AND(=($0, 1), OR(=($2, 2), =($2, 3))))"


@pytest.mark.parametrize(
    ("condition", "says"),
    [
        ("a = 1 OR a > ALL (SELECT c FROM R)", "a scalar subquery of several rows"),
        ("a = 1 OR EXISTS (SELECT SUM(c) FROM R WHERE d = b)", "IN with a correlated aggregate"),
        ("1 + (SELECT c FROM R) > 2", "a scalar subquery of several rows"),
        ("1 + (SELECT MAX(c), MAX(m) FROM R) > 2", "must have one column, found 2"),
        ("(a, n) IN (SELECT c, m FROM R) IS TRUE", "with columns that may be NULL"),
        ("(a, b) IN (SELECT c FROM R) IS TRUE", "IN compares 2 values with 1 columns"),
        (
            "EXISTS (SELECT 1 FROM R WHERE c = 1 OR b IN (SELECT d FROM R AS s))",
            "a column of the outer query in a subquery of a subquery",
        ),
        (
            "a IN (SELECT SUM(c) FROM R WHERE d > b)",
            "a correlated aggregate with another condition",
        ),
        ("a IN (SELECT SUM(c) + n FROM R WHERE d = b)", "n of the outer query in a correlated"),
        ("a IN (SELECT COALESCE(SUM(c), 0) FROM R WHERE d = b)", "IN with a correlated aggregate"),
        ("a IN (SELECT d FROM R WHERE d = b HAVING SUM(c) > 1)", "d is neither in GROUP BY"),
        ("a IN (SELECT SUM(c) FROM R WHERE d = b HAVING SUM(c) > 1)", "aggregate with HAVING"),
        ("a NOT IN (SELECT SUM(c) FROM R WHERE d = b)", "NOT IN with a correlated aggregate"),
        ("a IN (SELECT COUNT(*) FROM R WHERE d = b)", "IN with a correlated aggregate"),
        ("EXISTS (SELECT SUM(c) FROM R WHERE d = b)", "EXISTS with a correlated aggregate"),
        ("n = (SELECT COUNT(*) FROM R WHERE d = b)", "= with a correlated aggregate"),
        ("a = (SELECT c FROM R)", "a scalar subquery of several rows"),
        (
            "a IN (SELECT c FROM R UNION ALL SELECT n FROM R)",
            "n of the outer query in a set operation",
        ),
        (
            "EXISTS (SELECT 1 FROM (SELECT c FROM R WHERE d = b) AS x)",
            "b of the outer query in FROM",
        ),
        ("EXISTS (SELECT 1 FROM R JOIN R AS s ON s.d = b)", "b of the outer query in FROM"),
        (
            "EXISTS (SELECT 1 FROM R WHERE EXISTS (SELECT 1 FROM R AS s WHERE s.d = b))",
            "b of the outer query in a subquery of a subquery",
        ),
        (
            "EXISTS (SELECT 1 FROM R WHERE b IN (SELECT d FROM R AS s))",
            "a column of the outer query in a subquery of a subquery",
        ),
        ("(a, b) IN (SELECT c FROM R)", "IN compares 2 values with 1 columns"),
        ("a IN (SELECT d FROM R)", "cannot compare INT = STRING"),
        ("a IN (SELECT x FROM R)", "no column x"),
        ("EXISTS (SELECT x FROM R)", "no column x"),
    ],
)
def test_refusal(condition: str, says: str) -> None:
    assert says in refusal(condition)


def test_every_problem_of_a_where_is_named() -> None:
    found = refusal("x = 1 AND a IN (SELECT y FROM R WHERE z = 1) AND b IN (SELECT d FROM Q)")
    assert all(
        f"no {what}" in found for what in ("column x", "column y", "column z", "table or view Q")
    )


@pytest.mark.parametrize("predicate", ["EXISTS (SELECT 1 FROM R)", "a IN (SELECT c FROM R)"])
def test_a_join_stands_where_its_predicate_does(predicate: str) -> None:
    query = bind_query(script(TABLES, "SELECT n FROM L WHERE n > 1 AND", predicate)).query
    assert isinstance(query, Project)
    assert isinstance(query.input, Join)
    assert (query.input.position.line, query.input.position.column) == (4, 1)
