"""What counts of the barriers that the readers of an epoch have noted, over several starts."""

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.harness.gateway import jvm

READERS = ("a", "b")
LAST = 2**63 - 1


def begin(checkpoint: Path, epoch: int = 0) -> Any:
    """Another start of the epoch."""
    return jvm().org.apache.spark.sql.rejoin.ingest.BarrierLog.of(str(checkpoint), epoch)


def opened(log: Any) -> dict[str, Any]:
    return {reader: log.open(reader, len(READERS)) for reader in READERS}


def noted(log: Any) -> list[tuple[int, dict[str, str]]]:
    found: Any = jvm().scala.jdk.javaapi.CollectionConverters
    return [(n._1(), dict(found.asJava(n._2()))) for n in found.asJava(log.noted())]


def last(checkpoint: Path, epoch: int = 0) -> int:
    return int(jvm().org.apache.spark.sql.rejoin.ingest.BarrierLog.last(str(checkpoint), epoch))


def test_what_all_readers_have_noted_counts(tmp_path: Path) -> None:
    log = begin(tmp_path)
    assert (noted(log), last(tmp_path)) == ([], -1)
    notes = opened(log)
    for barrier in range(3):
        notes["a"].add(barrier, f"a {barrier}")
    for barrier in range(2):
        notes["b"].add(barrier, "")
    expected = [(barrier, {"a": f"a {barrier}", "b": ""}) for barrier in range(2)]
    assert last(tmp_path) == 1
    for _ in range(3):  # the later starts have nothing to add
        assert noted(begin(tmp_path)) == expected
        assert last(tmp_path) == 1
    again = begin(tmp_path)
    notes = opened(again)
    for reader in READERS:
        notes[reader].add(2, "new")
    assert noted(begin(tmp_path)) == [*expected, (2, dict.fromkeys(READERS, "new"))]


def test_a_start_whose_readers_have_not_all_begun_has_noted_nothing(tmp_path: Path) -> None:
    begin(tmp_path).open("a", 2).add(0, "x")
    assert (noted(begin(tmp_path)), last(tmp_path)) == ([], -1)


@pytest.mark.parametrize("before", [-1, 4])
def test_a_reader_that_ends_its_epoch_before_another_has_ended_the_running_step(
    tmp_path: Path, before: int
) -> None:
    """Its rows of that step are part of it, whether the other one gets to the end or not."""
    expected = []
    if before >= 0:
        notes = opened(begin(tmp_path))
        for reader in READERS:
            notes[reader].add(before, "x")
        expected = [(before, dict.fromkeys(READERS, "x"))]
    running = before + 1
    notes = opened(begin(tmp_path))
    notes["a"].add(LAST, "end")
    notes["b"].add(running, "step")
    expected.append((running, {"a": "end", "b": "step"}))
    notes["b"].add(running + 1, "more")
    expected.append((running + 1, {"b": "more"}))
    assert last(tmp_path) == running + 1
    notes["b"].add(LAST, "end")
    expected.append((LAST, {"b": "end"}))
    assert noted(begin(tmp_path)) == expected


def test_a_note_that_a_crash_has_cut_off_does_not_count(tmp_path: Path) -> None:
    notes = opened(begin(tmp_path))
    for reader in READERS:
        notes[reader].add(0, "x")
    notes["a"].add(1, "x")
    [file] = tmp_path.glob("barriers/0/*/b")
    with file.open("a") as cut:
        cut.write("1 x")
    assert [barrier for barrier, _ in noted(begin(tmp_path))] == [0]


def test_a_start_that_dies_before_it_has_removed_the_one_before_it_changes_nothing(
    tmp_path: Path,
) -> None:
    """What counts of that one is in `noted` already."""
    notes = opened(begin(tmp_path))
    notes["a"].add(0, "x")
    notes["a"].add(LAST, "end")
    notes["b"].add(LAST, "end")
    folder = next(tmp_path.glob("barriers/0/*"))
    files = {file.name: file.read_text() for file in folder.iterdir()}
    expected = noted(begin(tmp_path))
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text)
    next(path for path in tmp_path.glob("barriers/0/1")).rmdir()
    assert noted(begin(tmp_path)) == expected


def test_a_task_that_lingers_from_an_earlier_start_changes_nothing(tmp_path: Path) -> None:
    """It has its notes open, or opens them only now."""
    old = begin(tmp_path)
    lingering = opened(old)
    for reader in READERS:
        lingering[reader].add(0, "old")
    new = begin(tmp_path)
    notes = opened(new)
    for reader in READERS:
        lingering[reader].add(1, "old")
        notes[reader].add(1, "new")
    with pytest.raises(Py4JJavaError, match="NoSuchFileException"):
        old.open("a", 2)
    found = [(barrier, texts["a"]) for barrier, texts in noted(begin(tmp_path))]
    assert found == [(0, "old"), (1, "new")]


def test_barriers_of_committed_epochs_are_removed(tmp_path: Path) -> None:
    for epoch in (8, 9, 10):
        opened(begin(tmp_path, epoch))
    assert [folder.name for folder in tmp_path.glob("barriers/*")] == ["10"]
