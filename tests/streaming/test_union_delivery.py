"""Unions into an exactly-once sink: every branch's writers have a ledger before the first epoch."""

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TypeAlias

import pytest
from pyspark.sql import SparkSession

from spark_jobs.embedded.broker import Broker
from spark_jobs.errors import RejoinError
from tests.harness.drivers import Drivers, Word

_TABLES = """\
CREATE TABLE o (id BIGINT, k BIGINT) WITH ('connector' = 'kafka', 'topic' = '{prefix}-o',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
CREATE TABLE r (k BIGINT, v BIGINT) WITH ('connector' = 'kafka', 'topic' = '{prefix}-r',
  'properties.bootstrap.servers' = '{servers}', 'value.format' = 'json',
  'scan.startup.mode' = 'earliest-offset');
"""
_SINKS = {
    "append": "CREATE TABLE sink (a BIGINT, b BIGINT) WITH ('connector' = 'kafka',"
    " 'value.format' = 'json', ",
    "retract": "CREATE TABLE sink (a BIGINT, b BIGINT) WITH ('connector' = 'kafka',"
    " 'value.format' = 'changelog-json', ",
    "upsert": "CREATE TABLE sink (a BIGINT, b BIGINT, PRIMARY KEY (a) NOT ENFORCED) WITH ("
    "'connector' = 'upsert-kafka', 'key.format' = 'json', 'value.format' = 'json', ",
}
_TO = "'topic' = '{prefix}-out', 'properties.bootstrap.servers' = '{servers}');\n"
_BY_KEY = "SELECT o.id, r.v FROM o JOIN r ON o.k = r.k"
_BY_ID = "SELECT o.k AS id, r.v FROM o JOIN r ON o.id = r.k"
_BARE = "SELECT id + 5000 AS id, k AS v FROM o"
_FIRST = "SELECT DISTINCT id, k FROM o"
_OVER = "SELECT id, v FROM"
Pair: TypeAlias = tuple[int, int]


def by_key(*ids: int) -> Counter[Pair]:
    return Counter((i, 2000 + i) for i in ids)


def by_id(*ids: int) -> Counter[Pair]:
    return Counter((1000 + i, i) for i in ids)


def bare(*ids: int) -> Counter[Pair]:
    return Counter((5000 + i, 1000 + i) for i in ids)


class Unions(Drivers):
    """A query over orders that meet two rows each. No driver restarts it."""

    def __init__(self, spark: SparkSession, servers: str, folder: Path) -> None:
        super().__init__(spark, servers, folder, "")
        self.create("o", "r", "out")
        self._sent: Counter[str] = Counter()

    def start(self, sink: str, query: str) -> None:
        self.sql = f"{_TABLES}{_SINKS[sink]}{_TO}INSERT INTO sink {query};"
        self.go_on()

    def go_on(self, epoch_written: Word | None = None) -> None:
        self.driver_with({"restart-strategy.type": "none"}, epoch_written)

    def arrive(self, *ids: int) -> None:
        self.rows("r", [{"k": i, "v": i} for i in ids])
        self.rows("r", [{"k": 1000 + i, "v": 2000 + i} for i in ids])
        self.rows("o", [{"id": i, "k": 1000 + i} for i in ids])

    def rows(self, topic: str, rows: Sequence[Mapping[str, int]]) -> None:
        self.send(topic, rows)
        self._sent[topic] += len(rows)

    def until_done(self) -> None:
        for topic, count in self._sent.items():
            self.until_read(topic, count)

    def writers(self) -> int:
        """How many have a ledger."""
        return next(n for n in range(100) if self.ledger("sink", n) is None)

    def break_epoch(self, writer: int, *ids: int) -> None:
        """End the driver in an epoch that one writer has not committed."""
        self.fence("sink", writer)
        self.arrive(*ids)
        with pytest.raises(RejoinError, match="SINK_FENCED"):
            self.until(lambda: False)
        self.end()

    def pairs(self) -> Counter[Pair]:
        found: Counter[Pair] = Counter()
        for text, count in self.results().items():
            row = json.loads(text)
            row = row.get("data", row)  # changelog-json
            found[row["a"], row["b"]] += count
        return found


@pytest.fixture
def unions(spark: SparkSession, broker: Broker, tmp_path: Path) -> Iterator[Unions]:
    made = Unions(spark, broker.bootstrap_servers, tmp_path)
    yield made
    made.end()


@pytest.mark.parametrize("sink", _SINKS)
def test_union_of_two_joins_goes_on_where_it_broke(unions: Unions, sink: str) -> None:
    """The third writer is the second join's: its commit fails, others' do not."""
    unions.start(sink, f"{_BY_KEY} UNION ALL {_BY_ID}")
    unions.arrive(*range(20))
    unions.until_done()
    assert unions.writers() == 4
    unions.break_epoch(2, *range(20, 50))
    unions.go_on()
    unions.until_done()
    assert unions.pairs() == by_key(*range(50)) + by_id(*range(50))


@pytest.mark.parametrize(
    ("query", "writers"),
    [
        (f"{_BARE} UNION ALL {_BY_KEY}", 3),
        (f"{_BY_KEY} UNION ALL ({_BARE} UNION ALL {_BY_ID})", 5),
        (f"{_OVER} ({_BY_KEY} UNION ALL ({_BY_ID} UNION ALL {_BARE})) WHERE id >= 0", 5),
    ],
)
def test_any_tree_of_unions_goes_on_where_it_broke(
    unions: Unions, query: str, writers: int
) -> None:
    """The first and the last writer fail in turn, while the others commit."""
    unions.start("append", query)
    ids = list(range(20))
    unions.arrive(*ids)
    unions.until_done()
    assert unions.writers() == writers
    for writer in (0, writers - 1):
        more = range(len(ids), len(ids) + 20)
        unions.break_epoch(writer, *more)
        unions.go_on()
        unions.until_done()
        ids += more
    second = by_id(*ids) if _BY_ID in query else Counter[Pair]()
    assert unions.pairs() == by_key(*ids) + bare(*ids) + second


def test_quiet_branch_takes_part_in_each_epoch(unions: Unions) -> None:
    unions.start("append", "SELECT DISTINCT id, k FROM o UNION ALL SELECT DISTINCT k, v FROM r")
    for topic in ("r", "o", "r"):
        unions.rows(topic, [{"id": i, "k": i, "v": i} for i in range(20)])
        unions.until_done()
    unions.end()
    unions.go_on()
    unions.rows("o", [{"id": i, "k": i} for i in range(20, 40)])
    unions.until_done()
    ledgers = {unions.ledger("sink", writer) for writer in range(unions.writers())}
    assert ledgers == {unions.launch.folder.next_epoch}
    assert unions.pairs() == Counter([(i, i) for i in range(40)] + [(i, i) for i in range(20)])


def test_lost_ledger_of_an_operator_beside_a_scan_is_asked_for(unions: Unions) -> None:
    """The operator's second writer is the third of three; it has not committed the epoch."""
    unions.start("append", f"{_BARE} UNION ALL {_FIRST}")
    unions.rows("o", [{"id": i, "k": 1000 + i} for i in range(20)])
    unions.until_done()
    assert unions.writers() == 3
    unions.break_epoch(2, *range(20, 50))
    unions.lose_ledger("sink", 2)
    assert unions.refusal().code == "SINK_LEDGER_MISSING"
    unions.go_on("no")
    unions.until_read("o", 50)
    assert unions.pairs() == bare(*range(50)) + Counter((i, 1000 + i) for i in range(50))
