"""`python -m bench.state_access`: what it costs to read and to write a cell of state.

Cells of 150 bytes in Spark's RocksDB store without Spark, through Spark's map state and as the
kernel writes them, in epochs that touch some hundred cells or many. The figures are processor time
of the thread that runs a task; RocksDB's own threads are not in them. Run it by hand.
"""

import argparse
import json
import sys
import tempfile

from tests.harness.gateway import jvm

_THROUGH = ("map", "cells")
_VALUE_BYTES = 150
_MEMORY_MB = 512  # all of it RocksDB's, so that each cell is read from there
_EPOCHS = {500: 80, 50_000: 8}
_ROUNDS = 2  # the first one while the JVM still compiles


def measure(through: str, keys: int, size: int) -> str:
    """The costs in epochs that touch `size` of the keys."""
    with tempfile.TemporaryDirectory(prefix="rejoin-state-") as folder:
        store = jvm().org.apache.spark.sql.rejoin.run.StoreCellsRun(folder, _MEMORY_MB)
        store.cost(through, keys, keys, 1, _VALUE_BYTES)
        epochs = _EPOCHS[size]
        opened, read, written, committed = json.loads(
            store.cost(through, keys, size, epochs, _VALUE_BYTES)
        )
        store.close()
    return (
        f"{through:>5}, {size:>6,} cells per epoch: {opened / 1e6:.1f} ms to open, "
        f"{read / 1e3:.1f} us to read, {written / 1e3:.1f} us to write a cell, "
        f"{committed / 1e3:.1f} us of the commit"
    )


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m bench.state_access", description=__doc__)
    parser.add_argument("--keys", type=int, default=100_000)
    keys = parser.parse_args().keys
    for turn in range(1, _ROUNDS + 1):
        for size in _EPOCHS:
            for through in _THROUGH:
                sys.stdout.write(f"round {turn}, {measure(through, keys, size)}\n")
                sys.stdout.flush()


if __name__ == "__main__":
    main()
