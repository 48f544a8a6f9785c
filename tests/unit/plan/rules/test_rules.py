"""Where predicates and columns end up; that results stay the same is tested next door."""

from collections.abc import Callable

import pytest

from spark_jobs.plan.text.flink import draw, flink_physical_tree
from spark_jobs.plan.text.flink_expr import by_name, expr_text, field_names, joined_names
from spark_jobs.sql.logical import Aggregate, Filter, Join, Logical, Project, Scan
from spark_jobs.sql.types.expr import Expr, and_all, conjuncts

Optimized = Callable[[str], Logical]


def shown(condition: Expr | None, node: Logical) -> str:
    """Conjuncts in a stable order."""
    names = joined_names(node) if isinstance(node, Join) else field_names(node)
    texts = [expr_text(c, by_name(names)) for c in conjuncts(condition)]
    return " & ".join(sorted(texts))


def below(node: Logical) -> str:
    """The filter at a join input."""
    while isinstance(node, Project):
        node = node.input
    return shown(node.condition, node) if isinstance(node, Filter) else ""


def join_of(root: Logical) -> Join:
    while isinstance(root, (Project, Filter)):
        root = root.input
    assert isinstance(root, Join)
    return root


def places(root: Logical) -> dict[str, str]:
    """left, right: at the inputs; on: in the join; where: above it."""
    assert isinstance(root, Project)
    above, join = root.input, join_of(root)
    found = {
        "left": below(join.left),
        "right": below(join.right),
        "on": shown(join.condition, join),
        "where": shown(above.condition, above) if isinstance(above, Filter) else "",
    }
    return {place: text for place, text in found.items() if text}


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a, b WHERE a2 = b2 AND a1 < 2", {"on": "=(a2, b2)", "left": "<(a1, 2)"}),
        ("a, b WHERE a1 < b1", {"on": "<(a1, b1)"}),
        ("a JOIN b ON a2 = b2 AND a1 < 2", {"on": "=(a2, b2)", "left": "<(a1, 2)"}),
        ("a JOIN b ON a2 = b2 WHERE b1 < 2", {"on": "=(a2, b2)", "right": "<(b1, 2)"}),
        ("a LEFT JOIN b ON a2 = b2 AND a1 < 2", {"on": "<(a1, 2) & =(a2, b2)"}),
        ("a LEFT JOIN b ON a2 = b2 AND b1 < 2", {"on": "=(a2, b2)", "right": "<(b1, 2)"}),
        ("a LEFT JOIN b ON a2 = b2 WHERE a1 < 2", {"on": "=(a2, b2)", "left": "<(a1, 2)"}),
        ("a LEFT JOIN b ON a2 = b2 IS TRUE", {"on": "=(a2, b2)"}),
        ("a LEFT JOIN b ON a2 = b2 IS NOT FALSE", {"on": "IS NOT FALSE(=(a2, b2))"}),
        (
            "a, b WHERE (a2 = b2 AND a1 < 2 IS TRUE) IS TRUE",
            {"on": "=(a2, b2)", "left": "<(a1, 2)"},
        ),
        (
            "a LEFT JOIN b ON a2 = b2 WHERE b1 IS NULL",
            {"on": "=(a2, b2)", "where": "IS NULL(b1)"},
        ),
        (
            "a LEFT JOIN b ON a2 = b2 WHERE a1 > b1 OR b1 IS NULL",
            {"on": "=(a2, b2)", "where": "OR(>(a1, b1), IS NULL(b1))"},
        ),
    ],
)
def test_predicates_go_where_they_stay_correct(
    sql: str, expected: dict[str, str], optimized: Optimized
) -> None:
    assert places(optimized(" ".join(("SELECT a3, b3 FROM", sql)))) == expected


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        ("a RIGHT JOIN b ON a2 = b2 AND a1 < 2", {"on": "=(a2, b2)", "left": "<(a1, 2)"}),
        ("a RIGHT JOIN b ON a2 = b2 AND b1 < 2", {"on": "<(b1, 2) & =(a2, b2)"}),
        ("a RIGHT JOIN b ON a2 = b2 WHERE b1 < 2", {"on": "=(a2, b2)", "right": "<(b1, 2)"}),
        (
            "a FULL JOIN b ON a2 = b2 AND a1 < 2 AND b1 < 2",
            {"on": "<(a1, 2) & <(b1, 2) & =(a2, b2)"},
        ),
        (
            "a FULL JOIN b ON a2 = b2 WHERE a1 IS NULL",
            {"on": "=(a2, b2)", "where": "IS NULL(a1)"},
        ),
        (
            "a WHERE a1 < 2 AND EXISTS (SELECT 1 FROM b WHERE a2 = b2 AND a3 = 'x' AND b1 < 2)",
            {"on": "=(a2, b2)", "left": "<(a1, 2) & =(a3, 'x')", "right": "<(b1, 2)"},
        ),
        (
            "a WHERE a1 < 2 AND NOT EXISTS (SELECT 1 FROM b WHERE a2 = b2 AND a3 = 'x' AND b1 < 2)",
            {"on": "=(a2, b2) & =(a3, 'x')", "left": "<(a1, 2)", "right": "<(b1, 2)"},
        ),
    ],
)
def test_each_kind_lets_go_what_it_may(
    sql: str, expected: dict[str, str], optimized: Optimized
) -> None:
    select = "a3" if "EXISTS" in sql else "a3, b3"
    assert places(optimized(" ".join(("SELECT", select, "FROM", sql)))) == expected


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("b1 < 3", "right"),
        ("b1 BETWEEN 1 AND 3", "right"),
        ("a1 < 3", "left"),
        ("a1 < b1", "inner"),
        ("a1 < 3 AND b3 IS NOT NULL", "inner"),
        ("a1 < 3 OR b1 < 3", "full"),
        ("a1 IS NULL", "full"),
    ],
)
def test_full_join_pads_what_may_show(where: str, kind: str, optimized: Optimized) -> None:
    text = " ".join(("SELECT a3, b3 FROM a FULL JOIN b ON a2 = b2 WHERE", where))
    assert join_of(optimized(text)).kind == kind


