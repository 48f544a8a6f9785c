"""A stopped job whose checkpoint is rescaled or copied between its runs, or while it is killed."""

import shutil
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pyspark.sql import SparkSession

from spark_jobs.checkpoint.copy import Progress, copy_checkpoint
from spark_jobs.driver.rescale_record import RECORD, RescaleRecord
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child
from spark_jobs.errors import RejoinError
from tests.harness.gateway import kernel
from tests.harness.spark import spark_session
from tests.harness.stopped_job import OPERATORS, QUERIES, WITHIN_S, StoppedJob


@pytest.fixture(scope="module")
def spark(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SparkSession]:
    with spark_session(tmp_path_factory.mktemp("spark")) as session:
        yield session


@pytest.fixture
def shop(spark: SparkSession, broker: Broker, tmp_path: Path) -> StoppedJob:
    made = StoppedJob(spark, broker.bootstrap_servers, tmp_path)
    for id_ in range(6):
        made.customer(id_, f"n{id_}", f"city {id_ % 3}")
    made.order(*range(40))
    made.run(2)
    return made


@pytest.mark.timeout(1500)
def test_up_down_and_up_again(shop: StoppedJob) -> None:
    shown = shop.rescale(5)
    assert [(p.done, p.of) for p in shown] == [(n + 1, OPERATORS) for n in range(OPERATORS)]
    assert shop.parallelism() == {5}
    with pytest.raises(RejoinError, match="then 5, now 2") as refused:
        shop.run(2)
    assert "rejoin rescale --parallelism 2" in (refused.value.hint or "")
    shop.customer(6, "n6", "city 0")  # orders of the first run wait for it
    shop.order(*range(40, 80))
    shop.run(5)

    shop.rescale(3)
    folders = {p.name for p in (shop.checkpoint / "named" / "state" / "0").iterdir()}
    assert {f for f in folders if f.isdigit()} == {"0", "1", "2"}
    shop.customer(2, None)
    shop.order(*range(80, 100))
    shop.run(3)

    shop.rescale(4)  # and on before any epoch: writers 3 and 4 have ledgers of long ago
    shop.rescale(5)
    shop.customer(7, "n7", "city 2")
    shop.order(*range(100, 120))
    shop.run(5)

    for name in ("named", "sums"):  # no history here writes a record twice
        records = Counter(shop.log(name))
        assert [r for r, n in records.items() if n > 1] == []


@pytest.mark.timeout(1500)
def test_a_rescale_that_was_cut_off_is_settled_by_the_next_start(shop: StoppedJob) -> None:
    before = shop.next_epochs()
    record = RescaleRecord(parallelism=5, queries=dict(before))
    root = str(shop.checkpoint)
    record.write(shop.spark, root)
    shop.move("named", 5)
    shop.move("sums", 5)
    shop.order(*range(40, 60))
    said = shop.run(2)
    assert "a rescale to 5 tasks was cut off: it is taken back" in said
    assert shop.parallelism() == {2}
    assert not (shop.checkpoint / RECORD).exists()

    record = RescaleRecord(parallelism=5, queries=dict(shop.next_epochs()))
    record.write(shop.spark, root)
    for query in before:
        shop.move(query, 5)
    shop.customer(6, "n6", "city 0")
    said = shop.run(5)
    assert "a rescale to 5 tasks was cut off at its end, and is complete now" in said
    assert shop.parallelism() == {5}

    shop.rescale(3)
    shop.order(*range(60, 80))
    shop.run(3)


def command(shop: StoppedJob, tasks: int) -> Child:
    text = shop.folder / "shop.sql"
    text.write_text(shop.sql(2), encoding="utf-8")
    environment = ["env", f"REJOIN_WORK_DIR={shop.folder / 'work'}", "REJOIN_MEMORY_MB=1024"]
    command = [sys.executable, "-m", "spark_jobs.cli", "rescale", str(text)]
    options = ["--checkpoint", str(shop.checkpoint), "--parallelism", str(tasks)]
    return Child([*environment, *command, *options], shop.folder / "rescale.log")


def until(done: Callable[[], bool], child: Child) -> None:
    deadline = time.monotonic() + WITHIN_S
    while not done():
        assert time.monotonic() < deadline, child.log_tail(40)
        time.sleep(0.02)


@pytest.mark.timeout(3000)
def test_sigkill_at_several_points(shop: StoppedJob) -> None:
    points = (RECORD, "named/offsets/{named}", "named/commits/{named}", "feed/offsets/{feed}")
    for number, point in enumerate(points):
        if shop.parallelism() == {5}:  # the kill came too late to hinder it
            assert number > 0
            break
        child = command(shop, 5)
        until((shop.checkpoint / point.format(**shop.next_epochs())).exists, child)
        child.kill()
        assert child.exit_code == -9
        shop.order(*range(40 + 10 * number, 50 + 10 * number))
        shop.run(None)
    shop.customer(6, "n6", "city 0")
    shop.run(None)

    child = command(shop, 3)
    until(lambda: child.exit_code is not None, child)
    assert child.exit_code == 0, child.log_tail(40)
    said = child.log_tail(40)
    assert "5 of 5 operators moved" in said
    assert "before the next start, write SET 'rejoin.parallelism' = '3';" in said
    shop.order(*range(90, 110))
    shop.run(3)


def copied(shop: StoppedJob, target: Path) -> Path:
    """Copy the checkpoint, and let the job go on from the copy; returns where it was."""
    shown: list[Progress] = []
    source = shop.checkpoint
    done = copy_checkpoint(kernel(), str(source), str(target), shown.append)
    assert shown[-1] == done
    assert (done.files, done.bytes) == (done.of_files, done.of_bytes)
    shop.checkpoint = target
    return source


@pytest.mark.timeout(1500)
def test_a_copy_goes_on_and_the_source_is_refused(shop: StoppedJob, tmp_path: Path) -> None:
    source = copied(shop, tmp_path / "moved" / "to here")
    away = source.rename(tmp_path / "away")
    shop.customer(6, "n6", "city 0")  # orders of the first run wait for it
    shop.order(*range(40, 60))
    shop.run(2)
    with pytest.raises(RejoinError, match="path has ' '"):
        shop.rescale(3)
    copied(shop, tmp_path / "again")
    shop.rescale(3)
    shop.order(*range(60, 70))
    shop.run(3)
    away.rename(source)
    shop.checkpoint = source
    shop.order(70)
    with pytest.raises(RejoinError, match="the folder is an older copy") as refused:
        shop.run(2)
    assert refused.value.code == "SINK_LEDGER_GAP"


@pytest.mark.timeout(600)
def test_a_copy_that_was_cut_off_is_refused(shop: StoppedJob, tmp_path: Path) -> None:
    source = copied(shop, tmp_path / "copy")
    for query in QUERIES:
        (shop.checkpoint / query / "rejoin" / "manifest.json").unlink()
    with pytest.raises(RejoinError, match=r"without rejoin/manifest\.json"):
        shop.run(2)
    with pytest.raises(RejoinError, match="has files"):
        copy_checkpoint(kernel(), str(source), str(shop.checkpoint), lambda _: None)
    with pytest.raises(RejoinError, match="holds no checkpoint"):
        copy_checkpoint(kernel(), str(tmp_path / "nowhere"), str(tmp_path / "x"), lambda _: None)
    shutil.rmtree(shop.checkpoint)
    shop.checkpoint = source
    copied(shop, tmp_path / "copy")
    shop.order(*range(40, 50))
    shop.run(2)
