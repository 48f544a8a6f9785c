"""`python -m bench.state_access`: what it costs to read and to write a cell of state.

Cells of 150 bytes in Spark's RocksDB store without Spark, through Spark's map state and as the
kernel writes them, in epochs that touch some hundred cells or many. With `--large`, cells of 40
bytes in a store of twelve million of them, of which few are kept in memory, read one by one and
ahead, from blocks of several sizes. The figures are processor time of the thread that runs a task;
RocksDB's own threads are not in them. Run it by hand.
"""

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tests.harness.gateway import jvm

_THROUGH = ("map", "cells")
_VALUE_BYTES = 150
_MEMORY_MB = 512  # all of it RocksDB's, so that each cell is read from there
_BLOCK_KB = 16
_EPOCHS = {500: 80, 50_000: 8}
_ROUNDS = 2  # the first one while the JVM still compiles

_LARGE_KEYS = 12_000_000
_LARGE_VALUE_BYTES = 40
_LARGE_MEMORY_MB = 560  # beyond 512 a hundredth of the cells is kept
_LARGE_EPOCHS = {500: 20, 500_000: 3}
_BLOCKS_KB = (4, 16)


@contextmanager
def _store(memory_mb: int, block_kb: int) -> Iterator[Any]:
    with tempfile.TemporaryDirectory(prefix="rejoin-state-") as folder:
        kernel = jvm().org.apache.spark.sql.rejoin.run
        store = kernel.StoreCellsRun(folder, memory_mb, block_kb, kernel.StoreFiles.Least())
        yield store
        store.close()


def measure(through: str, keys: int, size: int) -> str:
    """The costs in epochs that touch `size` of the keys."""
    with _store(_MEMORY_MB, _BLOCK_KB) as store:
        store.cost(through, keys, keys, 1, _VALUE_BYTES)
        epochs = _EPOCHS[size]
        opened, read, written, committed = json.loads(
            store.cost(through, keys, size, epochs, _VALUE_BYTES)
        )
    return (
        f"{through:>5}, {size:>7,} cells per epoch: {opened / 1e6:.1f} ms to open, "
        f"{read / 1e3:.1f} us to read, {written / 1e3:.1f} us to write a cell, "
        f"{committed / 1e3:.1f} us of the commit"
    )


def measure_large(block_kb: int) -> Iterator[str]:
    """The cost of a read in a store much larger than its memory."""
    with _store(_LARGE_MEMORY_MB, block_kb) as store:
        store.fill(_LARGE_KEYS, _LARGE_VALUE_BYTES)
        for turn in range(1, _ROUNDS + 1):
            for size, epochs in _LARGE_EPOCHS.items():
                for ahead, how in ((False, "one by one"), (True, "read ahead")):
                    costs = [store.readCost(_LARGE_KEYS, size, ahead) for _ in range(epochs)]
                    yield (
                        f"round {turn}, blocks of {block_kb:>2} kB, {size:>7,} cells per epoch, "
                        f"{how}: {sum(costs) / epochs / 1e3:.1f} us to read a cell"
                    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.state_access", description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000)
    parser.add_argument("--large", action="store_true", help="a store larger than its memory")
    given = parser.parse_args()
    if given.large:
        lines = (line for block_kb in _BLOCKS_KB for line in measure_large(block_kb))
    else:
        lines = (
            f"round {turn}, {measure(through, given.keys, size)}"
            for turn in range(1, _ROUNDS + 1)
            for size in _EPOCHS
            for through in _THROUGH
        )
    for line in lines:
        sys.stdout.write(f"{line}\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main()
