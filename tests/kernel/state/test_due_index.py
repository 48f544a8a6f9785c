"""The due index alone: against a sorted map, and what a batch costs by how far ahead keys stand."""

import json
import random
from collections.abc import Iterator
from typing import Any, TypeAlias

import pytest

from tests.harness.gateway import jvm

Keys: TypeAlias = list[tuple[int, str]]
Batch: TypeAlias = tuple[int | None, Keys]
END = 2**51
HOUR, MONTH = 879, 632_813  # in slots of 4096 ms
LIST = 600  # bytes of a list cell, however many slots are in use
FORMS = (range(1), range(40), range(-3_000, 3_000, 7), range(5_000))


class Sorted:
    """Keys by slot, in the order in which they came."""

    def __init__(self) -> None:
        self._keys: dict[int, list[str]] = {}

    def step(self, last: int | None, added: Keys) -> list[str]:
        due = sorted(slot for slot in self._keys if last is not None and slot <= last)
        taken = [key for slot in due for key in self._keys.pop(slot)]
        for slot, key in added:
            self._keys.setdefault(slot, []).append(key)
        return taken


def new_index() -> Any:
    return jvm().org.apache.spark.sql.rejoin.run.DueIndexRun()


def run(index: Any, batches: list[Batch]) -> list[tuple[list[str], int, int, int, int]]:
    """What each batch takes, cells read and written, bytes read and written."""
    return [tuple(done) for done in json.loads(index.run(json.dumps(batches)))]


def random_batches(rng: random.Random) -> Iterator[Batch]:
    """Several TTLs, keys anywhere, small steps and far jumps; at the end, all that is left."""
    now = rng.choice([-5_000, 0, 400_000_000])
    ttls = rng.sample([0, 3, 100, HOUR, 20_000, MONTH, 10**9], 3)
    spread = rng.choice([1, 50, 5_000])
    for number in range(rng.choice([50, 400])):
        now += rng.choice([0, 0, 1, 1, 2, 30, spread, spread * rng.choice([1, 40])])
        added = []
        for n in range(rng.choice([0, 1, 1, 3, rng.choice([3, 200])])):
            slot = now + rng.choice(ttls) + rng.choice([0, 0, rng.randrange(spread * 10)])
            added.append((slot, f"{number}-{n}"))
        yield rng.choice([now, now - 1, None]), added
    yield END, []


@pytest.mark.parametrize("seed", range(40))
def test_keys_come_as_from_a_sorted_map(seed: int) -> None:
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    batches = list(random_batches(rng))
    index, expected = new_index(), Sorted()
    for number, (done, batch) in enumerate(zip(run(index, batches), batches, strict=True)):
        assert done[0] == expected.step(*batch), f"batch {number}: {batch}"
    assert json.loads(index.cells()) == {}


@pytest.mark.parametrize("ttl", [HOUR, MONTH, 100 * MONTH])
def test_a_batch_costs_the_same_whatever_the_ttl(ttl: int) -> None:
    """A key per batch: the list, a chunk written and one taken, and now and then some pages."""
    step = max(ttl // 3_000, 1)
    batches: list[Batch] = [(now, [(now + ttl, "key")]) for now in range(0, ttl * 5 // 4, step)]
    steady = run(new_index(), batches)[-ttl // step // 5 :]
    assert sum(done[1] + done[2] for done in steady) / len(steady) <= 20
    assert sum(done[3] + done[4] for done in steady) / len(steady) <= 2 * LIST
    assert max(max(done[3:]) for done in steady) <= 2 * LIST


@pytest.mark.parametrize("slots", FORMS, ids=["one slot", "no pages", "pages", "pages of pages"])
def test_lists_without_pages_go_on(slots: range) -> None:
    """The form that the list of slots has up to some 60, and had however long it was."""
    index = new_index()
    for cell, value in listed(slots):
        index.put(cell.hex(), value.hex())
    [first, moved] = run(index, [(None, []), (None, [])])
    assert first[:2] == ([], 1)
    assert max(moved[3:]) <= LIST
    middle = slots[len(slots) // 2]
    [half, rest] = run(index, [(middle, []), (END, [])])
    assert half[0] == [str(slot) for slot in slots if slot <= middle]
    assert rest[0] == [str(slot) for slot in slots if slot > middle]
    assert json.loads(index.cells()) == {}


def listed(slots: range) -> Iterator[tuple[bytes, bytes]]:
    """Cells by name: the list, and one chunk for each slot with the slot's number as its key."""
    entries = b"".join(_varint(slot * 2 if slot >= 0 else -slot * 2 - 1) + b"\1" for slot in slots)
    yield b"Q", b"\1" + _varint(len(slots)) + entries
    for slot in slots:
        name = b"F" + (slot % 2**64).to_bytes(8) + bytes(4)
        yield name, b"\1\1" + _varint(len(str(slot))) + str(slot).encode()


def _varint(value: int) -> bytes:
    parts = []
    while value > 0x7F:
        parts.append(value & 0x7F | 0x80)
        value >>= 7
    return bytes([*parts, value])
