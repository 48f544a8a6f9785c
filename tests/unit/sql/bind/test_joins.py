"""FROM with joins inside joins, and the STATE_TTL hints of their tables."""

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.sql.bind.binder import bind_query
from spark_jobs.sql.logical import Join, Logical, Project, inputs_of
from tests.unit.sql.shapes import shape, text
from tests.unit.sql.texts import script

TABLES = script(
    "CREATE TABLE A (a INT, x INT NOT NULL) <append>;",
    "CREATE TABLE B (b INT, y INT NOT NULL) <append>;",
    "CREATE TABLE C (c INT, z INT NOT NULL) <append>;",
)


def plan(from_: str) -> str:
    (node,) = inputs_of(bind_query(script(TABLES, "SELECT 1 FROM", from_)).query)
    return shape(node)


def problem(query: str) -> str:
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(TABLES, query))
    return caught.value.render()


INNER = "Join(inner, =($0, $2), Scan(B), Scan(C))"


@pytest.mark.parametrize(
    ("from_", "expected"),
    [
        (
            "A JOIN B ON a = b LEFT JOIN C ON b = c",
            "Join(left, =($2, $4), Join(inner, =($0, $2), Scan(A), Scan(B)), Scan(C))",
        ),
        ("A JOIN (B JOIN C ON b = c) ON a = b", f"Join(inner, =($0, $2), Scan(A), {INNER})"),
        ("A LEFT JOIN B JOIN C ON b = c ON a = c", f"Join(left, =($0, $4), Scan(A), {INNER})"),
        ("(B JOIN C ON b = c) JOIN A ON a = b", f"Join(inner, =($4, $0), {INNER}, Scan(A))"),
        ("(A)", "Scan(A)"),
        (
            "A RIGHT JOIN (B FULL JOIN C ON b = c) ON a = B.b AND C.z = 1",
            "Join(right, AND(=($0, $2), =($5, 1)), Scan(A),"
            " Join(full, =($0, $2), Scan(B), Scan(C)))",
        ),
        (
            "A JOIN ((SELECT b FROM B) AS s JOIN C ON s.b = c) ON a = s.b",
            "Join(inner, =($0, $2), Scan(A),"
            " Join(inner, =($0, $1), Project([$0], Scan(B)), Scan(C)))",
        ),
        (
            "A JOIN B ON (a, x) = (b, y)",
            "Join(inner, AND(=($0, $2), =($1, $3)), Scan(A), Scan(B))",
        ),
        (
            "A JOIN B ON (a, x) <> (b, y)",
            "Join(inner, NOT(AND(=($0, $2), =($1, $3))), Scan(A), Scan(B))",
        ),
        ("A CROSS JOIN B", "Join(inner, TRUE, Scan(A), Scan(B))"),
        ("A NATURAL JOIN B", "Join(inner, TRUE, Scan(A), Scan(B))"),
        ("A NATURAL LEFT JOIN A AS r", "Join(left, AND(=($0, $2), =($1, $3)), Scan(A), Scan(A))"),
        ("A JOIN A AS r USING (x)", "Join(inner, =($1, $3), Scan(A), Scan(A))"),
        (
            "A JOIN A AS r USING (x, a) JOIN A AS s USING (a)",
            "Join(inner, =($0, $4), Join(inner, AND(=($1, $3), =($0, $2)), Scan(A), Scan(A)),"
            " Scan(A))",
        ),
    ],
)
def test_plan(from_: str, expected: str) -> None:
    assert plan(from_) == expected


def test_padding_reaches_the_fields_of_inner_joins() -> None:
    text = "SELECT x, y, z FROM A LEFT JOIN (B JOIN C ON b = c) ON a = b"
    assert [f.type.nullable for f in bind_query(script(TABLES, text)).query.fields] == [
        False,
        True,
        True,
    ]


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("SELECT * FROM A JOIN A AS r USING (x)", ["x: $1", "a: $0", "a0: $2"]),
        ("SELECT * FROM A RIGHT JOIN A AS r USING (x)", ["x: $3", "a: $0", "a0: $2"]),
        ("SELECT * FROM A FULL JOIN A AS r USING (x)", ["x: $4", "a: $0", "a0: $2"]),
        ("SELECT A.*, x FROM A JOIN A AS r USING (x)", ["a: $0", "x: $1", "x0: $1"]),
        ("SELECT A.x, r.x FROM A NATURAL JOIN A AS r", ["x: $1", "x0: $3"]),
        ("SELECT * FROM A NATURAL JOIN A AS r NATURAL JOIN A AS s", ["a: $0", "x: $1"]),
        (
            "SELECT * FROM A JOIN A AS r USING (x) JOIN A AS s USING (x)",
            ["x: $1", "a: $0", "a0: $2", "a1: $4"],
        ),
    ],
)
def test_common_columns_count_once(query: str, expected: list[str]) -> None:
    """Calcite's order: common columns first, then the rest of both sides."""
    found = bind_query(script(TABLES, query)).query
    assert isinstance(found, Project)
    named = zip(found.fields, found.exprs, strict=True)
    assert [f"{field.name}: {text(expr)}" for field, expr in named] == expected


