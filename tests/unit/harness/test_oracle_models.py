"""The oracle's own models, on inputs whose results a person can check."""

import json
from typing import Any

import pytest

from tests.kernel.oracle import normalize, regular
from tests.kernel.oracle.__main__ import MAKERS, random_case
from tests.kernel.oracle.check import Batch, Case, Shrinker, check


def side(layout: str = "no-unique-key", *unique_key: int) -> regular.Side:
    return regular.Side(layout, unique_key, upsert=False)


def join(**changed: Any) -> regular.JoinModel:
    given: dict[str, Any] = {
        "left": side(),
        "right": side(),
        "join_type": "left",
        "key": (regular.K,),
        "filter_nulls": (True,),
        "residual": None,
        "where": None,
        "paired": False,
    }
    return regular.JoinModel(regular.Join(**{**given, **changed}))


LEFT = [1, 7, "a", 2, "x"]
RIGHT = [5, 7, "b", 3, "y"]
NULLS = [None] * 5


def test_left_join_pads_and_takes_the_padding_back() -> None:
    model = join()
    assert model.step([["left", "+I", LEFT]], [["+I", *LEFT, *NULLS]]) == []
    emitted = [["-D", *LEFT, *NULLS], ["+I", *LEFT, *RIGHT]]
    assert model.step([["right", "+I", RIGHT]], emitted) == []
    assert model.state_rows() == [1, 1]


def test_missing_and_wrong_rows_are_reported() -> None:
    assert join().step([["left", "+I", LEFT]], []) == [f"missing: {(*LEFT, *NULLS)}"]
    model = join()
    problems = model.step([["left", "+I", LEFT]], [["+I", *LEFT, *RIGHT]])
    assert len(problems) == 2
    assert any("too much" in p for p in problems)


def test_a_retraction_before_its_row_is_reported() -> None:
    emitted = [["-D", *LEFT, *NULLS], ["+I", *LEFT, *NULLS], ["+I", *LEFT, *NULLS]]
    problems = join().step([["left", "+I", LEFT]], emitted)
    assert any("not there" in p for p in problems)


def test_duplicates_join_as_often_as_they_came() -> None:
    model = join(join_type="inner")
    batch = [["left", "+I", LEFT], ["left", "+I", LEFT], ["right", "+I", RIGHT]]
    assert model.step(batch, [["+I", *LEFT, *RIGHT], ["+I", *LEFT, *RIGHT]]) == []
    assert model.step([["left", "-D", LEFT]], [["-D", *LEFT, *RIGHT]]) == []


def test_null_keys_match_only_null_safe() -> None:
    left, right = [1, None, "a", 2, "x"], [5, None, "b", 3, "y"]
    batch = [["left", "+I", left], ["right", "+I", right]]
    assert join().step(batch, [["+I", *left, *NULLS]]) == []
    assert join(filter_nulls=(False,)).step(batch, [["+I", *left, *right]]) == []


def test_residual_and_where() -> None:
    batch = [["left", "+I", LEFT], ["right", "+I", RIGHT]]
    assert join(residual="`l_v` < `r_v`").step(batch, [["+I", *LEFT, *RIGHT]]) == []
    assert join(residual="`l_id` = `r_id`").step(batch, [["+I", *LEFT, *NULLS]]) == []
    assert join(where="`r_id` IS NULL").step(batch, []) == []


def test_unique_key_replaces() -> None:
    model = join(left=side("has-unique-key", regular.ID))
    other = [1, 7, "a", 9, "z"]
    model.step([["left", "+I", LEFT]], [["+I", *LEFT, *NULLS]])
    emitted = [["-D", *LEFT, *NULLS], ["+I", *other, *NULLS]]
    assert model.step([["left", "+U", other]], emitted) == []
    assert model.state_rows() == [1, 0]


def test_normalize_changes() -> None:
    model = normalize.NormalizeModel(normalize.Normalizer((0,), "`v` < 3", update_before=True))
    assert model.step([[0, "+U", ["x", 1, 2, "c"]]], [["+I", "x", 1, 2, "c"]]) == []
    update = [["-U", "x", 1, 2, "c"], ["+U", "x", 1, 0, "c"]]
    assert model.step([[0, "+U", ["x", 1, 0, "c"]]], update) == []
    assert model.step([[0, "+U", ["x", 1, 0, "c"]]], []) == []
    assert model.step([[0, "+U", ["x", 1, 9, "c"]]], [["-D", "x", 1, 0, "c"]]) == []
    assert model.step([[0, "-D", ["x", None, None, None]]], []) == []


class RowsModel(regular.JoinModel):
    """Does not care what the machine counts."""

    def __init__(self) -> None:
        super().__init__(regular.Join(side(), side(), "left", (regular.K,), (True,), None))

    def state_rows(self) -> None: ...


class EchoMachine:
    """Pads every left row and knows nothing else."""

    def run(self, batches: str) -> str:
        found = []
        for batch in json.loads(batches):
            found.append([["+I", *e[2], *NULLS] for e in batch if e[0] == "left"])
        return json.dumps(found)

    def restart(self) -> None: ...

    def stateRows(self) -> str:
        return "[0,0]"


def test_a_failure_shrinks_to_what_matters() -> None:
    left = [[i, i, "a", 0, "x"] for i in range(10)]
    batches: list[Batch] = [[["left", "+I", row]] for row in left]
    batches[6:6] = [[["right", "+I", RIGHT]], [["left", "+I", LEFT]]]
    case = Case("x", {}, batches, frozenset({3}), RowsModel)
    failure = check(case, lambda _: EchoMachine())
    assert failure is not None
    smallest = Shrinker(lambda _: EchoMachine()).shrink(failure)
    assert smallest.case.batches == [[["right", "+I", RIGHT]], [["left", "+I", LEFT]]]
    assert smallest.case.restarts == frozenset()
    assert "missing" in smallest.report()


@pytest.mark.parametrize("machine", MAKERS)
def test_random_cases_are_repeatable(machine: str) -> None:
    first, second = random_case(machine, 1, 5), random_case(machine, 1, 5)
    assert first.batches == second.batches
    assert first.node == second.node
    assert random_case(machine, 2, 5).batches != first.batches
