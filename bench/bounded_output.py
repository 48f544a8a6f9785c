"""`python -m bench.bounded_output`: four epochs whose results do not fit into the heap.

    hot-key   rows that come under a join key with many rows on the other side
    gate      rows of one key that waited until the other side was loaded, all in one epoch
    end       rows of one key without a partner, all padded when the inputs end
    jump      rows of one key that waited, when a watermark jumps by two months

Each is a bounded job with a small heap, exactly once, from a broker to a broker. The records of
the sink are counted and their ids added up. Printed are the most of the heap that was in use after
a collection, processor time, and seconds, which mean something on an idle machine only.
"""

import argparse
import os
import re
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Producer

from bench.folders import work_folder
from bench.load import create_topics
from bench.measure import BenchError, process_tree, processor_s, stop_tree
from bench.results import verify_ids
from bench.turns import say, use_cores
from bench.workloads.records import PARTITIONS
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child

_DAY_MS = 24 * 3_600_000
_START_MS = 1_700_000_000_000
_EPOCH_ROWS = 250_000
_HOT = 1  # the key
_NOTE = "x" * 300
_SAMPLE_S = 0.5
_PAUSE = re.compile(r"(\d+)M->(\d+)M\((\d+)M\)")
_TABLE = """CREATE TABLE {name} ({columns}) WITH ('connector' = '{connector}', 'topic' = '{name}',
  'properties.bootstrap.servers' = '{broker}', {options});
"""
_READ = "'scan.startup.mode' = 'earliest-offset', 'scan.bounded.mode' = 'latest-offset'"
_CSV = "'format' = 'csv'"
_KEYED = "'key.format' = 'csv', 'value.format' = 'csv'"
_TIMED = """k INT, id BIGINT, ms BIGINT, note STRING, ts AS TO_TIMESTAMP_LTZ(ms, 3),
  WATERMARK FOR ts AS ts"""
_PROBES = "SELECT p.id, b.id, p.note FROM probes AS p LEFT JOIN builds"

Sent = tuple[int, bytes | None, bytes]  # partition, key, value


@dataclass(frozen=True, slots=True)
class Case:
    """Two inputs and a query over them: declared columns, whether the second one is keyed.

    `records` gives those of an input, `expected` the number of results and the sum of their ids.
    """

    columns: tuple[str, str]
    keyed: bool
    query: str
    records: Callable[[str, int], Iterator[Sent]]
    expected: Callable[[int], tuple[int, int]]

    def sql(self, broker: str) -> str:
        names = ("probes", "builds")
        tables = [
            _TABLE.format(
                name=name,
                columns=columns,
                connector="upsert-kafka" if keyed else "kafka",
                broker=broker,
                options=f"{_KEYED}, 'scan.bounded.mode' = 'latest-offset'"
                if keyed
                else f"{_CSV}, {_READ}",
            )
            for name, columns, keyed in zip(names, self.columns, (False, self.keyed), strict=True)
        ]
        tables.append(
            _TABLE.format(
                name="results",
                columns="id BIGINT, other BIGINT, note STRING",
                connector="kafka",
                broker=broker,
                options=f"{_CSV}, 'properties.transaction.timeout.ms' = '900000'",
            )
        )
        limit = f"SET 'rejoin.max-offsets-per-trigger' = '{_EPOCH_ROWS}';\n"
        parallelism = "SET 'rejoin.parallelism' = '2';\n"
        return "".join([limit, parallelism, *tables, f"INSERT INTO results {self.query};\n"])


def numbered(rows: int, row: Callable[[int], str]) -> Iterator[Sent]:
    return ((number % PARTITIONS, None, row(number).encode()) for number in range(rows))


def everywhere(key: int | None, row: str) -> list[Sent]:
    """The same record in each partition."""
    found = None if key is None else str(key).encode()
    return [(partition, found, row.encode()) for partition in range(PARTITIONS)]


_MATCHES = 100_000


def _hot_key(topic: str, rows: int) -> Iterator[Sent]:
    size = rows // _MATCHES if topic == "probes" else _MATCHES
    return numbered(size, lambda number: f"{_HOT},{number},")


def _gate(topic: str, rows: int) -> Iterator[Sent]:
    """As many records on the side that is loaded as there are rows that wait for it."""
    if topic == "probes":
        yield from numbered(rows, lambda number: f"{_HOT},{number},{_NOTE}")
    else:
        for number in range(rows):
            key = number % 1_000
            yield key % PARTITIONS, str(key).encode(), f"{key},{key}".encode()


def _end(topic: str, rows: int) -> Iterator[Sent]:
    if topic == "probes":
        yield from numbered(rows, lambda number: f"{_HOT},{number},{_START_MS + number},{_NOTE}")


def _jump(topic: str, rows: int) -> Iterator[Sent]:
    if topic == "probes":
        yield from numbered(rows, lambda number: f"{_HOT},{number},{_START_MS + number},{_NOTE}")
        yield from everywhere(None, f"0,0,{_START_MS + 60 * _DAY_MS},")
    else:
        yield 0, b"1", f"{_HOT},{_HOT},{_START_MS - _DAY_MS},".encode()
        yield from everywhere(0, f"0,0,{_START_MS + 365 * _DAY_MS},")


def _one_each(rows: int) -> tuple[int, int]:
    return rows, rows * (rows - 1) // 2


