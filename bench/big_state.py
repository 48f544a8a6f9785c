"""`python -m bench.big_state`: a join whose state is larger than its memory.

An inner join of two upsert tables in which every record is a new row of state. Of five right rows
one finds no left row; the others find the left rows in turn, so that the result grows as evenly as
the input. They lie a fifth of what was read apart, which soon is more than fits into memory.
Printed are, for every step of the input, records per second, resident memory and the size of the
checkpoint. Then the driver is killed and started again: how long until a new record's result is
committed. The results are counted and their ids added up. Run it by hand on an idle machine.
"""

import argparse
import json
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

from confluent_kafka import Consumer, TopicPartition

from bench.class_archive import ensure_class_archive
from bench.folders import work_folder
from bench.job_settings import set_statements, setting
from bench.load import Loader, create_topics
from bench.measure import BenchError, folder_bytes, stop_tree, tree_rss_bytes
from bench.results import verify_ids
from bench.turns import say, use_cores
from bench.workloads.records import PARTITIONS, Record
from spark_jobs.embedded.broker import Broker
from spark_jobs.embedded.process import Child

_EXTRA = 1_000  # records after the restart
_LEAST_ROWS = 10 * _EXTRA  # a fifth of the keys has no result before it
_STRIDE = 2_654_435_761  # a prime: neighbouring records have keys that are far apart
_SAMPLE_S = 0.5
_NOTE = "please leave it at the door"
_TABLE = """CREATE TABLE {name} (id BIGINT, note STRING, PRIMARY KEY (id) NOT ENFORCED) WITH (
  'connector' = 'upsert-kafka', 'topic' = '{name}', 'properties.bootstrap.servers' = '{broker}',
  'key.format' = 'csv', 'value.format' = 'csv');
"""
_QUERY = """SET 'rejoin.parallelism' = '2';
INSERT INTO results SELECT l.id, r.note FROM lefts AS l JOIN rights AS r ON l.id = r.id;
"""


@dataclass(frozen=True, slots=True)
class Sample:
    """What was seen at one moment; bytes of resident memory and of the checkpoint."""

    at_s: float
    records: int
    rss_bytes: int
    checkpoint_bytes: int


