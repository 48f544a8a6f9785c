"""Subqueries as values: each is a LEFT JOIN that adds one column and no row."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Filter, Join, Project
from tests.unit.sql.shapes import shape, text
from tests.unit.sql.texts import script

# L is $0..$2, R behind it; n and m are NOT NULL
TABLES = script(
    "CREATE TABLE L (a INT, b STRING, n INT NOT NULL) <append>;",
    "CREATE TABLE R (c INT, d STRING, m INT NOT NULL) <append>;",
)
C_KINDS = "Project([$0, True], Aggregate([$0], [], Project([$0], Scan(R))))"


def selected(item: str, rest: str = "") -> tuple[str, str]:
    """The expression of one item over L, and the rows that it is computed of."""
    query = bind_query(script(TABLES, "SELECT", item, "FROM L", rest)).query
    assert isinstance(query, Project)
    return text(query.exprs[0]), shape(query.input)


def where(condition: str) -> tuple[str, str]:
    """The condition of a WHERE over L, and the rows that it is a condition of."""
    query = bind_query(script(TABLES, "SELECT n FROM L WHERE", condition)).query
    assert isinstance(query, Project)
    assert isinstance(query.input, Filter)
    return text(query.input.condition), shape(query.input.input)


@pytest.mark.parametrize(
    ("item", "expr", "rows"),
    [
        (
            "(SELECT MAX(c) FROM R)",
            "$3",
            "Join(left, TRUE, Scan(L), Project([$0], Aggregate([], [MAX($0)], Scan(R))))",
        ),
        (
            "a + (SELECT MAX(c) FROM R WHERE d = b AND m > 1)",
            "+($0, $4)",
            "Join(left, =($3, $1), Scan(L), Project([$0, $1],"
            " Aggregate([$1], [MAX($0)], Filter(>($2, 1), Scan(R)))))",
        ),
        (  # no row is 0 rows
            "(SELECT COUNT(*) FROM R WHERE c = a)",
            "COALESCE($4, 0)",
            "Join(left, =($3, $0), Scan(L), Project([$0, $1],"
            " Aggregate([$0], [COUNT(*)], Scan(R))))",
        ),
        (
            "(SELECT COUNT(c) FROM R)",
            "COALESCE($3, 0)",
            "Join(left, TRUE, Scan(L), Project([$0], Aggregate([], [COUNT($0)], Scan(R))))",
        ),
        (
            "EXISTS (SELECT 1 FROM R)",
            ">($3, 0)",
            "Join(left, TRUE, Scan(L), Project([$0], Aggregate([], [COUNT(*)], Scan(R))))",
        ),
        (
            "EXISTS (SELECT 1 FROM R WHERE c = a)",
            "IS NOT NULL($4)",
            f"Join(left, =($3, $0), Scan(L), {C_KINDS})",
        ),
        (
            "n IN (SELECT m FROM R)",
            "IS NOT NULL($4)",
            "Join(left, =($3, $2), Scan(L),"
            " Project([$0, True], Aggregate([$0], [], Project([$2], Scan(R)))))",
        ),
        (  # NULL where nothing is equal, but something is NULL
            "a IN (SELECT c FROM R)",
            "CASE(IS NOT NULL($4), True, AND(>($5, 0), OR(IS NULL($0), <($6, $5))), None, False)",
            f"Join(left, TRUE, Join(left, =($3, $0), Scan(L), {C_KINDS}),"
            " Aggregate([], [COUNT(*), COUNT($0)], Scan(R)))",
        ),
        (
            "(SELECT MIN(c) FROM R) + (SELECT MAX(c) FROM R)",
            "+($3, $4)",
            "Join(left, TRUE, Join(left, TRUE, Scan(L),"
            " Project([$0], Aggregate([], [MIN($0)], Scan(R)))),"
            " Project([$0], Aggregate([], [MAX($0)], Scan(R))))",
        ),
    ],
)
def test_select_list(item: str, expr: str, rows: str) -> None:
    assert selected(item) == (expr, rows)


@pytest.mark.parametrize(
    ("condition", "expected", "rows"),
    [
        (
            "n = 1 OR a IN (SELECT c FROM R)",
            "OR(=($2, 1), IS NOT NULL($4))",
            f"Join(left, =($3, $0), Scan(L), {C_KINDS})",
        ),
        (
            "n = 1 OR a = ANY (SELECT c FROM R)",
            "OR(=($2, 1), IS NOT NULL($4))",
            f"Join(left, =($3, $0), Scan(L), {C_KINDS})",
        ),
        (
            "NOT (n = 1 AND EXISTS (SELECT 1 FROM R WHERE c = a))",
            "NOT(AND(=($2, 1), IS NOT NULL($4)))",
            f"Join(left, =($3, $0), Scan(L), {C_KINDS})",
        ),
        (  # below NOT, NULL is not FALSE
            "NOT (n = 1 OR NOT a IN (SELECT c FROM R)) OR n = 2",
            "OR(NOT(OR(=($2, 1), NOT(CASE(IS NOT NULL($4), True,"
            " AND(>($5, 0), OR(IS NULL($0), <($6, $5))), None, False)))), =($2, 2))",
            f"Join(left, TRUE, Join(left, =($3, $0), Scan(L), {C_KINDS}),"
            " Aggregate([], [COUNT(*), COUNT($0)], Scan(R)))",
        ),
        (
            "n > (SELECT MAX(c) FROM R) + 1",
            ">($2, +($3, 1))",
            "Join(left, TRUE, Scan(L), Project([$0], Aggregate([], [MAX($0)], Scan(R))))",
        ),
        (  # a constant is compared before the join
            "n = 1 OR 5 IN (SELECT m FROM R)",
            "OR(=($2, 1), >($3, 0))",
            "Join(left, TRUE, Scan(L),"
            " Project([$0], Aggregate([], [COUNT(*)], Filter(=($2, 5), Scan(R)))))",
        ),
    ],
)
def test_where(condition: str, expected: str, rows: str) -> None:
    assert where(condition) == (expected, rows)


GROUPS = "Aggregate([$0], [SUM($2)], Scan(L))"


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        (
            "SELECT a, SUM(n) + (SELECT MAX(c) FROM R) FROM L GROUP BY a",
            "Project([$0, +($1, $2)], Join(left, TRUE, "
            f"{GROUPS}, Project([$0], Aggregate([], [MAX($0)], Scan(R)))))",
        ),
        (  # correlated by a key, and by an aggregate
            "SELECT a FROM L GROUP BY a HAVING SUM(n) > (SELECT MAX(c) FROM R WHERE m = a)",
            "Project([$0], Filter(>($1, $3), Join(left, =($2, $0), "
            f"{GROUPS}, Project([$0, $1], Aggregate([$2], [MAX($0)], Scan(R))))))",
        ),
        (
            "SELECT a FROM L GROUP BY a HAVING SUM(n) IN (SELECT c FROM R) OR a = 1",
            "Project([$0], Filter(OR(IS NOT NULL($3), =($0, 1)), Join(left, =($2, $1), "
            f"{GROUPS}, {C_KINDS})))",
        ),
    ],
)
def test_beside_aggregates(query: str, expected: str) -> None:
    assert shape(bind_query(script(TABLES, query)).query) == expected


def test_of_groups_only_keys_and_aggregates_are_compared() -> None:
    query = "SELECT a FROM L GROUP BY a HAVING EXISTS (SELECT 1 FROM R WHERE d = b)"
    with pytest.raises(SqlErrors, match="b is neither in GROUP BY"):
        bind_query(script(TABLES, query))


def test_in_the_on_of_an_inner_join_they_are_conditions_of_where() -> None:
    query = "SELECT L.n FROM L JOIN R ON a = c AND b IN (SELECT d FROM R) AND n > 1"
    assert shape(bind_query(script(TABLES, query)).query) == (
        "Project([$2], Join(semi, =($1, $7), Join(inner, AND(=($0, $3), >($2, 1)), Scan(L),"
        " Scan(R)), Scan(R)))"
    )


def test_a_problem_inside_is_told_once() -> None:
    items = "a, (SELECT MAX(x) FROM R) + 1, a IN (SELECT c FROM Q)"
    where = "WHERE a = 1 OR a IN (SELECT y FROM R)"
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(TABLES, "SELECT", items, "FROM L", where))
    assert caught.value.codes == ("UNKNOWN_COLUMN", "UNKNOWN_TABLE", "UNKNOWN_COLUMN")


def test_added_columns_are_not_selected_by_a_star() -> None:
    query = bind_query(script(TABLES, "SELECT * FROM L WHERE a = 1 OR a IN (SELECT c FROM R)"))
    assert [field.name for field in query.query.fields] == ["a", "b", "n"]


def test_joins_of_where_stand_above_values_of_where() -> None:
    condition = "(a = 1 OR a IN (SELECT c FROM R)) AND EXISTS (SELECT 1 FROM R WHERE m = n)"
    query = bind_query(script(TABLES, "SELECT n FROM L WHERE", condition)).query
    assert isinstance(query, Project)
    assert isinstance(query.input, Join)
    assert query.input.kind == "semi"
    assert text(query.input.condition) == "=($7, $2)"
