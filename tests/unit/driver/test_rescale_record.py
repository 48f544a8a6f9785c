"""What becomes of a rescale that was cut off, by how far it came."""

from dataclasses import dataclass, field
from typing import Any

import pytest

from spark_jobs.driver import rescale_record
from spark_jobs.driver.rescale_record import RescaleRecord, refuse_rescaling, settle_rescale
from spark_jobs.errors import StateError
from spark_jobs.streaming.manifest import VERSION, Manifest


class Crashed(Exception):
    pass


@dataclass
class Disk:
    """The folders of two queries at parallelism 2 after epoch 7, and the record of a rescale."""

    commits: dict[str, set[int]]
    tasks: dict[str, int] = field(default_factory=lambda: {"a": 2, "b": 2})
    rescaled: dict[str, Any] = field(default_factory=dict)
    has_record: bool = True
    steps_left: int = 100

    def step(self) -> None:
        if self.steps_left == 0:
            raise Crashed
        self.steps_left -= 1

    def delete(self, name: str) -> None:
        self.step()
        self.has_record = False


@dataclass
class Folder:
    disk: Disk
    query: str

    def has_committed(self, epoch: int) -> bool:
        return epoch in self.disk.commits[self.query]

    def read_manifest(self) -> Manifest:
        return Manifest(
            version=VERSION, checkpoint="c", query=self.query, topics=(), groups=8,
            parallelism=self.disk.tasks[self.query], state="", scans={},
            rescaled=self.disk.rescaled.get(self.query),
        )  # fmt: skip

    def write_manifest(self, manifest: Manifest) -> None:
        self.disk.step()
        self.disk.tasks[self.query] = manifest.parallelism
        self.disk.rescaled[self.query] = manifest.rescaled

    def take_back_epoch(self, epoch: int) -> None:
        self.disk.step()
        self.disk.commits[self.query].discard(epoch)

    def drop_partitions(self, first: int) -> None:
        self.disk.step()


RECORD = RescaleRecord(parallelism=5, queries={"a": 8, "b": 8})
DONE = {"a": {7, 8}, "b": {7, 8}}
HALF = {"a": {7, 8}, "b": {7}}


def give(files: object, monkeypatch: pytest.MonkeyPatch) -> None:
    class Files:
        def checkpoint_files(self, *_: object) -> object:
            return files

    monkeypatch.setattr(rescale_record.Kernel, "of", lambda _: Files())


def settle(disk: Disk, monkeypatch: pytest.MonkeyPatch) -> bool:
    give(disk, monkeypatch)
    folders: Any = {query: Folder(disk, query) for query in ("a", "b")}
    spark: Any = None
    return RECORD.settle(spark, "c", folders)


@pytest.mark.parametrize("crash_after", range(8))
@pytest.mark.parametrize("commits", [DONE, HALF], ids=["done", "half"])
def test_all_queries_are_rescaled_or_none_wherever_it_is_cut_off(
    commits: dict[str, set[int]], crash_after: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    disk = Disk({query: set(epochs) for query, epochs in commits.items()}, steps_left=crash_after)
    try:
        settle(disk, monkeypatch)
    except Crashed:
        assert disk.has_record
        disk.steps_left = 100
        settle(disk, monkeypatch)
    assert not disk.has_record
    if commits is DONE:
        assert disk.tasks == {"a": 5, "b": 5}
        assert disk.rescaled == {"a": (8, 9), "b": (8, 9)}
    else:
        assert disk.tasks == {"a": 2, "b": 2}
        assert disk.commits == {"a": {7}, "b": {7}}


def test_the_epochs_that_had_nothing_to_write() -> None:
    found = Folder(Disk(DONE), "a").read_manifest()
    assert found.since(8) == 8
    once = found.rescaled_to(5, 8)
    assert (once.parallelism, once.rescaled, once.since(9), once.since(10)) == (5, (8, 9), 8, 10)
    assert once.rescaled_to(5, 8) == once
    twice = once.rescaled_to(3, 9)
    assert (twice.rescaled, twice.since(10)) == ((8, 10), 8)
    later = once.rescaled_to(3, 20)
    assert (later.rescaled, later.since(21)) == ((20, 21), 20)
    assert once.rescaled_to(4, None).rescaled == (8, 9)


@dataclass
class Root:
    """The checkpoint's folder; `text` is that of the record."""

    text: str | None

    def read(self, _: str) -> str | None:
        return self.text


def test_no_driver_goes_on_beside_a_rescale_that_began_meanwhile(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    spark: Any = None
    give(Root(None), monkeypatch)
    refuse_rescaling(spark, "c")
    assert settle_rescale(spark, "c") is None
    give(Root(RECORD.model_dump_json()), monkeypatch)
    with pytest.raises(StateError, match="CHECKPOINT_IN_USE"):
        refuse_rescaling(spark, "c")


def test_a_damaged_record_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    spark: Any = None
    give(Root("{"), monkeypatch)
    with pytest.raises(StateError, match=r"rejoin-rescale\.json is damaged"):
        settle_rescale(spark, "c")
