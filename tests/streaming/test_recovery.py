"""What a query does after its surroundings have failed it: in one session, with a real broker."""

import json
import re
import shutil
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import NewPartitions
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import StateError
from spark_jobs.kernel.calls import Kernel
from tests.harness.drivers import WAIT_S, Drivers

_TABLES = """\
CREATE TABLE source (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{prefix}-in',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE sink (id BIGINT) WITH ('connector' = 'kafka', 'topic' = '{prefix}-out',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json');
"""
_COPY = "INSERT INTO sink SELECT id FROM source;"
SILENT_S = 7.0  # more than the five seconds after which a table counts as silent


class Copies(Drivers):
    """A query that copies one topic to another, and the drivers that run it one after the other."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        super().__init__(spark, servers, folder, f"{_TABLES}{_COPY}")
        self.create("in", "out")

    def send_ids(self, start: int, end: int) -> None:
        self.send("in", ({"id": number} for number in range(start, end)))

    def copied(self) -> Counter[int]:
        found: Counter[int] = Counter()
        for text, count in self.results().items():
            found[json.loads(text)["id"]] += count
        return found

    def add_partitions(self, name: str, count: int) -> None:
        topic = self.topic(name)
        self.admin.create_partitions([NewPartitions(topic, count)])[topic].result(WAIT_S)

    def delete(self, name: str) -> None:
        topic = self.topic(name)
        self.admin.delete_topics([topic])[topic].result(WAIT_S)
        deadline = time.monotonic() + WAIT_S
        while topic in self.admin.list_topics(timeout=WAIT_S).topics:
            assert time.monotonic() < deadline
            time.sleep(0.2)

    def forget_loaded_state(self) -> None:
        """As in a new JVM: the next epoch reads the state from its files."""
        jvm: Any = self._spark._jvm
        jvm.org.apache.spark.sql.execution.streaming.state.StateStore.stop()

    def lost(self) -> int:
        return sum(Kernel.of(self._spark).counters(self._spark).of("sink").get("lost", {}).values())


@pytest.fixture
def copies(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Copies]:
    made = Copies(spark, broker.bootstrap_servers, tmp_path)
    yield made
    made.end()


def test_fenced_writer_comes_back_by_itself(copies: Copies) -> None:
    copies.send_ids(0, 10)
    life = copies.driver()
    copies.until_read("in", 10)
    copies.fence("sink", 0)
    copies.send_ids(10, 20)
    copies.until_read("in", 20)
    assert life.restarts.total == 1
    assert life.failure is not None
    assert life.failure.code == "SINK_FENCED"
    assert copies.copied() == Counter(range(20))


def test_driver_that_was_replaced_ends(copies: Copies) -> None:
    copies.send_ids(0, 10)
    life = copies.driver()
    copies.until_read("in", 10)
    owner = copies.checkpoint / "sink" / "rejoin" / "driver.json"
    text = json.loads(owner.read_text()) | {"generation": 9, "driver": "another"}
    copies.launch.folder.write("rejoin/driver.json", json.dumps(text))
    assert life.query is not None
    life.query.stop()
    life.query = None
    with pytest.raises(StateError, match="CHECKPOINT_TAKEN_OVER"):
        life.poll()


def test_deleted_records_stop_the_job_or_are_counted(copies: Copies) -> None:
    copies.send_ids(0, 10)
    copies.driver()
    copies.until_read("in", 10)
    copies.end()
    copies.send_ids(10, 30)
    copies.delete_records("in", 25)
    error = copies.refusal()
    assert error.code == "SOURCE_DATA_LOST"
    assert "15 records" in error.message
    assert f"{copies.topic('in')}[0]: offsets 10 to 24" in error.message
    before = copies.lost()
    copies.driver(on_data_loss="continue")
    copies.until_read("in", 30)
    assert copies.lost() - before >= 15
    assert copies.copied() == Counter([*range(10), *range(25, 30)])


def test_recreated_topic_stops_the_job_or_is_read_from_its_beginning(copies: Copies) -> None:
    copies.send_ids(0, 10)
    copies.driver()
    copies.until_read("in", 10)
    copies.end()
    copies.delete("in")
    copies.create("in")
    copies.send_ids(100, 130)  # beyond the offsets of the old one: Spark would read on at 10
    assert copies.refusal().code == "TOPIC_RECREATED"
    copies.driver(on_data_loss="continue")
    copies.until_read("in", 30)
    assert copies.copied() == Counter([*range(10), *range(100, 130)])


def test_what_happens_to_a_silent_topic_is_noticed(copies: Copies) -> None:
    """Of a silent table only the known partitions are asked for, most of the time."""
    copies.send_ids(0, 10)
    life = copies.driver()
    copies.until_read("in", 10)
    time.sleep(SILENT_S)
    copies.send_ids(10, 20)
    copies.until_read("in", 20)
    time.sleep(SILENT_S)
    copies.add_partitions("in", 2)
    copies.send("in", ({"id": number} for number in range(20, 30)), partition=1)
    copies.until_read("in", 10, partition=1)
    assert copies.copied() == Counter(range(30))
    time.sleep(SILENT_S)
    assert life.restarts.total == 0
    copies.delete("in")
    with pytest.raises(StateError) as failed:
        copies.until(lambda: False)
    assert failed.value.code == "TOPIC_DELETED"


@pytest.mark.parametrize("name", ["offsets/0", "commits/0"])
def test_damaged_file_is_named(copies: Copies, name: str) -> None:
    copies.send_ids(0, 10)
    copies.driver()
    copies.until_read("in", 10)
    copies.end()
    path = copies.checkpoint / "sink" / name
    kept = path.read_bytes()
    path.write_bytes(kept[: len(kept) // 3])
    path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
    error = copies.refusal()
    assert error.code == "CHECKPOINT_DAMAGED"
    assert name in error.message
    path.write_bytes(kept)
    copies.send_ids(10, 20)
    copies.driver()
    copies.until_read("in", 20)
    assert copies.copied() == Counter(range(20))


def test_lost_ledger_between_epochs_needs_nobody(copies: Copies) -> None:
    copies.send_ids(0, 10)
    copies.driver()
    copies.until_read("in", 10)
    copies.end()
    copies.lose_ledger("sink", 0)
    copies.send_ids(10, 20)
    copies.driver()
    copies.until_read("in", 20)
    assert copies.copied() == Counter(range(20))
    copies.end()
    assert copies.refusal("yes").code == "EPOCH_KNOWN"


def test_renamed_job_keeps_its_ledgers(copies: Copies) -> None:
    copies.send_ids(0, 10)
    copies.driver()
    copies.until_read("in", 10)
    copies.end()
    copies.job = f"{copies.prefix}-renamed"
    copies.send_ids(10, 20)
    copies.driver()
    copies.until_read("in", 20)
    assert copies.copied() == Counter(range(20))
    listed = copies.admin.list_consumer_groups().result(WAIT_S).valid
    groups = {g.group_id for g in listed if g.group_id.startswith(copies.prefix)}
    assert groups == {f"{copies.prefix}-sink-0"}


def test_damaged_state_is_named(copies: Copies) -> None:
    copies.sql = copies.sql.replace("SELECT", "SELECT DISTINCT")
    copies.send_ids(0, 10)
    copies.driver()
    copies.until_read("in", 10)
    copies.end()
    copies.forget_loaded_state()
    files = {
        path: path.read_bytes()
        for path in (copies.checkpoint / "sink" / "state").rglob("*")
        if path.suffix in (".changelog", ".zip") and not path.name.startswith(".")
    }
    assert files
    for path, kept in files.items():
        path.write_bytes(kept[: len(kept) // 3])
    copies.send_ids(10, 20)
    error = copies.refusal()
    assert error.code == "CHECKPOINT_DAMAGED"
    assert re.search(r"state/0/[01]|opId=0, ?partId=[01]", error.message), error.message
    for path, kept in files.items():
        path.write_bytes(kept)
    copies.forget_loaded_state()
    copies.driver()
    copies.until_read("in", 20)
    assert copies.copied() == Counter(range(20))


def test_partition_that_expired_within_an_epoch_leaves_the_others_their_writers(
    copies: Copies,
) -> None:
    """Four partitions are new; the last one's writer fails, and the first one's rows expire."""
    copies.send_ids(0, 10)
    copies.driver()
    copies.until_read("in", 10)
    copies.end()
    copies.add_partitions("in", 5)
    for partition in range(1, 5):
        copies.send("in", ({"id": 100 * partition + n} for n in range(5)), partition)
    copies.send("in", [b"{broken"], partition=4)
    assert copies.refusal().code == "RECORD_REJECTED"
    deadline = time.monotonic() + WAIT_S
    while len(written := [w for w in range(4) if copies.ledger("sink", w, stable=False) == 2]) < 2:
        assert time.monotonic() < deadline, written
        time.sleep(0.1)
    assert 3 not in written
    copies.delete_records("in", 5, partition=1)
    skipping = "'value.format' = 'json', 'rejoin.on-error' = 'skip', 'scan"
    copies.sql = copies.sql.replace("'value.format' = 'json',\n  'scan", skipping)
    copies.driver(on_data_loss="continue")
    copies.until_read("in", 6, partition=4)
    found = copies.copied()
    lost = range(100, 105)
    left = Counter({row: n for row, n in found.items() if row not in lost})
    assert left == Counter([*range(10), *(100 * p + n for p in (2, 3, 4) for n in range(5))])
    assert all(found[row] <= 1 for row in lost)


def refusal_of_copy(copies: Copies, starts: int, rows: int = 10) -> StateError:
    """What a driver stops with on a copy that is `starts` starts old, each with so many rows."""
    copies.send_ids(0, 10)
    copies.driver()
    copies.until_read("in", 10)
    copies.end()
    copy = copies.checkpoint.with_name("copy")
    shutil.copytree(copies.checkpoint, copy)
    for start in range(starts):
        copies.send_ids(10 + rows * start, 10 + rows * (start + 1))
        copies.driver()
        copies.until(lambda: copies.is_active)
        copies.until_read("in", 10 + rows * (start + 1))
        copies.end()
    shutil.rmtree(copies.checkpoint)
    shutil.copytree(copy, copies.checkpoint)
    error = copies.refusal()
    assert isinstance(error, StateError)
    return error


@pytest.mark.parametrize("starts", [1, 2])
def test_older_copy_of_the_checkpoint_is_named(copies: Copies, starts: int) -> None:
    error = refusal_of_copy(copies, starts)
    assert error.code == "SINK_LEDGER_GAP", error
    assert "older" in error.message
    assert "start anew" in str(error.hint)
    assert copies.copied() == Counter(range(10 + 10 * starts))


def test_copy_without_a_later_epoch_goes_on_with_the_later_drivers_number(copies: Copies) -> None:
    error = refusal_of_copy(copies, 2, rows=0)
    assert error.code == "SINK_LEDGER_GAP", error
    assert "driver 3 of this checkpoint" in error.message
    assert "expects epoch 1" in error.message
    owner = copies.checkpoint / "sink" / "rejoin" / "driver.json"
    text = json.loads(owner.read_text()) | {"generation": 3}
    copies.launch.folder.write("rejoin/driver.json", json.dumps(text))
    copies.send_ids(10, 20)
    copies.driver()
    copies.until_read("in", 20)
    assert copies.copied() == Counter(range(20))
