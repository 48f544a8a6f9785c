"""`Job.start` in a session of the user's own on a cluster."""

import os
import signal
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rejoin
from spark_jobs.api.session import check_session
from spark_jobs.errors import ConfigError
from spark_jobs.kernel.calls import Kernel
from spark_jobs.streaming.session import stop_session
from tests.harness.shop import Shop, orders, paid, payments, payments_job
from tests.harness.spark import forget_jvm
from tests.harness.standalone import Standalone

CONF = {
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
    "spark.driver.bindAddress": "127.0.0.1",
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}


@pytest.fixture(scope="module")
def spark(standalone: Standalone) -> Iterator[SparkSession]:
    session = rejoin.session("tests", CONF | {"spark.master": standalone.url})
    yield session
    stop_session(session, 15)
    forget_jvm()


@pytest.mark.timeout(900)
def test_a_job_runs_on_the_executors_of_a_session(
    shop: Shop, spark: SparkSession, tmp_path: Path
) -> None:
    shop.create("orders", "payments", "paid_sink")
    shop.send("orders", orders(0, 500))
    shop.send("payments", payments(0, 500))
    sql = payments_job(shop, bounded=True)
    folders = {"checkpoint": str(tmp_path / "c"), "status_dir": tmp_path / "status"}
    with pytest.raises(ConfigError, match="PARALLELISM_UNKNOWN"):
        rejoin.Job.from_sql(sql).start(spark, **folders)  # type: ignore[arg-type]
    with rejoin.Job.from_sql(f"SET 'rejoin.parallelism' = '2';\n{sql}").start(
        spark,
        **folders,  # type: ignore[arg-type]
    ) as running:
        assert running.await_termination(shop.within_s)
        (query,) = running.status.queries
    everything = paid(0, 500)
    assert shop.rows("paid_sink", everything.total()) == everything
    assert (query.output_rows_total, query.rejects) == (everything.total(), {})
    assert Kernel.of(spark).counters(spark).jvm["commits"]["paid_sink"] > 0


@pytest.mark.timeout(900)
def test_an_executor_that_comes_later_gets_its_share_of_the_state(
    shop: Shop, spark: SparkSession, standalone: Standalone, tmp_path: Path
) -> None:
    """Spark alone would go on running both tasks on the executor that is left."""
    shop.create("orders", "payments", "paid_sink")
    folders: dict[str, Any] = {"checkpoint": str(tmp_path / "c"), "status_dir": tmp_path / "status"}
    sql = f"SET 'rejoin.parallelism' = '2';\n{payments_job(shop, bounded=False)}"
    deadline = time.monotonic() + shop.within_s
    with rejoin.Job.from_sql(sql).start(spark, **folders) as running:
        before = reports(spark)
        killed = False
        for step in count():
            assert time.monotonic() < deadline, reports(spark)
            assert running.exception is None
            shop.send("orders", orders(step * 10, step * 10 + 10))
            shop.send("payments", payments(step * 10, step * 10 + 10))
            everything = paid(0, step * 10 + 10).total()
            while sum(q.output_rows_total for q in running.status.queries) < everything:
                assert time.monotonic() < deadline, reports(spark)
                running.await_termination(0.1)
            found = reports(spark)
            if not killed:
                os.kill(standalone.executors()[0], signal.SIGKILL)
                killed = True
            elif any(found[new] for new in found.keys() - before.keys()):
                break
    assert shop.rows("paid_sink", everything) == paid(0, step * 10 + 10)


def reports(spark: SparkSession) -> dict[str, int]:
    """By executor, also those that are gone: how many transactions it has committed."""
    jvm: Any = spark._jvm
    asJava = jvm.scala.jdk.javaapi.CollectionConverters.asJava
    found = asJava(jvm.org.apache.spark.sql.rejoin.run.ExecutorReports.all())
    return {
        r.executor(): sum(n for key, n in dict(asJava(r.counts())).items() if key._1() == "commits")
        for r in found
    }


def test_a_session_that_learns_nothing_of_its_executors_is_named(spark: SparkSession) -> None:
    conf = spark.sparkContext._jsc.sc().conf()  # type: ignore[union-attr]
    given = conf.get("spark.plugins")
    conf.set("spark.plugins", "")
    try:
        with pytest.raises(ConfigError, match="SESSION_UNFIT") as unfit:
            check_session(spark)
    finally:
        conf.set("spark.plugins", given)
    assert "'spark.plugins' lacks" in unfit.value.message
