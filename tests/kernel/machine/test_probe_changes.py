"""Changes of a temporal join's probe side, on their way through further operators.

The rates move meanwhile. By processing time an order keeps the rate that it met when it last
changed, by event time that of its own time, and what is added and retracted again must be gone at
the end, whatever it is keyed by on the way. The watermark of `at` comes at the end; that of `close`
follows at once, so that an order's next change is behind it.
"""

import random
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Literal, TypeAlias

import pytest

from spark_jobs.scenario.file import Input, Scenario, Step
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Encoder, decode
from spark_jobs.scenario.runner import BoundScenario, StepOutcome, bind_scenario
from tests.harness.gateway import kernel
from tests.kernel.oracle.rows import Row

RowKind: TypeAlias = Literal["+I", "-U", "+U", "-D"]
RATES = {0: 10, 1: 11, 2: 11, 3: 13}
DELAYS = {"at": "1", "close": "0", "now_": "0"}
NOTES = ((0, 1), (0, 2), (2, 3), (10, 4), (11, 5), (11, 5))
KAFKA = "'properties.bootstrap.servers' = 'localhost:9092', 'connector' = 'kafka'"
TABLES = f"""
SET 'rejoin.key-groups' = '4';
CREATE TABLE o (
  id INT, k INT, v INT, at TIMESTAMP(3), now_ AS PROCTIME(),
  PRIMARY KEY (id) NOT ENFORCED, WATERMARK FOR at AS at - INTERVAL 'DELAY' HOUR
) WITH ({KAFKA}, 'topic' = 'o', 'format' = 'changelog-json');
CREATE TABLE r (
  rk INT, rate INT, since TIMESTAMP(3), PRIMARY KEY (rk) NOT ENFORCED, WATERMARK FOR since AS since
) WITH ({KAFKA}, 'topic' = 'r', 'format' = 'debezium-json');
CREATE TABLE s (sk INT, note INT) WITH ({KAFKA}, 'topic' = 's', 'format' = 'json');
CREATE TABLE joined (a INT, b BIGINT, c BIGINT)
WITH ({KAFKA}, 'topic' = 'joined', 'format' = 'changelog-json');
"""
RATED = "SELECT id, k, v, rate FROM o JOIN r FOR SYSTEM_TIME AS OF o.{} AS r ON k = rk"
NOTED = "SELECT id, rate, note FROM x LEFT JOIN s ON sk = "

Rated = list[tuple[int, int, int, int]]


def by_key(rated: Rated) -> Counter[Row]:
    groups: dict[int, list[int]] = {}
    for _, k, v, rate in rated:
        groups.setdefault(k, []).append(v * rate)
    return Counter((k, len(found), sum(found)) for k, found in groups.items())


def noted(position: int) -> Callable[[Rated], Counter[Row]]:
    def rows(rated: Rated) -> Counter[Row]:
        found: Counter[Row] = Counter()
        for row in rated:
            notes = [note for key, note in NOTES if key == row[position]]
            found.update((row[0], row[3], note) for note in notes or (None,))
        return found

    return rows


QUERIES: dict[str, tuple[str, Callable[[Rated], Counter[Row]]]] = {
    "aggregate": ("SELECT k, COUNT(*), SUM(v * rate) FROM x GROUP BY k", by_key),
    "join by primary key": (f"{NOTED}id", noted(0)),
    "join by looked-up column": (f"{NOTED}rate", noted(3)),
}


class Shop:
    """Orders that come, change and go; rates that move; notes that are there from the start."""

    def __init__(self, bound: BoundScenario, time: str, rng: random.Random) -> None:
        self._time_attribute = time
        self._rng = rng
        self._backend = MemoryBackend(bound, kernel())
        self._encoders = {name: Encoder(bound.tables[name]) for name in ("o", "r", "s")}
        self._time = datetime(2026, 1, 1)
        self.orders: dict[int, Row] = {}
        self._met: dict[int, int | None] = {}
        self._changed: set[int] = set()
        self._rates: dict[int, list[tuple[datetime, int]]] = {}
        for key, rate in RATES.items():
            self._move(key, rate)
        for note in NOTES:
            self._feed("s", "+I", note)

    def change_one(self) -> None:
        self._time += timedelta(seconds=1)
        if self._rng.random() < 0.2:
            self._move(self._rng.choice([*RATES]), self._rng.choice([10, 11, 12, 13]))
        ident = self._rng.randrange(4)
        self._changed.add(ident)
        new = (ident, self._rng.randrange(5), self._rng.randrange(3), self._time)
        old = self.orders.pop(ident, None)
        if old is not None and self._rng.random() < 0.5:
            new = (ident, old[1], new[2], old[3])  # with its time it keeps its version
        if old is not None and self._rng.random() < 0.3:
            self._feed("o", "-D", old)
            return
        if old is not None:
            self._feed("o", "-U", old)
        self._feed("o", "+I" if old is None else "+U", new)
        self.orders[ident] = new

    def step(self, is_last: bool) -> StepOutcome:
        for ident in self._changed & self.orders.keys():
            versions = self._rates.get(self.orders[ident][1], [])
            self._met[ident] = versions[-1][1] if versions else None
        self._changed.clear()
        step = Step(0, "end") if is_last else Step(0)
        return self._backend.run_step(step, lambda _: True)

    def rated(self) -> Rated:
        found = ((*order[:3], self._rate_of(order)) for order in self.orders.values())
        return [(ident, k, v, rate) for ident, k, v, rate in found if rate is not None]

    def _rate_of(self, order: Row) -> int | None:
        if self._time_attribute == "now_":
            return self._met[order[0]]
        valid = [rate for since, rate in self._rates.get(order[1], []) if since <= order[3]]
        return valid[-1] if valid else None

    def _move(self, key: int, rate: int) -> None:
        self._rates.setdefault(key, []).append((self._time, rate))
        self._feed("r", "+I" if len(self._rates[key]) == 1 else "+U", (key, rate, self._time))

    def _feed(self, table: str, kind: RowKind, row: Row) -> None:
        self._backend.feed(table, self._encoders[table].encode([Input(0, table, 0, kind, row)]))


@pytest.mark.parametrize("time", ["at", "close", "now_"])
@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize("seed", range(4))
def test_changes_add_up(query: str, time: str, seed: int) -> None:
    select, expected = QUERIES[query]
    view = f"CREATE VIEW x AS {RATED.format('now_' if time == 'now_' else 'at')};\n"
    tables = TABLES.replace("DELAY", DELAYS[time])
    bound = bind_scenario(Scenario(query, f"{tables}{view}INSERT INTO joined {select};\n", ()))
    rng = random.Random(seed)  # noqa: S311 - repeatable, not secret
    shop = Shop(bound, time, rng)
    sink: Counter[Row] = Counter()
    for batch in range(8):
        for _ in range(rng.randint(1, 8)):
            shop.change_one()
        outcome = shop.step(is_last=batch == 7)
        for record in outcome.records.get("joined", ()):
            for change in decode(bound.tables["joined"], record):
                sink[change.row] += 1 if change.kind in ("+I", "+U") else -1
        assert min(sink.values(), default=0) >= 0
    assert +sink == expected(shop.rated())
