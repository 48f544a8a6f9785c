"""The cells kept in front of a store: never an old value, and all of them if it says so."""

import json
import random
from collections.abc import Callable, Iterator
from typing import Any, TypeAlias

import pytest

from spark_jobs.options.spark import rocksdb_mb
from tests.harness.gateway import jvm

Cell: TypeAlias = tuple[int, str]  # group, name in hexadecimal
NewCache: TypeAlias = Callable[[int, bool], Any]


@pytest.fixture
def new_cache() -> Iterator[NewCache]:
    made: list[Any] = []

    def new(size: int, is_new: bool) -> Any:
        made.append(jvm().org.apache.spark.sql.rejoin.run.CellCacheRun(size, is_new))
        return made[-1]

    yield new
    for cache in made:
        cache.close()


def cells(rng: random.Random, count: int) -> list[Cell]:
    return [(rng.randrange(3), rng.randbytes(rng.randrange(40)).hex()) for _ in range(count)]


def changed(
    rng: random.Random, known: list[Cell], longest: int
) -> list[tuple[int, str, str | None]]:
    def value() -> str | None:
        return None if rng.random() < 0.2 else rng.randbytes(rng.randrange(longest)).hex()

    return [(*rng.choice(known), value()) for _ in range(rng.randrange(400))]


def kept(cache: Any, known: list[Cell]) -> dict[Cell, str]:
    found = json.loads(cache.read(json.dumps(known)))
    return {cell: value for cell, value in zip(known, found, strict=True) if value is not None}


def behind(cache: Any) -> dict[Cell, str]:
    """What the store has."""
    return {(group, name): value for group, name, value in json.loads(cache.stored())}


