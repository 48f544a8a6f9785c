"""Jobs in Python from texts alone: what is added, what is refused where, what stays as it was."""

from datetime import timedelta
from pathlib import Path

import pytest

from rejoin import Job, SqlErrors, interval_join, regular_join, temporal_join
from spark_jobs.api.text import interval_text, quoted
from spark_jobs.errors import ConfigError, RejoinError

KAFKA = {
    "connector": "kafka",
    "properties.bootstrap.servers": "localhost:9092",
    "format": "json",
    "scan.startup.mode": "earliest-offset",
}
TIMED = "id INT, `at` TIMESTAMP(3), WATERMARK FOR `at` AS `at`"


def a_job() -> Job:
    job = Job("shop")
    for name in ("a", "b"):
        job.create_table(name, TIMED, {**KAFKA, "topic": name})
    job.create_table("it's", "id INT", {**KAFKA, "topic": "c"})
    return job


def refused(call: object) -> RejoinError:
    assert callable(call)
    with pytest.raises(RejoinError) as caught:
        call()
    return caught.value


def codes(error: RejoinError) -> tuple[str, ...]:
    return error.codes if isinstance(error, SqlErrors) else (error.code,)


def test_the_text_is_a_job_file(tmp_path: Path) -> None:
    job = a_job()
    a, b = job.table("a"), job.table("b")
    regular_join(a, b, on="a.id = b.id").where("a.id > 1").select("a.id").insert_into("it's")
    path = tmp_path / "the job.sql"
    path.write_text(job.text, encoding="utf-8")
    again = Job.from_sql(str(path))
    assert job.text.startswith("SET 'pipeline.name' = 'shop';\nCREATE TABLE a (\n")
    assert again.explain() == Job.from_sql(job.text).explain() == job.explain()


def test_a_file_that_is_not_there() -> None:
    with pytest.raises(ConfigError, match="FILE_UNREADABLE"):
        Job.from_sql("nowhere.sql")


def test_what_is_refused_leaves_the_job_as_it_was() -> None:
    job = a_job()
    before = job.text
    error = refused(lambda: job.create_table("x", "id INTT", {**KAFKA, "topic": "x"}))
    assert codes(error) == ("SQL_SYNTAX",)
    error = refused(lambda: job.table("a").select("id", "`at`").insert_into("it's"))
    assert codes(error) == ("COLUMN_COUNT",)
    grouped = job.table("a").group_by("id").agg("COUNT(*) AS n").select("CAST(n AS INT)")
    error = refused(lambda: grouped.insert_into("it's"))  # planned too, not only bound
    assert codes(error) == ("UPDATES_INTO_APPEND_SINK",)
    assert job.text == before


@pytest.mark.parametrize(
    ("call", "code", "says"),
    [
        (lambda j: j.table("aa"), "UNKNOWN_TABLE", "no table or view aa"),
        (lambda j: j.table("a").select("idd"), "UNKNOWN_COLUMN", "no column idd"),
        (lambda j: j.table("a")["idd"], "UNKNOWN_COLUMN", "no column idd"),
        (lambda j: j.explain(), "NO_INSERT", "no INSERT INTO"),
        (lambda j: regular_join(j.table("a"), j.table("b"), on="a.id"), "NOT_A_CONDITION", "ON"),
        (lambda j: regular_join(j.table("a"), j.table("b"), on="TRUE", how="lft"),
         "WRONG_ARGUMENT", "how='lft' is no kind of join"),
        (lambda j: interval_join(j.table("a"), j.table("b"), on="a.`at` > b.`at`"),
         "NOT_AN_INTERVAL_JOIN", "does not bound"),
        (lambda j: interval_join(j.table("a"), j.table("b"), on="a.id = b.id", left_time="a.id",
                                 right_time="b.id"), "NOT_AN_INTERVAL_JOIN", "does not bound"),
        (lambda j: interval_join(j.table("a"), j.table("b"), on="TRUE", upper=timedelta(hours=1)),
         "WRONG_ARGUMENT", "need left_time and right_time"),
        (lambda j: interval_join(j.table("a"), j.table("b"), on="TRUE", left_time="a.`at`"),
         "WRONG_ARGUMENT", "or neither"),
        (lambda j: regular_join(j.table("a"), a_job().table("b"), on="a.id = b.id"),
         "WRONG_ARGUMENT", "belong to different jobs"),
        (lambda j: j.sql("INSERT INTO `it's` SELECT id FROM a") or j.start("no session"),
         "SESSION_UNFIT", "builtins.str is no classic SparkSession"),
        (lambda j: interval_join(j.table("a"), j.table("b"), on="TRUE", how="semi"),
         "WRONG_ARGUMENT", "does not fit an interval join"),
        (lambda j: temporal_join(j.table("a"), j.table("b").where("id > 1"), on="a.id = b.id",
                                 as_of="a.`at`"), "UNKNOWN_TABLE", "whole table or view"),
        (lambda j: j.table("a").create_temporal_table_function("id", "id")("a.`at`"),
         "ROWTIME_TYPE", "no time attribute"),
    ],
)  # fmt: skip
def test_errors_come_where_they_are_made(call: object, code: str, says: str) -> None:
    job = a_job()
    assert callable(call)
    error = refused(lambda: call(job))
    assert codes(error) == (code,)
    assert says in error.render()


def test_blocks_keep_the_alias_of_a_single_table() -> None:
    job = a_job()
    small = job.table("a").alias("x").where("x.id < 9").where("x.id > 1 OR x.id < 0")
    assert small.sql == "SELECT *\nFROM a AS x\nWHERE (x.id < 9) AND (x.id > 1 OR x.id < 0)"
    joined = regular_join(small, job.table("b"), on="x.id = b.id")
    assert joined.select("x.id", "b.`at`").columns == ["id", "at"]
    assert joined.select("x.id AS n").alias("y").where("y.n > 3").columns == ["n"]
    nested = regular_join(job.table("b").alias("z"), joined, on="z.id = b.id")
    assert "JOIN ((\n" in nested.sql
    assert len(nested.columns) == 6


def test_the_same_function_twice_is_one() -> None:
    job = a_job()
    versions = job.table("b").create_temporal_table_function("at", "id")
    assert versions("a.`at`") == versions("a.`at`") == "b_as_of_at(a.`at`)"
    assert job.text.count("CREATE TEMPORAL TABLE FUNCTION") == 1
    found = job.table("a").join_lateral(versions("`at`"), "v.id = a.id", how="left", alias="v")
    assert found.select("a.id", "v.id AS other").columns == ["id", "other"]


def test_names_and_intervals_as_text() -> None:
    assert [quoted(n) for n in ("id", "order id", "select", "a`b")] == [
        "id", "`order id`", "`select`", "`a``b`",
    ]  # fmt: skip
    assert interval_text(0) == "INTERVAL '0' DAY"
    assert interval_text(-90 * 60_000_000) == "INTERVAL -'90' MINUTE"
    assert interval_text(61_250_000) == "INTERVAL '61.25' SECOND"


def doubled(x: int) -> int:
    return 2 * x


def test_a_function_is_called_by_its_name() -> None:
    job = a_job()
    job.create_function("twice", doubled)
    assert "CREATE FUNCTION twice AS 'tests.unit.api.test_job.doubled' LANGUAGE PYTHON" in job.text
    assert job.table("a").select("twice(id) AS x").columns == ["x"]
    problem = refused(lambda: job.create_function("other", lambda x: x))
    assert codes(problem) == ("FUNCTION_NOT_FOUND",)
