"""What the fault matrix (`make faults`) judges by: its data, and how outputs are compared."""

from tests.faults.data import Data
from tests.faults.stage import Changes, Difference, difference


def test_differences_are_told_apart() -> None:
    wanted: Changes = {1: ["a", "b"], 2: ["c"]}
    assert difference(wanted, wanted).is_none
    assert difference({1: ["a", "b"]}, wanted) == Difference(1, 0, 0)
    assert difference({**wanted, 2: ["c", "c"]}, wanted) == Difference(0, 1, 0)
    assert difference({**wanted, 1: ["b", "a"]}, wanted) == Difference(0, 0, 1)


def test_data_is_the_same_each_time_and_has_deletions() -> None:
    one, other = Data(1000, seed=5), Data(1000, seed=5)
    assert list(one.records("left")) == list(other.records("left"))
    assert any(value is None for _, _, value in one.records("left"))
    assert any(right is None for _, right in one.joined().values())
