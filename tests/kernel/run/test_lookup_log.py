"""What tasks keep of their lookups, for an epoch that is repeated."""

from pathlib import Path
from typing import Any

from tests.harness.gateway import jvm

Answers = dict[bytes, bytes]


class Partition:
    """The logs of one task's epochs."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder / "3"
        self._root = str(folder)
        self._java: Any = jvm()

    def log(self, epoch: int) -> Any:
        hadoop = self._java.org.apache.hadoop.conf.Configuration()
        return self._java.org.apache.spark.sql.rejoin.lookup.LookupLog(self._root, hadoop, 3, epoch)

    def write(self, epoch: int, answers: Answers) -> Answers:
        """The answers that count."""
        given = self._java.scala.collection.mutable.HashMap()
        for key, answer in answers.items():
            given.put(self._java.rejoin.core.row.Bytes.apply(key), answer)
        return _dict(self.log(epoch).write(given))

    def read(self, epoch: int) -> Answers | None:
        found = self.log(epoch).read()
        return _dict(found.get()) if found.isDefined() else None

    def epochs(self) -> list[str]:
        return sorted(file.name for file in self.folder.iterdir() if file.name[0] != ".")


def _dict(answers: Any) -> Answers:
    pairs = answers.iterator()
    found = {}
    while pairs.hasNext():
        pair = pairs.next()
        found[bytes(pair._1().bytes())] = bytes(pair._2())
    return found


def test_the_first_answers_of_an_epoch_count(tmp_path: Path) -> None:
    logs = Partition(tmp_path)
    assert logs.read(7) is None
    assert logs.write(7, {b"a": b"1", b"b": b""}) == {b"a": b"1", b"b": b""}
    assert logs.read(7) == {b"a": b"1", b"b": b""}
    assert logs.write(7, {b"a": b"2", b"c": b"3"}) == {b"a": b"1", b"b": b"", b"c": b"3"}


def test_old_epochs_go_also_after_epochs_without_rows(tmp_path: Path) -> None:
    logs = Partition(tmp_path)
    for epoch in (1, 2, 5):
        logs.write(epoch, {b"a": b"1"})
    assert logs.epochs() == ["5"]
    logs.write(6, {b"a": b"2"})
    assert logs.epochs() == ["5", "6"]
