"""Jobs in a session of the user's own: the notebook, a restart, what a session lacks."""

import json
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from pyspark.sql import SparkSession

import rejoin
from spark_jobs.api.session import check_session, job_session
from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import ConfigError
from spark_jobs.options.settings import declared_settings
from spark_jobs.settings import Environment, Overrides, job_settings
from spark_jobs.streaming.class_archive import java_options
from spark_jobs.streaming.session import stop_session
from tests.harness.spark import forget_jvm

NOTEBOOK = Path(__file__).parents[2] / "examples" / "notebook.py"
WITHIN_S = 120.0
CONF = {
    "spark.master": "local[2]",
    "spark.driver.memory": "1g",
    "spark.driver.extraJavaOptions": " ".join(java_options("use")),
    "spark.ui.enabled": "false",
    "spark.log.level": "ERROR",
}


@pytest.fixture(scope="module")
def spark() -> Iterator[SparkSession]:
    session = rejoin.session("tests", CONF)
    yield session
    stop_session(session, 15)
    forget_jvm()


def run_notebook(broker: Broker) -> dict[str, Any]:
    """The names that its cells have made."""
    text = NOTEBOOK.read_text(encoding="utf-8")
    cells: dict[str, Any] = {}
    exec(compile(text.replace("localhost:9092", broker.bootstrap_servers), NOTEBOOK, "exec"), cells)  # noqa: S102
    return cells


def wait_until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not condition():
        assert time.monotonic() < deadline, "timed out"
        time.sleep(0.1)


def test_the_notebook_and_a_restart_from_its_checkpoint(
    broker: Broker, spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REJOIN_WORK_DIR", str(tmp_path))
    cells = run_notebook(broker)
    job, running = cells["job"], cells["running"]
    assert cells["first"] == [("+I", "?")]
    assert cells["corrected"] == [("-D", "?"), ("+I", "Ada")]
    assert (running.status.state, running.exception, running.is_active) == ("stopped", None, False)
    assert running.status.queries[0].input_rows_total == 2

    before = dict(spark.conf.getAll)
    order = {"id": 2, "user_id": 7, "amount": 1}
    cells["producer"].produce(cells["TOPICS"][0], json.dumps(order))
    cells["producer"].flush(30)
    with job.start(spark) as again:
        assert [query.input_rows_total for query in again.status.queries] in ([2], [3])
        with pytest.raises(ConfigError, match="JOB_RUNNING"):
            job.start(spark, checkpoint=str(tmp_path / "another"))
        assert again.await_termination(0) is False
        cells["running"] = again
        assert cells["changes"](1) == [("+I", "Ada")]
        wait_until(lambda: again.status.queries[0].input_rows_total == 3)
    assert "notebook: stopped" in repr(again)
    assert dict(spark.conf.getAll) == before
    assert spark.range(3).count() == 3
    cells["consumer"].close()
    cells.clear()  # its clients, which would go on looking for the broker


def test_a_missing_topic_is_said_at_once(
    broker: Broker, spark: SparkSession, tmp_path: Path
) -> None:
    job = rejoin.Job("nowhere")
    options = {
        "connector": "kafka",
        "topic": "nobody-created-this",
        "properties.bootstrap.servers": broker.bootstrap_servers,
        "format": "json",
    }
    letters = {"rejoin.dead-letter.topic": "nor-these-letters"}
    source = job.create_table("source", "id INT", options | letters)
    job.create_table("sink", "id INT", options | {"topic": "nor-this-sink"})
    source.insert_into("sink")
    for _ in range(2):  # nothing is left behind that would keep the next one from starting
        with pytest.raises(rejoin.RejoinError) as failed:
            job.start(spark, checkpoint=str(tmp_path / "c"), status_dir=tmp_path / "s")
        assert failed.value.code == "TOPIC_MISSING"
        assert failed.value.message == (
            "no topic nobody-created-this (source source), nor-these-letters (dead-letter records "
            f"of source), nor-this-sink (sink sink) at {broker.bootstrap_servers}"
        )
        assert failed.value.hint is not None


def test_a_session_without_the_jars_is_named(spark: SparkSession) -> None:
    java: Any = spark._jvm
    thread = java.java.lang.Thread.currentThread()
    whole = thread.getContextClassLoader()
    thread.setContextClassLoader(java.java.lang.ClassLoader.getPlatformClassLoader())
    try:
        with pytest.raises(ConfigError, match="SESSION_UNFIT") as unfit:
            check_session(spark)
    finally:
        thread.setContextClassLoader(whole)
    assert "rejoin-kernel.jar is not on the driver's class path" in unfit.value.message
    assert "Spark's Kafka connector (org.apache.spark.sql.kafka010" in unfit.value.message
    assert "rejoin.session_conf()" in str(unfit.value.hint)
    check_session(spark)


def test_properties_that_a_running_session_cannot_take_are_named(spark: SparkSession) -> None:
    declared = declared_settings(
        {
            "spark.app.id": spark.sparkContext.applicationId,
            "spark.executor.memory": "7g",
            "spark.sql.streaming.minBatchesToRetain": "30",
            "spark.sql.warehouse.dir": "elsewhere",
        }
    )
    wanted = job_settings(declared, "job", Overrides(), Environment())
    with pytest.raises(ConfigError, match="SESSION_UNFIT") as unfit:
        job_session(spark, wanted)
    assert "sets spark.executor.memory, spark.sql.warehouse.dir," in unfit.value.message
    fitting = replace(wanted, spark_properties={"spark.sql.streaming.minBatchesToRetain": "30"})
    own = job_session(spark, fitting)
    assert own.conf.get("spark.sql.streaming.minBatchesToRetain") == "30"


def test_settings_that_would_harm_are_named(spark: SparkSession) -> None:
    context: Any = spark.sparkContext._jsc
    conf = context.sc().conf()
    conf.set("spark.speculation", "True")
    try:
        with pytest.raises(ConfigError, match=r"'spark\.speculation' is true"):
            check_session(spark)
    finally:
        conf.set("spark.speculation", "false")
    check_session(spark)