def test_a_common_column_of_a_full_join_is_that_of_the_side_with_a_row() -> None:
    assert plan("A FULL JOIN A AS r USING (x)") == (
        "Project([$0, $1, $2, $3, COALESCE($1, $3)], Join(full, =($1, $3), Scan(A), Scan(A)))"
    )
    assert plan("A FULL JOIN A AS r USING (x) JOIN B ON x = b") == (
        "Join(inner, =($4, $5), Project([$0, $1, $2, $3, COALESCE($1, $3)],"
        " Join(full, =($1, $3), Scan(A), Scan(A))), Scan(B))"
    )


@pytest.mark.parametrize(
    ("from_", "says"),
    [
        ("A JOIN (B JOIN C ON b = c) AS s ON a = b", "not supported"),
        ("A JOIN (B JOIN C ON a = c) ON a = b", "no column a"),
        ("A JOIN B ON (a, x) < (b, y)", "< between lists of values is not supported"),
        ("A JOIN B ON (a, x) = (b, y, b)", "= between lists of values is not supported"),
        ("A JOIN B USING (a)", "no column a"),
        ("A JOIN A AS r ON TRUE JOIN A AS s USING (a)", "column a is in more than one table"),
        ("A JOIN A AS r USING (a) JOIN B ON x = b", "column x is in more than one table"),
        ("A LEFT ANTI JOIN B ON a = b", "LEFT ANTI JOIN is not supported"),
        ("A LEFT JOIN B ON a IN (SELECT c FROM C)", "IN (SELECT ...) is not supported"),
    ],
)
def test_problem(from_: str, says: str) -> None:
    assert says in problem(script("SELECT 1 FROM", from_))


def joins(node: Logical) -> list[Join]:
    """The outermost first."""
    below = [j for i in inputs_of(node) for j in joins(i)]
    return [node, *below] if isinstance(node, Join) else below


def ttl(query: str) -> list[tuple[int | None, int | None]]:
    """What every join of a query keeps, the outermost first."""
    return [j.ttl_ms for j in joins(bind_query(script(TABLES, query)).query)]


DAY = 86_400_000


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("STATE_TTL('A' = '1d', 'r' = '2 h')", (DAY, 7_200_000)),
        ("state_ttl(A = '1d')", (DAY, None)),
        ("STATE_TTL('r' = '10s')", (None, 10_000)),
        # inside one hint the last counts, of several the first
        ("STATE_TTL('A' = '1d', 'A' = '2d')", (2 * DAY, None)),
        ("STATE_TTL('A' = '1d'), STATE_TTL('A' = '2d', 'r' = '3d')", (DAY, 3 * DAY)),
        ("STATE_TTL('A' = '0s')", (0, None)),
    ],
)
def test_hints_reach_the_sides_of_a_join(
    hint: str, expected: tuple[int | None, int | None]
) -> None:
    assert ttl(script("SELECT /*+", hint, "*/ a FROM A LEFT JOIN B AS r ON a = b")) == [expected]


def test_hints_in_a_chain_hold_where_a_table_is_one_side() -> None:
    query = "SELECT /*+ STATE_TTL('A'='1d', 'C'='3d') */ a FROM A JOIN B ON a = b JOIN C ON a = c"
    assert ttl(query) == [(None, 3 * DAY), (DAY, None)]


def test_hints_reach_semi_joins_and_stay_in_their_block() -> None:
    semi = "SELECT /*+ STATE_TTL('A' = '1d') */ a FROM A WHERE a IN (SELECT b FROM B)"
    assert ttl(semi) == [(DAY, None)]
    nested = (
        "SELECT s.a FROM (SELECT /*+ STATE_TTL('A' = '1d') */ a FROM A JOIN B ON a = b) AS s"
        " JOIN C ON s.a = c"
    )
    assert ttl(nested) == [(None, None), (DAY, None)]