@pytest.mark.parametrize(
    "condition", ["TRUE", "1 = 1", "NOT FALSE", "2 > 1 AND TRUE", "1 <> 2", "NOT 1 = 2"]
)
def test_what_always_holds_is_not_asked(condition: str, optimized: Optimized) -> None:
    text = " ".join(("SELECT a3, b3 FROM a JOIN b ON", condition, "WHERE", condition))
    assert places(optimized(text)) == {}


def test_what_never_holds_is_asked(optimized: Optimized) -> None:
    assert places(optimized("SELECT a3, b3 FROM a LEFT JOIN b ON 1 = 2")) == {"on": "false"}


def test_predicates_go_through_unions_and_groups(optimized: Optimized) -> None:
    root = optimized(
        "SELECT k, n FROM (SELECT a1 AS k, COUNT(*) AS n FROM"
        " (SELECT a1, a3 FROM a UNION ALL SELECT b1, b3 FROM b) AS u GROUP BY a1) AS g"
        " WHERE k > 5 AND n > 1"
    )
    assert draw(flink_physical_tree(root)) == [
        "Calc(select=[a1 AS k, EXPR$1 AS n], where=[>(EXPR$1, 1)])",
        "+- GroupAggregate(groupBy=[a1], select=[a1, COUNT(*) AS EXPR$1])",
        "   +- Exchange(distribution=[hash[a1]])",
        "      +- Union(all=[true], union=[a1])",
        "         :- Calc(select=[a1], where=[>(a1, 5)])",
        "         :  +- TableSourceScan(table=[[a, source: [KafkaTableSource(a1, a2, a3)]]],"
        " fields=[a1, a2, a3])",
        "         +- Calc(select=[b1], where=[>(b1, 5)])",
        "            +- TableSourceScan(table=[[b, source: [KafkaTableSource(b1, b2, b3)]]],"
        " fields=[b1, b2, b3])",
    ]


def test_calls_that_nobody_reads_are_not_made(optimized: Optimized) -> None:
    root = optimized("SELECT k FROM (SELECT a1 AS k, MAX(a3) AS m FROM a GROUP BY a1) AS g")
    assert isinstance(root, Project)
    assert isinstance(root.input, Aggregate)
    assert root.input.calls == ()
    assert [f.name for f in root.input.input.fields] == ["a1"]


def test_group_of_all_rows_stays_one(optimized: Optimized) -> None:
    root = optimized("SELECT 1 AS one FROM (SELECT COUNT(*) AS n, MAX(a3) AS m FROM a) AS g")
    assert isinstance(root, Project)
    assert isinstance(root.input, Aggregate)
    assert len(root.input.calls) == 1


@pytest.mark.parametrize(
    ("where", "kind"),
    [
        ("b1 < 3", "inner"),
        ("a1 > b1 + 1", "inner"),
        ("b3 IS NOT NULL", "inner"),
        ("b1 = 1 OR b1 = a1", "inner"),
        ("b1 = 1 OR a1 = 2", "left"),
        ("COALESCE(b1, 1) = 1", "left"),
        ("b3 IS NULL", "left"),
        ("a1 < 3", "left"),
    ],
)
def test_left_join_whose_padding_is_filtered_out_is_inner(
    where: str, kind: str, optimized: Optimized
) -> None:
    text = " ".join(("SELECT a3, b3 FROM a LEFT JOIN b ON a2 = b2 WHERE", where))
    assert join_of(optimized(text)).kind == kind