class Input:
    """Two topics of `keys` records each; four of five right rows find a left one."""

    def __init__(self, keys: int) -> None:
        self.keys = keys
        self.alone = keys // 5  # right rows that find no left one

    def id(self, number: int) -> int:
        return number * _STRIDE % self.keys

    def lefts(self) -> Iterator[Record]:
        return (_record(self.id(n)) for n in range(self.keys))

    def rights(self) -> Iterator[Record]:
        for n in range(self.keys):
            yield _record(self.keys + n if n % 5 == 4 else self.id(n - n // 5))

    def extra(self) -> Iterator[Record]:
        """The right rows that come after the restart."""
        return (_record(self.id(self.keys - self.alone + n)) for n in range(_EXTRA))

    def expected(self) -> tuple[int, int]:
        """The number of results, and the sum of their ids."""
        count = self.keys - self.alone + _EXTRA
        return count, sum(map(self.id, range(count)))


def _record(id_: int) -> Record:
    key = str(id_).encode()
    return id_ % PARTITIONS, key, b"%s,%s" % (key, _NOTE.encode())


class Job:
    """The driver's process, and what its status says; it starts at once."""

    def __init__(self, work: Path, broker: str, settings: Mapping[str, str]) -> None:
        self._work = work
        sql = work / "job.sql"
        names = ("lefts", "rights", "results")
        tables = (_TABLE.format(name=name, broker=broker) for name in names)
        sql.write_text("".join([set_statements(settings), *tables, _QUERY]), encoding="utf-8")
        command = [sys.executable, "-m", "spark_jobs.cli", "run", str(sql), "--no-sidecar"]
        command += ["--checkpoint", f"{work}/checkpoint", "--status-dir", f"{work}/status"]
        self.child = Child(command, work / "job.log")

    @property
    def records(self) -> int:
        """Records of committed epochs, those before a restart included."""
        try:
            status = json.loads((self._work / "status" / "status.json").read_text(encoding="utf-8"))
        except FileNotFoundError:
            return 0
        sources = (source for query in status["queries"] for source in query["sources"])
        return sum(part["offset"] for source in sources for part in source["partitions"])

    def check(self) -> None:
        if self.child.exit_code is not None:
            raise BenchError("BENCH_ENGINE_FAILED", f"it ended:\n{self.child.log_tail(20)}")


def grow(job: Job, work: Path, records: int) -> list[Sample]:
    """Samples until all records are committed."""
    started, found = time.monotonic(), [Sample(0.0, 0, 0, 0)]
    while found[-1].records < records:
        time.sleep(_SAMPLE_S)
        job.check()
        now = job.records
        if now > found[-1].records:
            rss, disk = tree_rss_bytes(job.child.pid), folder_bytes(work / "checkpoint")
            found.append(Sample(time.monotonic() - started, now, rss, disk))
    return found


def restarted_s(work: Path, broker: str, settings: Mapping[str, str], given: Input) -> float:
    """Seconds from a start to the first committed result of a record that came meanwhile."""
    _send(broker, "rights", given.extra())
    results = _at_the_end(broker)
    started = time.monotonic()
    job = Job(work, broker, settings)
    try:
        while results.poll(0.05) is None:
            job.check()
        taken = time.monotonic() - started
        while job.records < 2 * given.keys + _EXTRA:
            job.check()
            time.sleep(_SAMPLE_S)
    finally:
        results.close()
        stop_tree(job.child)
    verify_ids(broker, "results", given.expected())
    return taken


def _at_the_end(broker: str) -> Consumer:
    """A consumer of what is committed in the result topic from now on."""
    consumer = Consumer(
        {
            "bootstrap.servers": broker,
            "group.id": "rejoin-bench-restart",
            "isolation.level": "read_committed",
        }
    )
    at = [TopicPartition("results", partition) for partition in range(PARTITIONS)]
    for place in at:
        place.offset = consumer.get_watermark_offsets(place, timeout=30.0, cached=False)[1]
    consumer.assign(at)
    return consumer


def _send(broker: str, topic: str, records: Iterator[Record]) -> None:
    loader = Loader(broker)
    loader.send(topic, records)
    loader.finish()


def report(samples: list[Sample], step: int) -> Iterator[str]:
    """A line for every `step` records."""
    yield f"{'records':>12}  {'records/s':>9}  {'resident':>10}  {'checkpoint':>10}"
    last = samples[0]
    for sample in samples[1:]:
        if sample.records - last.records < step and sample is not samples[-1]:
            continue
        rate = (sample.records - last.records) / (sample.at_s - last.at_s)
        resident, disk = sample.rss_bytes >> 20, sample.checkpoint_bytes >> 20
        yield f"{sample.records:12,}  {rate:9,.0f}  {resident:6,} MiB  {disk:6,} MiB"
        last = sample


def main() -> None:
    raw = argparse.RawDescriptionHelpFormatter
    parser = argparse.ArgumentParser(
        prog="python -m bench.big_state", description=__doc__, formatter_class=raw
    )
    parser.add_argument("--rows", type=int, default=50_000_000, help="rows of state")
    parser.add_argument("--step", type=int, default=5_000_000, help="records of a line")
    parser.add_argument(
        "--set", type=setting, action="append", default=[], help="NAME=VALUE of a SET statement"
    )
    options = parser.parse_args()
    settings = dict(options.set)
    if options.rows < _LEAST_ROWS:
        parser.error(f"--rows has to be at least {_LEAST_ROWS:,}")
    given = Input(options.rows // 2)
    ensure_class_archive()
    use_cores(2)
    with work_folder("big-state") as work, Broker(work / "kafka", heap="1g") as broker:
        at = broker.bootstrap_servers
        create_topics(at, ["lefts", "rights", "results"])
        _send(at, "lefts", given.lefts())
        _send(at, "rights", given.rights())
        job = Job(work, at, settings)
        try:
            samples = grow(job, work, 2 * given.keys)
        finally:
            job.child.kill()
            stop_tree(job.child)
        for line in report(samples, options.step):
            say(line)
        again_s = restarted_s(work, at, settings, given)
        say(f"killed and started again: {again_s:.1f} s to the first result")


if __name__ == "__main__":
    main()
