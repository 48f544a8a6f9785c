"""One driver per checkpoint, on a local disk and on a file system that has no locks."""

import time
import uuid
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from pyspark.sql import SparkSession

from spark_jobs.driver import ownership as module
from spark_jobs.driver.ownership import Ownership
from spark_jobs.errors import StateError
from spark_jobs.streaming.manifest import CheckpointFolder


@pytest.fixture
def without_locks(spark: SparkSession, tmp_path: Path) -> str:
    """A checkpoint folder behind Hadoop's view of file systems, which says nothing of locks."""
    session: Any = spark._jsparkSession
    conf = session.sparkContext().hadoopConfiguration()
    name = f"faults{uuid.uuid4().hex[:8]}"
    conf.set(f"fs.viewfs.mounttable.{name}.link./data", tmp_path.as_uri())
    return f"viewfs://{name}/data"


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "BEAT_S", 0.4)
    monkeypatch.setattr(module, "_SETTLE_S", 0.1)


def folder(spark: SparkSession, root: str) -> CheckpointFolder:
    return CheckpointFolder.open(spark, root, "q")


def test_generations_count_up_on_a_local_disk(spark: SparkSession, tmp_path: Path) -> None:
    place = folder(spark, str(tmp_path))
    assert place.has_locks
    first = Ownership.take(place)
    first.record_ledgers(4)
    place.unlock()
    second = Ownership.take(folder(spark, str(tmp_path)))
    assert (first.own.generation, second.own.generation, second.own.writers) == (1, 2, 4)
    second.check()
    with pytest.raises(StateError, match="CHECKPOINT_TAKEN_OVER"):
        first.check()
    with pytest.raises(StateError, match="CHECKPOINT_TAKEN_OVER"):
        first.release()  # which would let a third one in


def test_silent_driver_is_replaced_where_there_are_no_locks(
    spark: SparkSession, without_locks: str
) -> None:
    first = Ownership.take(folder(spark, without_locks))
    assert not folder(spark, without_locks).has_locks
    second = Ownership.take(folder(spark, without_locks))
    assert second.own.generation == 2
    with pytest.raises(StateError, match="CHECKPOINT_TAKEN_OVER"):
        first.beat()
    second.release()
    assert Ownership.take(folder(spark, without_locks)).own.generation == 3


def test_living_driver_is_not_replaced_where_there_are_no_locks(
    spark: SparkSession, without_locks: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = Ownership.take(folder(spark, without_locks))
    beating = SimpleNamespace(monotonic=time.monotonic, sleep=lambda _: first.beat())
    monkeypatch.setattr(module, "time", beating)  # Py4J sleeps too, in a thread
    with pytest.raises(StateError, match="CHECKPOINT_IN_USE"):
        Ownership.take(folder(spark, without_locks))
    first.check()


def test_damaged_owner_is_named(spark: SparkSession, tmp_path: Path) -> None:
    place = folder(spark, str(tmp_path))
    place.write("rejoin/driver.json", '{"generation": 3, "dri')
    with pytest.raises(StateError, match=r"CHECKPOINT_DAMAGED .*driver\.json"):
        Ownership.take(place)
