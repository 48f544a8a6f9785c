"""Plans drawn as Flink draws them, per kind of node."""

from collections.abc import Callable

import pytest

from spark_jobs.plan.text.flink import draw, flink_logical_tree, flink_physical_tree, logical_tree
from spark_jobs.sql.bind.binder import Job
from spark_jobs.sql.logical import Logical

Jobs = Callable[[str], Job]
Optimized = Callable[[str], Logical]

LAST = (
    "SELECT id, currency FROM (SELECT *, ROW_NUMBER() OVER (PARTITION BY currency ORDER BY at DESC)"
    " AS rn FROM pay) AS x"
    " WHERE rn = 1"
)


def nodes(root: Logical) -> list[str]:
    """The physical nodes without exchanges, calcs and scans, top down."""
    lines = [line.lstrip(" :+-") for line in draw(flink_physical_tree(root))]
    return [line for line in lines if not line.startswith(("Exchange", "Calc", "TableSource"))]


@pytest.mark.parametrize(
    ("sql", "expected"),
    [
        (
            "SELECT a3, b3 FROM a RIGHT JOIN b ON a1 = b1",
            "Join(joinType=[RightOuterJoin], where=[=(a1, b1)], select=[a1, a3, b1, b3],"
            " leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey])",
        ),
        (
            "SELECT name FROM users FULL JOIN changes ON id = c1",
            "Join(joinType=[FullOuterJoin], where=[=(id, c1)], select=[id, name, c1],"
            " leftInputSpec=[JoinKeyContainsUniqueKey], rightInputSpec=[JoinKeyContainsUniqueKey])",
        ),
        (
            "SELECT a3 FROM a WHERE a1 IN (SELECT order_id FROM items)",
            "Join(joinType=[LeftSemiJoin], where=[=(a1, order_id)], select=[a1, a3],"
            " leftInputSpec=[NoUniqueKey], rightInputSpec=[HasUniqueKey])",
        ),
        (
            "SELECT a3 FROM a WHERE NOT EXISTS (SELECT 1 FROM b WHERE a1 = b1 AND a2 > b2)",
            "Join(joinType=[LeftAntiJoin], where=[AND(=(a1, b1), >(a2, b2))], select=[a1, a2, a3],"
            " leftInputSpec=[NoUniqueKey], rightInputSpec=[NoUniqueKey])",
        ),
        (
            "SELECT p.id FROM pay AS p LEFT JOIN (SELECT id AS rid, at AS rat FROM pay) AS r"
            " ON id = rid AND rat BETWEEN at AND at + INTERVAL '1' HOUR",
            "IntervalJoin(joinType=[LeftOuterJoin], windowBounds=[isRowTime=true,"
            " leftLowerBound=-3600000, leftUpperBound=0, leftTimeIndex=1, rightTimeIndex=1],"
            " where=[AND(=(id, rid), >=(rat, at), <=(rat, +(at, 3600000:INTERVAL SECOND)))],"
            " select=[id, at, rid, rat])",
        ),
        (
            "SELECT rate FROM pay JOIN rates FOR SYSTEM_TIME AS OF pay.at ON currency = code",
            "TemporalJoin(joinType=[InnerJoin], where=[AND(=(currency, code),"
            " __TEMPORAL_JOIN_CONDITION(at, since, __TEMPORAL_JOIN_CONDITION_PRIMARY_KEY(code),"
            " __TEMPORAL_JOIN_LEFT_KEY(currency), __TEMPORAL_JOIN_RIGHT_KEY(code)))],"
            " select=[currency, at, code, rate, since])",
        ),
        (
            LAST,
            "Deduplicate(keep=[LastRow], key=[currency], order=[ROWTIME])",
        ),
        (
            "SELECT a1, SUM(a2) AS s, COUNT(DISTINCT a3) AS n FROM a GROUP BY a1",
            "GroupAggregate(groupBy=[a1], select=[a1, SUM(a2) AS EXPR$1, COUNT(DISTINCT a3) AS"
            " EXPR$2])",
        ),
        (
            "SELECT COUNT(*) AS n, MAX(id) AS m FROM users",
            "GroupAggregate(select=[COUNT_RETRACT(*) AS EXPR$0, MAX_RETRACT(id) AS EXPR$1])",
        ),
        ("SELECT DISTINCT a3 FROM a", "GroupAggregate(groupBy=[a3], select=[a3])"),
        (
            "SELECT a1 FROM a UNION ALL SELECT b1 FROM b UNION ALL SELECT id FROM pay",
            "Union(all=[true], union=[a1])",
        ),
    ],
)
def test_physical_nodes(sql: str, expected: str, optimized: Optimized) -> None:
    found = [n for n in nodes(optimized(sql)) if not n.startswith("ChangelogNormalize")]
    assert found == [expected]


def test_upsert_rows_are_normalised_where_nobody_holds_the_old_one(optimized: Optimized) -> None:
    def normalised(sql: str) -> int:
        return sum(n.startswith("ChangelogNormalize") for n in nodes(optimized(sql)))

    assert normalised("SELECT name FROM users FULL JOIN changes ON id = c1") == 0
    assert normalised("SELECT name FROM users JOIN a ON name = a3") == 1
    assert normalised("SELECT COUNT(*) FROM users") == 1
    assert normalised("SELECT id FROM users UNION ALL SELECT user_id FROM items") == 2


def test_exchanges(optimized: Optimized) -> None:
    lines = draw(flink_physical_tree(optimized("SELECT COUNT(*) AS n FROM a, b WHERE a1 + 1 = b1")))
    assert [line.strip(" :+-") for line in lines if "Exchange" in line] == [
        "Exchange(distribution=[single])",
        "Exchange(distribution=[hash[+(a1, 1)]])",
        "Exchange(distribution=[hash[b1]])",
    ]


def test_query_as_it_was_bound(job: Jobs) -> None:
    union = " ".join((LAST, "UNION ALL SELECT a1, a3 FROM a"))
    query = " ".join(("SELECT MAX(id), currency FROM (", union, ") AS u GROUP BY currency"))
    insert = job(f"INSERT INTO retract_sink {query};").inserts[0]
    names = [line.lstrip(" :+-").partition("(")[0] for line in draw(logical_tree(insert))]
    assert names == [
        "LogicalSink",
        "LogicalProject",
        "LogicalAggregate",
        "LogicalUnion",
        "LogicalProject",
        "LogicalFilter",
        "LogicalProject",
        "LogicalProject",
        "LogicalWatermarkAssigner",
        "LogicalTableScan",
        "LogicalProject",
        "LogicalTableScan",
    ]
    assert any(
        "ROW_NUMBER() OVER (PARTITION BY $1 ORDER BY $4 DESC NULLS LAST)" in line
        for line in draw(logical_tree(insert))
    )


def test_optimised_query_still_without_exchanges(optimized: Optimized) -> None:
    assert draw(flink_logical_tree(optimized(LAST))) == [
        "FlinkLogicalCalc(select=[id, currency])",
        "+- FlinkLogicalRank(rankType=[ROW_NUMBER], rankRange=[rankStart=1, rankEnd=1],"
        " partitionBy=[currency], orderBy=[at DESC], select=[id, currency, at])",
        "   +- FlinkLogicalCalc(select=[id, currency, at])",
        "      +- FlinkLogicalTableSourceScan(table=[[pay, source: [KafkaTableSource("
        "id, currency, country, amount, at)]]], fields=[id, currency, country, amount, at])",
    ]
