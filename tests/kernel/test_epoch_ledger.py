"""Which epochs a sink partition writes, given what the broker's ledger says of it."""

from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.harness.gateway import jvm

OWN, OTHER = "checkpoint-a", "checkpoint-b"


def admits(
    found: tuple[int, str] | None, epoch: int, repeated: int | None = None, dense: bool = True
) -> bool:
    package: Any = jvm().org.apache.spark.sql.rejoin
    option: Any = jvm().scala.Option
    entry = None if found is None else package.LedgerEntry(*found)
    return bool(
        package.EpochLedger("p-q-0", "out").admits(
            option.apply(entry), epoch, OWN, option.apply(repeated), dense
        )
    )


def test_first_epoch_ever() -> None:
    assert admits(None, 0)
    assert admits(None, 0, repeated=0)


def test_next_epoch() -> None:
    assert admits((5, OWN), 5)


def test_committed_epoch_is_skipped() -> None:
    assert not admits((5, OWN), 4, repeated=4)
    assert not admits((1, OWN), 0, repeated=0)


@pytest.mark.parametrize("epoch", [3, 6])
def test_gaps_are_refused(epoch: int) -> None:
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        admits((5, OWN), epoch)


def test_partition_that_is_not_in_every_epoch_may_fall_behind() -> None:
    assert admits((5, OWN), 9, dense=False)
    assert admits(None, 9, repeated=9, dense=False)
    assert not admits((5, OWN), 4, dense=False)
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_GAP"):
        admits((5, OWN), 3, dense=False)


def test_lost_ledger_matters_only_where_an_epoch_is_repeated() -> None:
    assert admits(None, 7)
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_MISSING"):
        admits(None, 7, repeated=7)


def test_ledger_of_another_checkpoint() -> None:
    assert admits((57, OTHER), 0)  # the same job on a new checkpoint
    with pytest.raises(Py4JJavaError, match="SINK_LEDGER_FOREIGN"):
        admits((57, OTHER), 12)
