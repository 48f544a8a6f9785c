"""The folders in which benchmarks work; one benchmark has one at a time."""

import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from bench.measure import BenchError
from spark_jobs.embedded.process import FolderLock

WORK = Path(__file__).resolve().parents[1] / "build" / "bench"


@contextmanager
def work_folder(name: str, keep: bool = False) -> Iterator[Path]:
    """An empty folder below `WORK`, deleted at the end; a failure leaves it with its logs.

    Raises:
        BenchError: BENCH_BUSY while another benchmark has a folder there.
    """
    WORK.mkdir(parents=True, exist_ok=True)
    lock = FolderLock(WORK)
    if not lock.acquire():
        raise BenchError(
            "BENCH_BUSY",
            f"another benchmark is running in {WORK}",
            hint="wait for its end: two at once would measure each other",
        )
    try:
        work = WORK / name
        shutil.rmtree(work, ignore_errors=True)
        work.mkdir(parents=True)
        yield work
        if not keep:
            shutil.rmtree(work, ignore_errors=True)
    finally:
        lock.release()
