"""The job files of tests/flink_files, by a real Flink and by rejoin, on the same topics."""

from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.registry import RegistryServer
from spark_jobs.plan.nodes.physical import KafkaSink
from spark_jobs.plan.planner import plan
from spark_jobs.sql.bind.binder import bind
from tests.flink_files.files import FlinkFile, Place, flink_files
from tests.flink_files.flink import a_place, answers, ask, create_inputs, flink_process, recorded
from tests.flink_files.index import refused
from tests.harness.bounded import KEY_GROUPS, Query, create_topics, run_to_end
from tests.harness.spark import spark_session

WAIT_S = 200.0


@pytest.fixture
def spark(tmp_path: Path) -> Iterator[SparkSession]:
    with spark_session(tmp_path) as session:
        yield session


@pytest.mark.timeout(600)
def test_both_engines_answer_the_same(
    spark: SparkSession, broker: Broker, registry: RegistryServer, tmp_path: Path
) -> None:
    files = [file for file in flink_files() if file.name not in refused()]
    theirs = a_place(broker.bootstrap_servers, registry.url)
    create_inputs(files, theirs)
    ours = replace(theirs, sinks=theirs.inputs.replace("in-", "rejoin-"))
    run_to_end(spark, [q for file in files for q in _queries(file, ours)], tmp_path, WAIT_S)
    found = {file.name: answers(file, ours) for file in files}
    with flink_process() as flink:
        errors = {file.name: ask(flink, file, theirs) for file in files}
    assert not any(errors.values()), errors
    expected = {file.name: answers(file, theirs) for file in files}
    assert found == expected
    assert expected == {file.name: recorded(file) for file in files}


def _queries(file: FlinkFile, place: Place) -> Iterator[Query]:
    create_topics(place.servers, (file.topic(topic, place) for topic in file.sinks))
    text = f"SET 'rejoin.key-groups' = '{KEY_GROUPS}';\n{file.placed(place)}"
    for each in plan(bind(text, file.path.name)):
        assert isinstance(each.root, KafkaSink)
        yield Query(f"{place.sinks}{file.name}-{each.name}", each.root)
