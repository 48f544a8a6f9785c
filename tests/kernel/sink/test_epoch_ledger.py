"""Which epochs a sink partition writes, given what the broker's ledger says of it."""

from pathlib import Path
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.harness.gateway import jvm

OWN, OTHER = "checkpoint-a", "checkpoint-b"
GENERATION = 3
NO_BARRIER = -1
Entry = tuple[int, str] | tuple[int, str, int] | tuple[int, str, int, int]


def package() -> Any:
    return jvm().org.apache.spark.sql.rejoin.sink


def ledger() -> Any:
    return package().EpochLedger("p-q-0", "out")


def option(value: object) -> Any:
    scala: Any = jvm().scala.Option
    return scala.apply(value)


def found(entry: Entry | None) -> Any:
    if entry is None:
        return option(None)
    return option(package().LedgerEntry(*entry, *(GENERATION - 1, NO_BARRIER)[len(entry) - 2 :]))


def admits(entry: Entry | None, epoch: int, dense: bool = True, new: bool = False) -> bool:
    return bool(ledger().admits(found(entry), epoch, OWN, dense, new))


def taken_over(
    entry: Entry | None,
    epoch: int,
    repeated: bool = False,
    known: int = 2,
    word: bool | None = None,
    dense: bool = True,
    since: int | None = None,
) -> int:
    """The next epoch of writer 1, once this driver has the ledger."""
    last = epoch if since is None else since
    by = package().Takeover(OWN, GENERATION, epoch, last, repeated, known, option(word), dense, "")
    entry_now = entry_after(entry, by)
    return int(entry_now.next())


def entry_after(entry: Entry | None, by: Any) -> Any:
    entry_now = ledger().takenOver(found(entry), 1, by)
    assert (entry_now.checkpoint(), entry_now.generation()) == (OWN, GENERATION)
    return entry_now


def test_next_epoch() -> None:
    assert admits((0, OWN), 0)
    assert admits((5, OWN), 5)


def test_committed_epoch_is_skipped() -> None:
    assert not admits((5, OWN), 4)
    assert not admits((1, OWN), 0)


@pytest.mark.parametrize("epoch", [3, 6])
def test_gaps_are_refused(epoch: int) -> None:
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        admits((5, OWN), epoch)


def test_partition_that_is_not_in_every_epoch_may_fall_behind() -> None:
    assert admits((5, OWN), 9, dense=False)
    assert not admits((5, OWN), 4, dense=False)
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        admits((5, OWN), 3, dense=False)


def test_ledger_that_is_lost_after_the_start() -> None:
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_MISSING"):
        admits(None, 7)
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_MISSING"):
        admits(None, 7, dense=False)
    assert admits(None, 7, dense=False, new=True)  # a source partition has joined


def test_another_checkpoint_has_taken_the_ledger() -> None:
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_FOREIGN"):
        admits((57, OTHER), 12)


def test_driver_goes_on_where_the_one_before_it_ended() -> None:
    assert taken_over((5, OWN), 5) == 5
    assert taken_over((5, OWN), 5, repeated=True) == 5
    assert taken_over((6, OWN), 5, repeated=True) == 6


def test_ledger_that_is_ahead_of_the_checkpoint() -> None:
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        taken_over((6, OWN), 5)  # nothing is half-done: the checkpoint is an older copy
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        taken_over((4, OWN), 5)


def test_steps_that_are_committed_stay_so(tmp_path: Path) -> None:
    notes = jvm().org.apache.spark.sql.rejoin.ingest.BarrierLog.of(str(tmp_path), 5).open("t@0", 1)
    facts = (OWN, GENERATION, 5, 5, True, 2, option(None), True, str(tmp_path))
    by = package().Takeover(*facts)
    entry = (5, OWN, GENERATION - 1, 17)
    for barrier in (16, 17, 18):
        notes.add(barrier, "")
        if barrier < 17:  # the folder is a copy from amid the epoch
            with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
                entry_after(entry, by)
        else:
            after = entry_after(entry, by)
            assert (after.next(), after.barrier()) == (5, 17)
    after = entry_after((6, OWN), by)
    assert (after.next(), after.barrier()) == (6, NO_BARRIER)


def test_epochs_that_only_moved_state_are_no_gap() -> None:
    assert taken_over((5, OWN), 6, since=5) == 6
    assert taken_over((5, OWN), 7, since=5) == 7  # rescaled twice
    assert taken_over((7, OWN), 7, since=5) == 7  # a driver that died before its first epoch
    assert taken_over((5, OWN), 6, since=5, dense=False) == 6
    for entry, epoch in ((4, 6), (7, 6)):
        with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
            taken_over((entry, OWN), epoch, since=5)
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        taken_over((5, OWN), 7, since=5, repeated=True)  # by then it was 7


def test_writer_that_a_rescale_took_away_begins_anew() -> None:
    assert taken_over((5, OWN), 60, known=1) == 60
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        taken_over((5, OWN), 60, known=2)
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        taken_over((70, OWN), 60, known=1)


def test_lost_ledger_matters_only_where_an_epoch_is_half_done() -> None:
    assert taken_over(None, 7) == 7
    assert taken_over(None, 0) == 0
    for epoch in (0, 7):
        with pytest.raises(Py4JJavaError, match="SINK_LEDGER_MISSING"):
            taken_over(None, epoch, repeated=True)


def test_person_says_whether_the_epoch_is_written() -> None:
    assert taken_over(None, 7, repeated=True, word=True) == 8
    assert taken_over(None, 7, repeated=True, word=False) == 7


def test_writer_that_never_had_a_ledger_has_not_lost_it() -> None:
    assert taken_over(None, 7, repeated=True, known=1, dense=False) == 7


def test_new_checkpoint_takes_a_ledger_over() -> None:
    assert taken_over((57, OTHER), 0, known=0) == 0
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_FOREIGN"):
        taken_over((57, OTHER), 0, repeated=True, known=2)
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_FOREIGN"):
        taken_over((57, OTHER), 12)


def test_replaced_driver_is_refused() -> None:
    ledger().refuseNewer(found((5, OWN, GENERATION)), OWN, GENERATION)
    ledger().refuseNewer(found((5, OTHER, GENERATION + 9)), OWN, GENERATION)
    with pytest.raises(Py4JJavaError, match="CHECKPOINT_TAKEN_OVER"):
        ledger().refuseNewer(found((5, OWN, GENERATION + 1)), OWN, GENERATION)


def test_older_copy_of_the_folder_is_refused_by_its_drivers_number() -> None:
    ledger().refuseOlderFolder(found((5, OWN, GENERATION)), OWN, GENERATION)
    ledger().refuseOlderFolder(found((5, OTHER, GENERATION + 9)), OWN, GENERATION)
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        ledger().refuseOlderFolder(found((5, OWN, GENERATION + 1)), OWN, GENERATION)
