"""Cells in Spark's RocksDB: written in place, with the bytes of Spark's own map state."""

import json
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol, TypeAlias

import pytest

from tests.harness.gateway import jvm

Write: TypeAlias = tuple[int, str, str | None]  # group, name and value in hexadecimal
GROUPS = (0, 1, 127, 32_767)
MEMORY_MB = 513  # 512 are RocksDB's, so that all stores keep cells in one
BLOCK_KB = 4
ALL_IN_FILES, NONE_IN_FILES = 1, 1_000_000  # least cells of a file


class OpenStore(Protocol):
    def __call__(self, name: str, least_in_file: int = NONE_IN_FILES) -> Any: ...


@pytest.fixture
def open_store(tmp_path: Path) -> Iterator[OpenStore]:
    opened: list[Any] = []

    def open_named(name: str, least_in_file: int = NONE_IN_FILES) -> Any:
        run = jvm().org.apache.spark.sql.rejoin.run.StoreCellsRun
        opened.append(run(str(tmp_path / name), MEMORY_MB, BLOCK_KB, least_in_file))
        return opened[-1]

    yield open_named
    for store in opened:
        store.close()


def random_writes(rng: random.Random) -> list[Write]:
    """Names of the lengths that cells have, and longer; values of every length up to 40."""
    lengths = (*range(40), *range(230, 260), 300)  # a length above 255 has two bytes
    names = [bytes([rng.choice(b"GKLR"), *rng.randbytes(n)]).hex() for n in lengths]
    writes: list[Write] = [
        (rng.choice(GROUPS), rng.choice(names), rng.randbytes(n % 41).hex()) for n in range(300)
    ]
    return writes + [(group, name, None) for group, name, _ in rng.sample(writes, 60)]


def run(store: Any, through: str, writes: list[Write]) -> list[str | None]:
    """The cells that were named, as they are read behind the writes."""
    asked = sorted({(group, name) for group, name, _ in writes} | {(5, "4b00")})
    found: list[str | None] = json.loads(store.run(through, json.dumps(writes), json.dumps(asked)))
    last = {(group, name): value for group, name, value in writes}
    assert found == [last.get(key) for key in asked]
    return found


@pytest.mark.parametrize("least_in_file", [ALL_IN_FILES, NONE_IN_FILES])
def test_entries_are_those_of_sparks_map_state(open_store: OpenStore, least_in_file: int) -> None:
    own, sparks = open_store("own", least_in_file), open_store("sparks")
    rng = random.Random(5)  # noqa: S311 - repeatable, not secret
    much = [(127, f"4c{n:02x}", rng.randbytes(30_000).hex()) for n in range(100)]
    writes = random_writes(rng) + much
    assert run(own, "cells", writes) == run(sparks, "map", writes)
    entries = json.loads(own.entries())
    assert entries == json.loads(sparks.entries())
    assert len(entries) > 80
    for group in GROUPS:
        assert own.names("cells", group, "K") == sparks.names("map", group, "K")


def test_one_goes_on_with_the_cells_of_the_other(open_store: OpenStore) -> None:
    store = open_store("both")
    rng = random.Random(6)  # noqa: S311 - repeatable, not secret
    for through, other in (("cells", "map"), ("map", "cells")):
        writes = random_writes(rng)
        run(store, through, writes)
        asked = sorted({(group, name) for group, name, _ in writes})
        last = {(group, name): value for group, name, value in writes}
        found = json.loads(store.run(other, "[]", json.dumps(asked)))
        assert found == [last[key] for key in asked]


def test_a_batch_visits_keys_in_the_order_of_the_store(open_store: OpenStore) -> None:
    """Of lengths that take one byte, as those of almost all keys do."""
    store = open_store("order")
    rng = random.Random(8)  # noqa: S311 - repeatable, not secret
    names = {(b"K" + rng.randbytes(n % 9)).hex() for n in range(500)}
    run(store, "cells", [(0, name, "00") for name in names])
    arrived = [*names, *rng.sample(sorted(names), 100)]
    rng.shuffle(arrived)
    stored = json.loads(store.names("cells", 0, "K"))
    assert len(stored) == len(names)
    assert json.loads(store.visited(json.dumps(arrived), "K")) == stored


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("least_in_file", [ALL_IN_FILES, 50, NONE_IN_FILES])
def test_cells_are_those_of_the_version_that_is_loaded(
    open_store: OpenStore, least_in_file: int, seed: int
) -> None:
    """Epochs that fail, that are run again from an older version, and that do not use the cache."""
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    stores = [
        (open_store(name, least_in_file), [dict[tuple[int, str], str]()])
        for name in ("one", "other")
    ]
    for _ in range(60):
        store, versions = rng.choice(stores)
        match rng.random():
            case chance if chance < 0.15:
                store.fail("cells", json.dumps(large_writes(rng)))
            case chance if chance < 0.3:
                del versions[rng.randrange(1, len(versions) + 1) :]
                store.goBackTo(len(versions) - 1)
        writes = large_writes(rng)
        stored = dict(versions[-1])
        for group, name, value in writes:
            stored.pop((group, name), None)
            if value is not None:
                stored[group, name] = value
        asked = sorted({*stored, *((group, name) for group, name, _ in writes)})
        through = "map" if rng.random() < 0.1 else "cells"
        found = json.loads(store.run(through, json.dumps(writes), json.dumps(asked)))
        assert found == [stored.get(cell) for cell in asked]
        versions.append(stored)