def lacking(cache: Any, asked: list[Cell]) -> set[Cell]:
    """Cells of which the cache does not know that the store has none."""
    return {(group, name) for group, name in json.loads(cache.mayLack(json.dumps(asked)))}


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("size", [0, 200, 4_000, 60_000, 1 << 20])
@pytest.mark.parametrize("is_new", [True, False])
def test_what_is_kept_is_what_was_put_last(
    new_cache: NewCache, size: int, is_new: bool, seed: int
) -> None:
    """What is not kept is in the store, and where nothing waits all of it is."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    cache, stored = new_cache(size, is_new), dict[Cell, str]()
    known = cells(rng, 10 ** rng.randrange(1, 4))
    longest = 3 ** rng.randrange(1, 7)
    for _ in range(20):
        writes = changed(rng, known, longest)
        cache.write(json.dumps(writes))
        for group, name, value in writes:
            stored.pop((group, name), None)
            if value is not None:
                stored[group, name] = value
        found = kept(cache, known)
        assert found.items() <= stored.items()
        assert not cache.isComplete() or found == stored
        assert stored.keys() - found.keys() <= lacking(cache, known)
        assert behind(cache) | found == stored
        if rng.random() < 0.2:
            cache.writeAll()
        if rng.random() < 0.3:
            cache.closeGaps()
            assert kept(cache, known) == found
            assert behind(cache) | found == stored
        assert cache.isAhead() or behind(cache) == stored
        read = rng.sample(sorted(stored), rng.randrange(len(stored) + 1))
        cache.readThrough(json.dumps([(*cell, stored[cell]) for cell in read]))
        found = kept(cache, known)
        assert found.items() <= stored.items()
        assert not cache.isComplete() or found == stored


def test_a_cell_is_written_once_however_often_it_changes(new_cache: NewCache) -> None:
    cache = new_cache(1 << 20, True)
    some: list[Cell] = [(n % 128, f"{n:08x}") for n in range(1_000)]
    for size in range(1, 100, 10):
        cache.write(json.dumps([(*cell, f"{size:02x}" * size) for cell in some]))
    cache.write(json.dumps([(*cell, None) for cell in some[500:]]))
    assert cache.written() == 0
    cache.writeAll()
    assert cache.written() == 500, "those that came and went need not be known to the store"
    assert behind(cache) == kept(cache, some)
    cache.write(json.dumps([(*cell, None) for cell in some]))
    assert behind(cache) == {}


def test_cells_that_have_to_leave_are_written_before(new_cache: NewCache) -> None:
    cache = new_cache(1 << 20, True)
    many: list[Cell] = [(n % 128, f"{n:08x}") for n in range(50_000)]
    cache.write(json.dumps([(*cell, "00" * 100) for cell in many]))
    stayed = kept(cache, many)
    assert len(stayed) < 10_000
    assert behind(cache).keys() >= set(many) - stayed.keys()
    assert cache.written() <= 50_000


def test_all_cells_are_kept_until_one_has_to_leave(new_cache: NewCache) -> None:
    cache = new_cache(1 << 20, True)
    many: list[Cell] = [(n % 128, f"{n:08x}") for n in range(5_000)]
    cache.write(json.dumps([(*cell, "00" * 100) for cell in many]))
    assert cache.isComplete()
    assert len(kept(cache, many)) == 5_000
    more: list[Cell] = [(n % 128, f"{n:08x}") for n in range(5_000, 10_000)]
    cache.write(json.dumps([(*cell, "00" * 100) for cell in more]))
    assert not cache.isComplete()
    assert 5_000 < len(kept(cache, many + more)) < 10_000
    assert (9_999 % 128, f"{9_999:08x}") in kept(cache, more), "the newest stay"


def test_cells_that_grow_push_none_out_as_long_as_they_fit(new_cache: NewCache) -> None:
    cache = new_cache(1 << 20, True)
    many: list[Cell] = [(n % 128, f"{n:08x}") for n in range(3_000)]
    for size in range(1, 200, 3):
        cache.write(json.dumps([(*cell, f"{size:02x}" * size) for cell in many]))
        assert cache.isComplete()
        assert set(kept(cache, many).values()) == {f"{size:02x}" * size}


def test_gaps_of_cells_that_grew_are_closed_and_nothing_is_written_for_that(
    new_cache: NewCache,
) -> None:
    cache = new_cache(1 << 20, True)
    some: list[Cell] = [(n % 128, f"{n:08x}") for n in range(1_000)]
    for size in range(1, 50, 5):
        cache.write(json.dumps([(*cell, f"{size:02x}" * size) for cell in some]))
    before = kept(cache, some)
    assert not cache.narrow(300_000)
    cache.closeGaps()
    assert cache.narrow(300_000)
    assert kept(cache, some) == before
    assert cache.written() == 0
    cache.writeAll()
    assert behind(cache) == before
    assert cache.written() == 1_000


def test_all_cells_are_kept_again_once_those_that_left_were_read(new_cache: NewCache) -> None:
    cache = new_cache(1 << 20, True)
    many: list[Cell] = [(n % 128, f"{n:08x}") for n in range(10_000)]
    cache.write(json.dumps([(*cell, "00" * 100) for cell in many]))
    some = many[5_000:]
    cache.write(json.dumps([(*cell, None) for cell in some]))
    assert not cache.isComplete()
    stayed = kept(cache, many)
    left = [cell for cell in many[:5_000] if cell not in stayed]
    cache.readThrough(json.dumps([(*cell, "00" * 100) for cell in left[1:]]))
    assert not cache.isComplete()
    cache.readThrough(json.dumps([(*left[0], "00" * 100)]))
    assert cache.isComplete()
    assert set(kept(cache, many)) == set(many[:5_000])


def test_most_cells_that_do_not_exist_are_known_not_to(new_cache: NewCache) -> None:
    cache = new_cache(1 << 20, True)
    many: list[Cell] = [(n % 128, f"{n:08x}") for n in range(50_000)]
    others: list[Cell] = [(n % 128, f"{n:08x}") for n in range(50_000, 60_000)]
    cache.write(json.dumps([(*cell, "00" * 100) for cell in many]))
    stayed = kept(cache, many)
    assert len(stayed) < 10_000
    assert set(many) - stayed.keys() <= lacking(cache, many)
    assert len(lacking(cache, others)) < 1_500, "with ten bits for each of those that left"


def test_a_store_that_had_cells_before_is_not_all_in_the_cache(new_cache: NewCache) -> None:
    cache = new_cache(1 << 20, False)
    cache.write(json.dumps([(0, "01", "02")]))
    assert not cache.isComplete()
    many: list[Cell] = [(0, f"{n:08x}") for n in range(10_000)]
    cache.write(json.dumps([(*cell, "00" * 100) for cell in many]))
    assert lacking(cache, [(1, "01")]) == {(1, "01")}


def test_a_cell_that_would_push_many_out_is_not_kept(new_cache: NewCache) -> None:
    cache = new_cache(8_000, True)
    cache.write(json.dumps([(0, "01", "02"), (0, "03", "04" * 2_000)]))
    assert kept(cache, [(0, "01"), (0, "03")]) == {(0, "01"): "02"}
    assert not cache.isComplete()


def test_it_takes_less_only_if_nothing_is_lost(new_cache: NewCache) -> None:
    cache = new_cache(1 << 20, True)
    few: list[Cell] = [(0, f"{n:08x}") for n in range(100)]
    cache.write(json.dumps([(*cell, "00" * 50) for cell in few]))
    assert cache.narrow(200_000)
    assert len(kept(cache, few)) == 100
    assert not cache.narrow(2_000)
    many: list[Cell] = [(0, f"{n:08x}") for n in range(10_000)]
    cache.write(json.dumps([(*cell, "00" * 50) for cell in many]))
    stayed = kept(cache, many)
    assert 100 < len(stayed) < 2_200
    assert cache.narrow(200_000), "as much as it had"
    assert not cache.narrow(190_000)
    assert kept(cache, many) == stayed


@pytest.mark.parametrize("state_mb", [300, 512, 768, 1_536, 3_013, 8_192])
def test_rocksdb_and_the_kept_cells_share_the_memory_for_state(state_mb: int) -> None:
    rocksdb = rocksdb_mb(state_mb)
    kept = jvm().org.apache.spark.sql.rejoin.run.KeptCells.besideMb(rocksdb)
    assert state_mb - 3 <= rocksdb + kept <= state_mb