def _pairs(rows: int) -> tuple[int, int]:
    probes = rows // _MATCHES
    return probes * _MATCHES, _MATCHES * probes * (probes - 1) // 2


CASES = {
    "hot-key": Case(
        ("k INT, id BIGINT, note STRING", "k INT, id BIGINT, note STRING"),
        False,
        "SELECT p.id, b.id, p.note FROM probes AS p JOIN builds AS b ON p.k = b.k",
        _hot_key,
        _pairs,
    ),
    "gate": Case(
        (
            "k INT, id BIGINT, note STRING, at AS PROCTIME()",
            "k INT, id BIGINT, PRIMARY KEY (k) NOT ENFORCED",
        ),
        True,
        f"{_PROBES} FOR SYSTEM_TIME AS OF p.at AS b ON p.k = b.k",
        _gate,
        _one_each,
    ),
    "end": Case(
        (f"{_TIMED} - INTERVAL '30' DAY", _TIMED),
        False,
        f"{_PROBES} AS b ON p.k = b.k"
        " AND p.ts BETWEEN b.ts - INTERVAL '1' HOUR AND b.ts + INTERVAL '1' HOUR",
        _end,
        _one_each,
    ),
    "jump": Case(
        (f"{_TIMED} - INTERVAL '30' DAY", f"{_TIMED}, PRIMARY KEY (k) NOT ENFORCED"),
        True,
        f"{_PROBES} FOR SYSTEM_TIME AS OF p.ts AS b ON p.k = b.k",
        _jump,
        lambda rows: (rows + PARTITIONS, _one_each(rows)[1]),
    ),
}
_ROWS = {"hot-key": 1_000 * _MATCHES, "gate": 2_000_000, "end": 2_000_000, "jump": 2_000_000}


def run(name: str, rows: int, heap_mb: int, timeout_s: float) -> str:
    """One case; raises BenchError if the job fails or its results are wrong."""
    case = CASES[name]
    with work_folder(f"bounded-output-{name}") as work:
        with Broker(work / "kafka", heap="512m") as broker:
            at = broker.bootstrap_servers
            create_topics(at, ["probes", "builds", "results"])
            for topic in ("probes", "builds"):
                _send(at, topic, case.records(topic, rows))
            job = work / "job.sql"
            job.write_text(case.sql(at), encoding="utf-8")
            seconds, processor = _measured(job, work, heap_mb, timeout_s)
            found = verify_ids(at, "results", case.expected(rows))
        peak = heap_peak_mb(work.glob("gc*.log"))
    return (
        f"{name:>8}: {found:,} results, heap at most {peak} MB of {heap_mb} after a collection,"
        f" {processor:.0f} s of processor time, {seconds:.0f} s"
    )


def _send(at: str, topic: str, records: Iterable[Sent]) -> None:
    producer = Producer({"bootstrap.servers": at, "linger.ms": 50, "compression.type": "lz4"})
    for partition, key, value in records:
        while True:
            try:
                producer.produce(topic, value, key, partition)
                break
            except BufferError:
                producer.poll(0.1)
    producer.flush()


def _measured(job: Path, work: Path, heap_mb: int, timeout_s: float) -> tuple[float, float]:
    """Seconds, and seconds of processor time."""
    logs = f"-Xlog:gc:file={work}/gc%p.log"
    command = ["env", f"REJOIN_MEMORY_MB={heap_mb}", f"JAVA_TOOL_OPTIONS={logs}"]
    command += [sys.executable, "-m", "spark_jobs.cli", "run", str(job), "--no-sidecar"]
    command += ["--checkpoint", f"{work}/checkpoint", "--status-dir", f"{work}/status"]
    started = time.monotonic()
    child = Child(command, work / "job.log")
    computed: dict[int, float] = {}
    try:
        while not child.wait(_SAMPLE_S):
            for pid in process_tree(child.pid):
                computed[pid] = processor_s(pid, computed.get(pid, 0.0))
            if time.monotonic() - started > timeout_s:
                raise BenchError("BENCH_TIMEOUT", f"still running:\n{child.log_tail()}")
    finally:
        stop_tree(child)
    if child.exit_code != 0:
        peak = heap_peak_mb(work.glob("gc*.log"))
        raise BenchError(
            "BENCH_ENGINE_FAILED",
            f"exit code {child.exit_code} with a heap of {heap_mb} MB, of which {peak} MB were in"
            f" use after a collection; {work}:\n{child.log_tail(20)}",
        )
    return time.monotonic() - started, sum(computed.values())


def heap_peak_mb(logs: Iterable[Path]) -> int:
    """The most that was left of the heap by any collection."""
    found = (_PAUSE.findall(log.read_text(encoding="utf-8")) for log in logs)
    return max((int(after) for pauses in found for _, after, _ in pauses), default=0)


def main() -> None:
    about = __doc__ or ""
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m bench.bounded_output", description=about, formatter_class=raw
    )
    parser.add_argument("--case", choices=CASES, nargs="+", default=list(CASES))
    parser.add_argument("--rows", type=int, help="results; by default 100 M of hot-key, else 2 M")
    parser.add_argument("--heap-mb", type=int, default=1024)
    parser.add_argument("--timeout", type=float, default=1_800.0, help="most seconds for a case")
    given = parser.parse_args()
    use_cores(min(2, os.cpu_count() or 2))
    for name in given.case:
        say(run(name, given.rows or _ROWS[name], given.heap_mb, given.timeout))


if __name__ == "__main__":
    main()