def test_what_is_read_ahead_is_kept(open_store: OpenStore) -> None:
    store = open_store("ahead")
    written: list[Write] = [(n % 3, f"4b{n:04x}", "01") for n in range(100)]
    run(store, "cells", written)
    run(store, "cells", [(0, "4b", "02")])
    store.goBackTo(1)  # Spark opens it anew
    asked = [[n % 3, f"4b{n:04x}"] for n in range(120)]
    assert json.loads(store.keptAhead(json.dumps(asked))) == [True] * 100 + [False] * 20


@pytest.mark.parametrize("least_in_file", [1_000, NONE_IN_FILES])
def test_a_snapshot_is_made_where_a_start_would_replay_much(
    open_store: OpenStore, tmp_path: Path, least_in_file: int
) -> None:
    """40 MB two versions after the last one are not much, seven versions after it they are."""
    store = open_store("large", least_in_file)
    for cells in (10, 10, 5_000, 10, 10, 10, 10, 5_000, 10):
        store.cost("cells", cells, cells, 1, 8_000)
    snapshots = (tmp_path / "large").rglob("*.zip")
    made = sorted(path.name.split("_")[0] for path in snapshots)
    assert made == ["1", "8"], "the first version makes the place of the cells"
    assert store.count() == 5_000, "it has what waited when it became due, and what came after"


def test_a_snapshot_that_the_coordinator_wants_has_what_waits(
    open_store: OpenStore, tmp_path: Path
) -> None:
    store = open_store("asked")
    for version in range(4):
        run(store, "cells", [(0, f"4b{version:02x}", "01")])
    store.runAsked(json.dumps([(0, "4b04", "01")]))
    made = {path.name.split("_")[0] for path in (tmp_path / "asked").rglob("*.zip")}
    assert made == {"1", "5"}
    assert store.count() == 5


def test_cells_that_waited_are_removed_from_a_database_that_was_opened_anew(
    open_store: OpenStore,
) -> None:
    store = open_store("anew")
    run(store, "cells", [(0, "4b00", "01")])
    run(store, "cells", [(0, "4b01", "01")])
    store.failBeforeOpening()
    run(store, "cells", [(0, "4b01", None)])
    store.runAsked(json.dumps([(0, "4b02", "01")]))
    assert store.count() == 2


def test_a_snapshot_that_nothing_said_was_due_is_noticed(open_store: OpenStore) -> None:
    store = open_store("unforeseen")
    run(store, "cells", [(0, "4b01", "01")])
    store.runToSnapshot(json.dumps([(0, "4b02", "02")]))
    with pytest.raises(Exception, match="a snapshot of version 2 that nothing said was due"):
        store.run("cells", "[]", "[]")


def test_cells_that_are_enough_for_a_file_take_no_place_in_write_buffers(
    open_store: OpenStore,
) -> None:
    taken = []
    for least_in_file in (100, 101):
        store = open_store(f"at least {least_in_file}", least_in_file)
        run(store, "cells", [(0, "4b", "01")])  # a snapshot, with which the buffers are emptied
        run(store, "cells", [(0, f"4b{n:02x}", "01") for n in range(100)])
        taken.append(store.inWriteBuffers())
    assert taken[1] - taken[0] == 100


def test_rocksdb_cannot_keep_a_jvm_from_ending(open_store: OpenStore) -> None:
    """Its threads would wait for the JVM to take what they log, and the JVM for them."""
    assert open_store("silent").logLevel() == "NUM_INFO_LOG_LEVELS"


def test_levels_of_files_grow_slowly_in_each_database_that_spark_opens(
    open_store: OpenStore,
) -> None:
    store = open_store("levels")
    assert store.levelGrowth() == 3
    run(store, "cells", [(0, "4b01", "01")])
    store.goBackTo(1)  # Spark opens it anew
    assert store.levelGrowth() == 3


def large_writes(rng: random.Random) -> list[Write]:
    """Of 600 cells, which together do not fit into a megabyte."""
    names = [f"4b{rng.randrange(200):04x}" for _ in range(rng.randrange(200))]
    return [
        (n % 3, name, None if rng.random() < 0.2 else rng.randbytes(rng.randrange(4_000)).hex())
        for n, name in enumerate(names)
    ]
