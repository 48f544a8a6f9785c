"""The cells of a batch: as if each change was written at once, and written as seldom as can be."""

import json
import random
from typing import Any, TypeAlias

import pytest

from tests.harness.gateway import jvm

Step: TypeAlias = list[str]  # what to do, a name (a tag) and a value in hexadecimal
Write: TypeAlias = list[str | None]


def new_run(most_bytes: int = 32 << 20) -> Any:
    return jvm().org.apache.spark.sql.rejoin.run.BatchCellsRun(most_bytes)


def run(cells: Any, steps: list[Step]) -> tuple[list[Any], list[Write]]:
    found, writes = json.loads(cells.run(json.dumps(steps)))
    return found, writes


def test_a_cell_is_written_once_in_a_batch() -> None:
    cells = new_run()
    found, writes = run(cells, [["put", "4b01", "01"], ["put", "4b01", "02"], ["get", "4b01"]])
    assert (found, writes) == (["02"], [["4b01", "02"]])
    assert run(cells, [["get", "4b01"]]) == (["02"], [])


def test_what_a_batch_adds_and_removes_is_not_written() -> None:
    steps = [["get", "4b01"], ["put", "4b01", "01"], ["remove", "4b01"], ["get", "4b01"]]
    assert run(new_run(), steps) == ([None, None], [])


def test_what_may_be_stored_is_removed() -> None:
    cells = new_run()
    run(cells, [["put", "4b01", "01"]])
    steps = [["put", "4b01", "02"], ["remove", "4b01"]]  # written without a look at what was there
    assert run(cells, steps) == ([], [["4b01", None]])
    assert run(cells, [["get", "4b01"]]) == ([None], [])


def test_changes_do_not_wait_for_more_memory_than_they_may_take() -> None:
    megabyte = "00" * (1 << 20)
    names = [f"4b{n:02x}" for n in range(40)]
    steps = [["get", names[0]], *(["put", name, megabyte] for name in names), ["remove", names[0]]]
    _, writes = run(new_run(), steps)
    assert [name for name, value in writes if value is not None] == names
    assert writes[-1] == [names[0], None]


def test_cells_that_do_not_exist_do_not_take_more_memory_either() -> None:
    in_vain = [["get", f"4b{n:04x}"] for n in range(100)]
    steps = [["put", "4b", "01"], *in_vain, ["put", "4b", "02"]]
    assert run(new_run(most_bytes=1000), steps)[1] == [["4b", "01"], ["4b", "02"]]


@pytest.mark.parametrize("most_bytes", [300, 32 << 20])
@pytest.mark.parametrize("seed", range(10))
def test_every_read_sees_the_last_change(seed: int, most_bytes: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    cells, stored = new_run(most_bytes), dict[str, str]()
    names = [(rng.choice(b"GK").to_bytes(1, "big") + rng.randbytes(n % 9)).hex() for n in range(60)]
    for _ in range(30):
        before, steps, expected = dict(stored), list[Step](), list[Any]()
        for _ in range(rng.randrange(100)):
            name = rng.choice(names)
            match rng.random():
                case chance if chance < 0.4:
                    steps.append(["get", name])
                    expected.append(stored.get(name))
                case chance if chance < 0.7:
                    stored[name] = rng.randbytes(rng.randrange(30)).hex()
                    steps.append(["put", name, stored[name]])
                case chance if chance < 0.98:
                    stored.pop(name, None)
                    steps.append(["remove", name])
                case _:
                    steps.append(["names", "K"])
                    expected.append(sorted(name for name in stored if name.startswith("4b")))
        found, writes = run(cells, steps)
        assert [sorted(f) if isinstance(f, list) else f for f in found] == expected
        if most_bytes > 300 and not any(step[0] == "names" for step in steps):
            assert len({name for name, _ in writes}) == len(writes)
        for name, value in writes:
            before.pop(str(name), None)
            if value is not None:
                before[str(name)] = value
        assert before == stored
