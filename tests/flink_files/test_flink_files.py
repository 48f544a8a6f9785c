"""The files without Flink: INDEX.md, plans, refusals, and rows against what Flink answered."""

from collections import defaultdict

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.plan.planner import plan
from spark_jobs.scenario.file import Scenario, Step
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Record
from spark_jobs.scenario.runner import BoundScenario
from spark_jobs.sql.bind.binder import bind
from tests.flink_files.answers import Answer, folded
from tests.flink_files.files import HERE, FlinkFile, Place, flink_files
from tests.flink_files.flink import recorded
from tests.flink_files.index import listed, refused
from tests.harness.gateway import kernel

FILES = flink_files()
RUN = [file for file in FILES if file.name not in refused()]
REFUSED = [file for file in FILES if file.name in refused()]
IN_MEMORY = [file for file in RUN if not file.is_avro]
NOWHERE = Place("localhost:9092", "http://localhost:8081", "", "")


def test_the_index_lists_every_file() -> None:
    assert list(listed()) == [file.name for file in FILES]


def test_every_file_beside_a_job_is_its_own() -> None:
    kinds = {".jsonl", ".avsc", ".answer.json"}
    found = {path.name for path in HERE.iterdir() if path.name.endswith(tuple(kinds))}
    expected = {path.name for file in RUN for path in file.inputs.values()}
    expected |= {f"{file.name}.answer.json" for file in RUN}
    expected |= {f"{f.name}.{t}.avsc" for f in RUN for t in f.inputs if f.is_avro}
    assert found == expected


@pytest.mark.parametrize("file", RUN, ids=lambda file: file.name)
def test_file_is_planned(file: FlinkFile) -> None:
    assert plan(bind(file.text, file.path.name))


@pytest.mark.parametrize("file", REFUSED, ids=lambda file: file.name)
def test_file_is_refused_as_the_index_says(file: FlinkFile) -> None:
    with pytest.raises(SqlErrors) as raised:
        plan(bind(file.text, file.path.name))
    assert sorted({e.code for e in raised.value.errors}) == sorted(refused()[file.name])
    assert all(error.hint for error in raised.value.errors)


@pytest.mark.service  # it takes long
@pytest.mark.parametrize("file", IN_MEMORY, ids=lambda file: file.name)
def test_rows_are_those_of_flink(file: FlinkFile) -> None:
    assert _in_memory(file) == recorded(file)


def _in_memory(file: FlinkFile) -> dict[str, Answer]:
    text = file.placed(NOWHERE)
    job = bind(text, file.path.name)
    sinks = tuple(dict.fromkeys(sink.table.name for sink in job.inserts))
    bound = BoundScenario(Scenario(file.name, text, ()), job.tables, plan(job), sinks)
    backend = MemoryBackend(bound, kernel())
    by_topic = {file.topic(topic, NOWHERE): topic for topic in file.topics}
    for name, table in job.tables.items():
        for topic in (by_topic[t] for t in table.topics):
            if topic in file.inputs:
                backend.feed(name, list(file.records(topic)))
    records: dict[str, list[Record]] = defaultdict(list)
    for step in (Step(0), Step(0, command="end")):
        for name, found in backend.run_step(step, lambda _: True).records.items():
            records[name] += found
    return {
        by_topic[topic]: folded(job.tables[name], records[name])
        for name in sinks
        for topic in job.tables[name].topics
    }