@pytest.mark.parametrize(
    ("sql", "left", "right"),
    [
        ("a JOIN b ON a1 = b1 WHERE a1 < 4", "<(a1, 4)", "<(b1, 4)"),
        ("a JOIN b ON a1 = b1 AND b1 < 4", "<(a1, 4)", "<(b1, 4)"),
        ("a LEFT JOIN b ON a1 = b1 WHERE a1 < 4", "<(a1, 4)", "<(b1, 4)"),
        ("a LEFT JOIN b ON a1 = b1 AND b1 < 4", "", "<(b1, 4)"),
        ("a JOIN b ON a1 = b1 WHERE a1 < 4 AND b1 < 4", "<(a1, 4)", "<(b1, 4)"),
    ],
)
def test_what_holds_for_a_key_holds_for_its_equal(
    sql: str, left: str, right: str, optimized: Optimized
) -> None:
    found = places(optimized(" ".join(("SELECT a3, b3 FROM", sql))))
    assert (found.get("left", ""), found.get("right", "")) == (left, right)


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "JOIN rates FOR SYSTEM_TIME AS OF at ON currency = code AND id < 5 AND rate > 1",
            {"left": "<(id, 5)", "on": "=(currency, code) & >(rate, 1)"},
        ),
        (
            "LEFT JOIN rates FOR SYSTEM_TIME AS OF at ON currency = code AND id < 5 AND rate > 1",
            {"on": "<(id, 5) & =(currency, code) & >(rate, 1)"},
        ),
        (
            "JOIN rates FOR SYSTEM_TIME AS OF at ON currency = code"
            " WHERE rate > 1 AND id < 5 AND land = country",
            {
                "left": "<(id, 5)",
                "on": "=(currency, code)",
                "where": "=(land, country) & >(rate, 1)",
            },
        ),
        (
            "JOIN rates FOR SYSTEM_TIME AS OF at ON currency = code AND currency = 'EUR'",
            {"left": "=(currency, 'EUR')", "right": "=(code, 'EUR')", "on": "=(currency, code)"},
        ),
        # land may change: a row that fails would delete a version that is still looked up
        (
            "JOIN rates FOR SYSTEM_TIME AS OF at ON currency = code AND country = land"
            " AND country = 'DE'",
            {"left": "=(country, 'DE')", "on": "=(country, land) & =(currency, code)"},
        ),
        # the key alone may be compared in WHERE as well: the version is the same
        (
            "JOIN rates FOR SYSTEM_TIME AS OF at ON TRUE WHERE currency = code AND rate > 1",
            {"on": "=(currency, code)", "where": ">(rate, 1)"},
        ),
    ],
)
def test_no_predicate_removes_versions(
    sql: str, expected: dict[str, str], optimized: Optimized
) -> None:
    sql = sql.replace("AS OF at", "AS OF pay.at")
    assert places(optimized(" ".join(("SELECT id, rate FROM pay", sql)))) == expected


@pytest.mark.parametrize(
    "condition",
    [
        "a1 = b1 OR (a1 IS NULL AND b1 IS NULL)",
        "(b1 IS NULL AND a1 IS NULL) OR a1 = b1",
        "a1 IS NOT DISTINCT FROM b1",
    ],
)
def test_null_safe_equality_is_recognised(condition: str, optimized: Optimized) -> None:
    found = places(optimized(" ".join(("SELECT a3, b3 FROM a LEFT JOIN b ON", condition))))
    assert found == {"on": "IS NOT DISTINCT FROM(a1, b1)"}


@pytest.mark.parametrize(
    "condition",
    ["a1 = b1 OR (a1 IS NULL AND b2 IS NULL)", "a1 = b1 OR (a1 IS NULL OR b1 IS NULL)"],
)
def test_what_only_looks_null_safe_is_not(condition: str, optimized: Optimized) -> None:
    found = places(optimized(" ".join(("SELECT a3, b3 FROM a LEFT JOIN b ON", condition))))
    assert found["on"].startswith("OR(")


def input_names(root: Logical) -> tuple[list[str], list[str]]:
    join = join_of(root)
    return [f.name for f in join.left.fields], [f.name for f in join.right.fields]


def test_inputs_carry_what_is_read(optimized: Optimized) -> None:
    root = optimized("SELECT a3 FROM a JOIN b ON a1 = b1")
    assert input_names(root) == (["a1", "a3"], ["b1"])


def test_upsert_input_keeps_its_primary_key(optimized: Optimized) -> None:
    root = optimized("SELECT a3, name FROM a JOIN users ON a3 = city")
    assert input_names(root) == (["a3"], ["id", "name", "city"])


def test_version_side_keeps_key_and_time(optimized: Optimized) -> None:
    root = optimized(
        "SELECT rate FROM pay JOIN rates FOR SYSTEM_TIME AS OF pay.at ON currency = code"
    )
    assert input_names(root) == (["currency", "at"], ["code", "rate", "since"])


def test_projections_and_filters_melt(optimized: Optimized) -> None:
    root = optimized(
        "SELECT z + 1 AS w FROM (SELECT y * 2 AS z, x FROM"
        " (SELECT a1 + a2 AS y, a3 AS x FROM a WHERE a1 > 0) AS p WHERE y < 9) AS q WHERE x = 'k'"
    )
    assert isinstance(root, Project)
    assert isinstance(root.input, Filter)
    assert isinstance(root.input.input, Scan)
    assert [f.name for f in root.fields] == ["w"]
    assert len(conjuncts(root.input.condition)) == 3


def test_and_of_nothing() -> None:
    assert and_all(()) is None
