"""Makes the checkpoint of a release: `python -m tests.checkpoints.make v1 /path/to/its/clone`.

Run it once per state format version, with a clone of the last release that writes it, its kernel
built. `job.sql` stands in the folder already. The job runs twice: stopped in order in the middle,
whose checkpoint is packed, and undisturbed, which tells the expected result.
"""

import json
import shutil
import sys
import tarfile
import tempfile
from collections.abc import Iterator
from pathlib import Path
from random import Random
from typing import Any

from spark_jobs.embedded.broker import Broker
from tests.checkpoints.job import ROOT, OldJob

HOT = 90  # rows under one key that fill more than one page of state
PAD = "x" * 60
Row = dict[str, Any]
Placed = tuple[str, int, Row | None, Row | None]  # table, partition, key, value


def records() -> Iterator[Row]:
    """The inputs, the same every time. `before` is read by the old release."""
    random = Random(1)  # noqa: S311 not for secrets
    for step, hour in (("before", 12), ("tables", 13), ("rows", 14)):
        for table, partition, key, value in _step(random, step, hour):
            yield {"step": step, "table": table, "partition": partition, "key": key, "value": value}


def _step(random: Random, step: str, hour: int) -> Iterator[Placed]:
    """Tables that others look into first, so that every run shows the same to the others."""
    if step != "rows":
        yield from _tables(random, hour)
    if step != "tables":
        yield from _rows(random, hour)


def _tables(random: Random, hour: int) -> Iterator[Placed]:
    for n in range(12):
        key = {"id": random.randrange(10)}
        city = random.choice(["Oslo", "Bergen", "Turku"])
        gone = n > 4 and random.random() < 0.2
        row = {**key, "name": f"name {hour} {n}", "city": city}
        yield "customers", 0, key, None if gone else row
    for n in range(HOT if hour == 12 else 10):
        currency = "EUR" if n % 4 else random.choice(["USD", "NOK"])
        row = {"currency": currency, "rate": n, "rate_time": _time(hour, n * 30)}
        yield "rates", 0, {"currency": currency}, row
    for n in range(30):
        b1 = 3 if n % 3 else random.randrange(10)
        yield "b", 0, None, {"b1": b1, "b2": random.randrange(40), "b3": f"{PAD}{hour} {n}"}
    for n in range(8):
        row = {"currency": f"C{n % 5}", "order_id": f"{hour}-{n}", "at": _time(hour, n * 60)}
        yield "claims", 0, None, {"op": "+I", "data": row}


def _rows(random: Random, hour: int) -> Iterator[Placed]:
    for n in range(60):
        order = {"order_id": random.randrange(40)}
        row = {**order, "customer_id": random.randrange(10), "amount": n, "note": PAD}
        yield "orders", 0, order, None if random.random() < 0.1 else row
    for n in range(HOT if hour == 12 else 20):
        a1 = 7 if n % 3 else random.randrange(10)
        row = {"a1": a1, "a2": random.randrange(40), "a3": f"{PAD}{hour} {n % 50}"}
        yield "a", a1 % 2, None, {"op": "+I", "data": row}
        if n % 5 == 0:
            yield "a", a1 % 2, None, {"op": "-D", "data": row}
    for n in range(HOT if hour == 12 else 20):
        place, currency = random.choice([(0, "EUR"), (0, "USD"), (1, "NOK"), (1, f"X{n}")])
        row = {"order_id": f"o{n % 40}", "currency": currency, "amount": n}
        yield "probes", place, None, {**row, "order_time": _time(hour, n * 30)}
    for n in range(HOT if hour == 12 else 20):
        order_id = "o1" if n % 2 else f"o{n % 45}"
        row = {"order_id": order_id, "carrier": f"{PAD}{n}", "ship_time": _time(hour, n * 35)}
        yield "shipments", 0, None, row


def _time(hour: int, seconds: int) -> str:
    return f"2024-01-01 {hour:02}:{seconds // 60:02}:{seconds % 60:02}"


def main(version: str, release: Path) -> None:
    folder = ROOT / version
    lines = [json.dumps(record) for record in records()]
    (folder / "records.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    with tempfile.TemporaryDirectory(prefix="rejoin-checkpoint-") as work:
        _stopped(folder, Path(work, "stopped"), release)
        _undisturbed(folder, Path(work, "undisturbed"), release)


def _stopped(folder: Path, work: Path, release: Path) -> None:
    work.mkdir()
    with Broker(work / "broker") as broker:
        job = OldJob(folder, work, broker.bootstrap_servers)
        job.create_topics()
        job.feed(job.steps[0])
        job.start(release)
        job.settle()
        job.stop()
        lines = [json.dumps(record) for record in job.written()]
        (folder / "written.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
        for lock in job.checkpoint.rglob(".lock"):
            lock.unlink()
        with tarfile.open(folder / "checkpoint.tar.gz", "w:gz") as packed:
            packed.add(job.checkpoint, "checkpoint", filter=_nobody)
        shutil.rmtree(job.checkpoint)


def _nobody(info: tarfile.TarInfo) -> tarfile.TarInfo:
    info.uid = info.gid = 0
    info.uname = info.gname = ""
    return info


def _undisturbed(folder: Path, work: Path, release: Path) -> None:
    work.mkdir()
    with Broker(work / "broker") as broker:
        job = OldJob(folder, work, broker.bootstrap_servers)
        job.create_topics()
        for step in job.steps:
            job.feed(step)
            if step == job.steps[0]:
                job.start(release)
            job.settle()
        job.stop()
        lines = job.fold(list(job.written()))
        (folder / "expected.txt").write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]).resolve())
