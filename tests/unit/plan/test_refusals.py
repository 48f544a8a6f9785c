"""Every query that must not be planned, by code and place."""

from collections.abc import Callable

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.physical import KafkaSink, RegularJoin
from spark_jobs.plan.planner import plan, plan_query
from spark_jobs.plan.rules import optimize
from spark_jobs.sql.binder import Job

Jobs = Callable[[str], Job]

TEMPORAL = "rates FOR SYSTEM_TIME AS OF pay.at AS r"


def codes(job: Job) -> tuple[str, ...]:
    with pytest.raises(SqlErrors) as refused:
        plan(job)
    for error in refused.value.errors:
        assert error.line > 0
        assert error.hint
    return refused.value.codes


@pytest.mark.parametrize(
    ("query", "code"),
    [
        ("a1, b3 FROM a RIGHT JOIN b ON a1 = b1", "JOIN_KIND"),
        ("a1, b3 FROM a FULL JOIN b ON a1 = b1", "JOIN_KIND"),
        ("x.a1, b3 FROM a AS x JOIN b ON a1 = b1 JOIN a AS y ON y.a1 = b1", "MULTI_JOIN"),
        (f"id, currency FROM pay JOIN {TEMPORAL} ON country = land", "TEMPORAL_JOIN_KEY"),
        (f"id, currency FROM pay FULL JOIN {TEMPORAL} ON currency = code", "TEMPORAL_JOIN_KIND"),
        (
            "id, currency FROM pay JOIN changes FOR SYSTEM_TIME AS OF pay.at AS r ON currency = c2",
            "TEMPORAL_JOIN_NO_WATERMARK",
        ),
        (
            "p.id, p.country FROM pay AS p JOIN pay FOR SYSTEM_TIME AS OF p.at AS r ON p.id = r.id",
            "TEMPORAL_JOIN_NO_PRIMARY_KEY",
        ),
        (
            "p.id, p.country FROM pay AS p LEFT JOIN (SELECT * FROM pay) AS r"
            " ON p.id = r.id AND r.at BETWEEN p.at - INTERVAL '1' HOUR AND p.at",
            "INTERVAL_JOIN",
        ),
        ("p.id, r.code FROM pay AS p JOIN rates AS r ON p.at = r.since", "INTERVAL_JOIN"),
    ],
)
def test_joins_refused_by_name(query: str, code: str, job: Jobs) -> None:
    assert code in codes(job(f"INSERT INTO retract_sink SELECT {query};"))


@pytest.mark.parametrize(
    "query",
    [
        "a1, b3 FROM a LEFT JOIN b ON a1 = b1",
        "a1, name FROM a JOIN users ON a1 = id",
        "id, name FROM users",
        "c1, c2 FROM changes WHERE c1 > 0",
    ],
)
def test_updates_do_not_go_into_an_append_sink(query: str, job: Jobs) -> None:
    assert codes(job(f"INSERT INTO append_sink SELECT {query};")) == ("UPDATES_INTO_APPEND_SINK",)


@pytest.mark.parametrize(
    "query",
    [
        "a1, a3 FROM a WHERE a2 > 0",
        "a1, b3 FROM a JOIN b ON a1 = b1",
        f"id, land FROM pay LEFT JOIN {TEMPORAL} ON currency = code",
    ],
)
def test_insertions_go_into_an_append_sink(query: str, job: Jobs) -> None:
    assert len(plan(job(f"INSERT INTO append_sink SELECT {query};"))) == 1


@pytest.mark.parametrize(
    ("query", "accepted"),
    [
        ("id, name FROM users", True),
        ("c1, c2 FROM changes", True),
        ("id, name FROM users JOIN changes ON id = c1", True),
        ("id, name FROM users JOIN changes ON name = c2", False),
        ("order_id, name FROM items JOIN users ON user_id = id", False),
        ("a1, name FROM a LEFT JOIN users ON a1 = id", False),
        ("id + 1, name FROM users", False),
        # insertions only: the last one wins, as in Flink
        ("a1, b3 FROM a JOIN b ON a1 = b1", True),
    ],
)
def test_upsert_sink_needs_a_key_that_tells_rows_apart(
    query: str, accepted: bool, job: Jobs
) -> None:
    bound = job(f"INSERT INTO upsert_sink SELECT {query};")
    if accepted:
        assert len(plan(bound)) == 1
    else:
        assert codes(bound) == ("UPSERT_KEY",)


def test_one_time_bound_makes_no_interval(job: Jobs) -> None:
    bound = job(
        "INSERT INTO append_sink SELECT p.id, p.country FROM pay AS p JOIN pay AS r"
        " ON p.id = r.id AND p.at <= r.at;"
    )
    (found,) = plan(bound)
    assert isinstance(found.root, KafkaSink)
    assert isinstance(found.root.input.input, RegularJoin)


def test_filter_below_versions_is_refused(job: Jobs) -> None:
    found = codes(
        job(
            "CREATE VIEW high AS SELECT * FROM rates WHERE rate > 100;"
            "INSERT INTO append_sink SELECT id, land FROM pay"
            " JOIN high FOR SYSTEM_TIME AS OF pay.at AS r ON currency = code;"
        )
    )
    assert found == ("TEMPORAL_JOIN_FILTERED_VERSIONS",)


def test_all_problems_of_a_file_are_told(job: Jobs) -> None:
    found = codes(
        job(
            "INSERT INTO append_sink SELECT a1, b3 FROM a LEFT JOIN b ON a1 = b1;\n"
            "INSERT INTO append_sink SELECT a1, b3 FROM a FULL JOIN b ON a1 = b1;"
        )
    )
    assert found == ("UPDATES_INTO_APPEND_SINK", "UPDATES_INTO_APPEND_SINK", "JOIN_KIND")


def test_one_query_is_planned_without_a_job(job: Jobs) -> None:
    insert = job("INSERT INTO append_sink SELECT a1, a3 FROM a;").inserts[0]
    assert plan_query(insert).name == "append_sink"
    assert optimize(insert) == optimize(optimize(insert))
