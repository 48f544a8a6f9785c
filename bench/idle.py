"""`python -m bench.idle`: what a job takes that has nothing to do.

A left join of two upsert tables reads some rows, and then waits for more that never come. Printed
are, for every minute, the share of a core that the job computed, and the resident memory of each
of its processes: the driver, its JVM, and the sidecar. The broker is not in them. Run it by hand on
an idle machine.
"""

import argparse
import sys
import time
from collections.abc import Iterator
from pathlib import Path

from bench.class_archive import ensure_class_archive
from bench.folders import work_folder
from bench.load import Loader, create_topics
from bench.measure import BenchError, process_tree, processor_s, rss_bytes, stop_tree
from bench.turns import say, use_cores
from bench.workloads.records import PARTITIONS
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child

_TABLE = """CREATE TABLE {name} (id BIGINT, note STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{name}', 'properties.bootstrap.servers' = '{broker}',
  'key.format' = 'csv', 'value.format' = 'csv');
"""
_QUERY = """SET 'rejoin.parallelism' = '2';
INSERT INTO results SELECT l.id, r.note FROM l LEFT JOIN r ON l.id = r.id;
"""
_TOPICS = ("l", "r", "results")
_PART_S = 60.0


def minutes(job: Child, count: int) -> Iterator[str]:
    """A line for each minute that passes; the first one has the start in it."""
    for minute in range(1, count + 1):
        before = {pid: processor_s(pid) for pid in process_tree(job.pid)}
        time.sleep(_PART_S)
        if job.exit_code is not None:
            raise BenchError("BENCH_ENGINE_FAILED", f"it ended:\n{job.log_tail(20)}")
        now = process_tree(job.pid)
        computed = sum(processor_s(pid) - before.get(pid, 0.0) for pid in now)
        sizes = [(_name(pid), rss_bytes(pid) >> 20) for pid in now]
        each = ", ".join(f"{name} {size}" for name, size in sizes)
        total = sum(size for _, size in sizes)
        yield f"minute {minute}: {computed / _PART_S:.3f} of a core, {total} MiB resident ({each})"


def _name(pid: int) -> str:
    """What a process of the job is."""
    try:
        command = Path(f"/proc/{pid}/cmdline").read_text(encoding="utf-8").split("\0")
    except OSError:
        return "ended"
    if command[0].endswith("java"):
        return "JVM"
    return "sidecar" if "service.main" in command else "driver"


def _load(broker: str, rows: int) -> None:
    create_topics(broker, _TOPICS)
    loader = Loader(broker)
    for topic in ("l", "r"):
        keys = ((n % PARTITIONS, str(n).encode()) for n in range(rows))
        loader.send(topic, ((part, key, b"%s,at the door" % key) for part, key in keys))
    loader.finish()


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m bench.idle", description=__doc__, formatter_class=raw
    )
    parser.add_argument("--rows", type=int, default=10_000, help="of each table, before it is idle")
    parser.add_argument("--minutes", type=int, default=5)
    given = parser.parse_args()
    if given.minutes < 1 or given.rows < 0:
        parser.error("--minutes has to be at least 1, and --rows at least 0")
    ensure_class_archive()
    use_cores(2)
    with work_folder("idle") as work, Broker(work / "kafka", heap="512m") as broker:
        at = broker.bootstrap_servers
        _load(at, given.rows)
        sql = work / "job.sql"
        tables = (_TABLE.format(name=name, broker=at) for name in _TOPICS)
        sql.write_text("".join([*tables, _QUERY]), encoding="utf-8")
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(sql)]
        command += ["--checkpoint", f"{work}/checkpoint", "--status-dir", f"{work}/status"]
        job = Child(command, work / "job.log")
        try:
            for line in minutes(job, given.minutes):
                say(line)
        finally:
            stop_tree(job)


if __name__ == "__main__":
    main()
