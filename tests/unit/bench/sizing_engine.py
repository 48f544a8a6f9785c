"""In place of `rejoin run`: leaves the files of ten epochs in the folder that it is given.

Each epoch reads 500 records of two tables, works for a fifth of a second and writes 800 results.
"""

import json
import sys
import time
from pathlib import Path

from spark_jobs.status import (
    BuildStatus,
    JobStatus,
    OperatorStatus,
    QueryStatus,
    SideStatus,
    now,
    write_status,
)

EPOCHS, BUSY_S, PAUSE_S = 10, 0.2, 0.4


def main(root: Path) -> None:
    query = root / "checkpoint" / "shipped"
    for name in ("offsets", "commits", "state/0/0"):
        (query / name).mkdir(parents=True)
    with (root / "events" / "local-1").open("w", encoding="utf-8") as events:
        for epoch in range(EPOCHS):
            at = {str(partition): 250 * (epoch + 1) for partition in range(2)}
            sources = (json.dumps({table: at}) for table in ("orders_a", "orders_b"))
            (query / "offsets" / str(epoch)).write_text("\n".join(["v1", "{}", *sources]))
            until = time.process_time() + BUSY_S
            while time.process_time() < until:
                pass
            (query / f"state/0/0/{epoch + 1}_x.changelog").write_bytes(b"x" * 1000)
            for read, cpu_ns, written in ((0, 3, 50_000), (50_000, 1, 0)):
                events.write(_task(read, cpu_ns, written) + "\n")
            _write_status(root / "status", epoch)
            (root / "results").write_text(str(800 * (epoch + 1)))
            (query / "commits" / str(epoch)).write_text("v1")
            time.sleep(PAUSE_S)


def _task(read: int, cpu_ns: int, written: int) -> str:
    task = {
        "Event": "SparkListenerTaskEnd",
        "Task Info": {"Finish Time": time.time() * 1000},
        "Task Metrics": {
            "Executor CPU Time": cpu_ns,
            "Shuffle Read Metrics": {"Remote Bytes Read": 0, "Local Bytes Read": read},
            "Shuffle Write Metrics": {"Shuffle Bytes Written": written},
        },
    }
    return json.dumps(task, separators=(",", ":"))


def _write_status(folder: Path, epoch: int) -> None:
    sides = SideStatus(side="left", rows=100 * epoch), SideStatus(side="right", rows=epoch)
    join = OperatorStatus(id="j", kind="regular-join", sides=sides, state_bytes=7000 * epoch)
    status = JobStatus(
        job="j",
        pid=1,
        started_at=now(),
        updated_at=now(),
        state="running",
        build=BuildStatus(version="1"),
        queries=(QueryStatus(name="q", sink="s", operators=(join,)),),
    )
    write_status(folder, status)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