EARLY = "SELECT /*+ EARLY_FIRE({}) */ a FROM A LEFT JOIN B ON a = b"


@pytest.mark.parametrize(
    ("hint", "expected"),
    [
        ("EARLY_FIRE('delay' = '5s')", (5_000, None)),
        ("early_fire('time-mode' = 'ROWTIME', 'delay' = '1 min')", (60_000, "rowtime")),
        (
            "STATE_TTL('A' = '1d'), EARLY_FIRE('delay' = '5s', 'target' = 'INTERVAL_JOIN')",
            (5_000, None),
        ),
        ("EARLY_FIRE('delay' = '1s', 'delay' = '2s'), EARLY_FIRE('delay' = '3s')", (2_000, None)),
    ],
)
def test_early_fire_reaches_the_joins_of_its_block(
    hint: str, expected: tuple[int, str | None]
) -> None:
    inner = script("SELECT /*+", hint, "*/ a FROM A LEFT JOIN B ON a = b JOIN C ON a = c")
    query = script("SELECT s.a FROM (", inner, ") AS s LEFT JOIN B ON s.a = b")
    hints = [join.early_fire for join in joins(bind_query(script(TABLES, query)).query)]
    assert [h and (h.delay_ms, h.time_mode) for h in hints] == [None, expected, expected]


@pytest.mark.parametrize(
    ("query", "says"),
    [
        ("SELECT /*+ STATE_TTL('AA' = '1d') */ a FROM A JOIN B ON a = b", "did you mean 'A'?"),
        ("SELECT /*+ STATE_TTL('A' = '1d') */ a FROM A AS q JOIN B ON a = b", "FROM has q, B"),
        ("SELECT /*+ STATE_TTL('A' = 'x') */ a FROM A JOIN B ON a = b", "'x' is not a duration"),
        ("SELECT /*+ STATE_TTL('A' = '1d') */ a FROM A", "without a regular join is not supported"),
        ("SELECT /*+ STATE_TTL('A' = '1d') */ COUNT(*) FROM A", "for an aggregate is not"),
        ("SELECT /*+ STATE_TTL('A') */ a FROM A JOIN B ON a = b", "expected '=' in the hint"),
        ("SELECT /*+ STATE_TTL */ a FROM A JOIN B ON a = b", "expected '(' in the hint"),
        ("SELECT /*+ EARLY_FIRE('delay' = '5s') */ a FROM A", "EARLY_FIRE in a query without JOIN"),
        (EARLY.format("'delay' = '0s'"), "a delay is at least 1 ms"),
        (EARLY.format("'delay' = '1ns'"), "'1ns' is not a duration"),
        (EARLY.format("'delay' = '5s', 'timemode' = 'rowtime'"), "did you mean 'time-mode'?"),
        (EARLY.format("'delay' = '5s', 'x' = 'y'"), "its options are delay, time-mode, target"),
        (EARLY.format("'delay' = '5s', 'time-mode' = 'unknown'"), "'time-mode' = 'unknown'"),
        (EARLY.format("'delay' = '5s', 'target' = 'window_join'"), "the only target is"),
        (EARLY.format("'time-mode' = 'rowtime'"), "EARLY_FIRE has no 'delay'"),
        (EARLY.format("'5s'"), "EARLY_FIRE('delay' = '5 s')"),
        ("SELECT /*+ LOOKUP('table' = 'B') */ a FROM A", "the hint LOOKUP is not supported"),
        ("SELECT a FROM A /*+ OPTIONS('x' = 'y') */", "the hint /*+ OPTIONS"),
        ("SELECT a FROM (SELECT a FROM A /*+ OPTIONS('x' = 'y') */)", "the hint /*+ OPTIONS"),
        ("SELECT a /*+ STATE_TTL('A' = '1d') */ FROM A", "the hint /*+ STATE_TTL"),
    ],
)
def test_hint_problem(query: str, says: str) -> None:
    assert says in problem(query)


def test_a_hint_problem_stands_at_its_name() -> None:
    query = "SELECT /*+ STATE_TTL('AA' = '1d') */ a FROM A JOIN B ON a = b"
    with pytest.raises(SqlErrors) as caught:
        bind_query(script(TABLES, query))
    (error,) = caught.value.errors
    assert query[error.column - 1 :].startswith("AA"), error.render()
