"""Rows that change their primary key while large values are left out, against a model database."""

import base64
import json
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import pytest

from spark_jobs.plan.nodes.plan_json import to_json
from spark_jobs.scenario.file import Scenario
from spark_jobs.scenario.runner import bind_scenario
from tests.harness.gateway import kernel
from tests.kernel.machine.moving_rows import (
    Database,
    Event,
    Row,
    batches,
    repeating,
    with_note,
    with_offsets,
    without_lsn,
)

_KAFKA = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'localhost:9092'"
_UPSERT = (
    "'connector' = 'upsert-kafka', 'properties.bootstrap.servers' = 'localhost:9092',"
    " 'key.format' = 'json', 'value.format' = 'json'"
)
WAIT_MS = 600_000
NOON = 1_700_000_000_000


class Job:
    """`SELECT *` of the table in memory; `shown` is its result folded, `rejected` are lsns."""

    def __init__(
        self, *, upserts: bool = False, where: str = "", settings: str = "", options: str = ""
    ) -> None:
        key = ", PRIMARY KEY (id) NOT ENFORCED" if upserts else ""
        sink = _UPSERT if upserts else f"{_KAFKA}, 'format' = 'changelog-json'"
        sql = (
            "SET 'rejoin.key-groups' = '4';",
            settings,
            "CREATE TABLE t (id INT, note STRING, n INT, PRIMARY KEY (id) NOT ENFORCED) WITH (",
            f"{_KAFKA}, 'topic' = 't', 'format' = 'debezium-json',",
            "'rejoin.dead-letter.topic' = 'd',",
            f"'rejoin.debezium.key-changes' = 'heal'{options});",
            f"CREATE TABLE r (id INT, note STRING, n INT{key}) WITH ({sink}, 'topic' = 'r');",
            *("INSERT INTO r SELECT id, note, n FROM t", where, ";"),
        )
        (plan,) = bind_scenario(Scenario("moved", " ".join(sql), ())).plans
        self._run = kernel().local(to_json(plan.root))
        self._upserts = upserts
        self.shown: dict[int, Row] = {}
        self.rejected: Counter[int] = Counter()

    def step(self, batch: Sequence[Event] = (), clock_ms: int | None = None) -> list[str]:
        """The kinds of the rows that it emits."""
        if clock_ms is not None:
            self._run.advance(clock_ms)
        if batch:
            self._run.feed("t", json.dumps(batch))
        return self._take(json.loads(self._run.step()))

    def restart(self) -> None:
        self._run.restart()

    def end(self) -> None:
        self._take(json.loads(self._run.end()))

    def _take(self, told: dict[str, Any]) -> list[str]:
        for kind, key, note, n in told["rows"]:
            self._fold(kind, key, (note, n))
        for reject in told["rejects"]:
            assert reject["reason"] == "debezium-unavailable-value"
            event = json.loads(base64.b64decode(reject["value"]))
            self.rejected[event["source"].get("lsn", 0)] += 1
        return [row[0] for row in told["rows"]]

    def _fold(self, kind: str, key: int, row: Row) -> None:
        if kind in ("+I", "+U"):
            assert self._upserts or key not in self.shown, (kind, key, row)
            self.shown[key] = row
        elif self._upserts:
            del self.shown[key]
        else:
            assert self.shown.pop(key) == row, (kind, key, row)

    def cells(self) -> tuple[int, int]:
        """Key changes and rows of other keys that the operator behind the normaliser stores."""
        names = [cell[:2] for g in json.loads(self._run.cells())[-1].values() for cell in g]
        return names.count("50"), names.count("4b")


def random_database(rng: random.Random) -> Database:
    database = Database(
        rng,
        partitions=rng.choice([1, 2, 3, 3]),
        keys=rng.choice([3, 6]),
        leaves_out=rng.choice([0.6, 1.0]),
    )
    for key in rng.sample(range(database.keys), rng.choice([0, 1])):
        database.unread(key)
    for _ in range(80):
        database.write()
    return database


@pytest.mark.parametrize("seed", range(6))
def test_result_is_the_database(seed: int) -> None:
    """However partitions and batches cut the events; what is rejected nobody can know."""
    rng = random.Random(f"moves {seed}")  # noqa: S311 - repeatable, not secret
    database = random_database(rng)
    job = Job(upserts=rng.random() < 0.5)
    for batch in batches(database.events, rng):
        job.step(batch)
        assert job.shown.items() <= database.history
        if rng.random() < 0.2:
            job.restart()
    job.end()
    assert job.shown == database.visible()
    assert set(job.rejected) <= set(database.hidden)
    assert set(job.rejected) >= set(database.hidden) - database.superseded
    assert all(n == 1 for n in job.rejected.values())


@pytest.mark.parametrize("seed", range(4))
def test_repeated_events_change_nothing(seed: int) -> None:
    """A connector that crashes says again what it had said last."""
    rng = random.Random(f"repeats {seed}")  # noqa: S311 - repeatable, not secret
    database = random_database(rng)
    filters = rng.random() < 0.5
    job = Job(where="WHERE note <> 'x' OR note IS NULL" if filters else "")
    for batch in batches(repeating(database.events, rng), rng):
        job.step(batch)
        assert job.shown.items() <= database.history
    job.end()
    visible = database.visible().items()
    assert job.shown == {k: row for k, row in visible if not filters or row[0] != "x"}
    assert set(job.rejected) <= set(database.hidden)
    assert sum(job.cells()) <= 2 * len(database.rows)


def move(database: Database, old: int, new: int) -> tuple[list[Event], list[Event]]:
    """A row gets another key: what is said under the old one, and under the new one."""
    first = len(database.events)
    database.move(old, new, note=None)
    gone, tombstone, come = with_offsets(database.events)[first:]
    return [gone, tombstone], [come]


def one_row(note: str = "L1") -> tuple[Database, list[Event]]:
    """A database with row 0, and the event of it."""
    database = Database(random.Random(1), partitions=2, keys=9, leaves_out=1)  # noqa: S311
    database.rows[0] = (note, 0)
    database.say("c", 0, logged=True)
    return database, with_offsets(database.events)


@pytest.mark.parametrize("old_first", [True, False])
def test_halves_that_come_in_two_batches(old_first: bool) -> None:
    database, first = one_row()
    old, new = move(database, 0, 1)
    job = Job()
    assert job.step(first) == ["+I"]
    assert job.step(old if old_first else new) == (["-D"] if old_first else [])
    job.restart()
    assert sorted(job.step(new if old_first else old)) == (["+I"] if old_first else ["+I", "-D"])
    assert (job.shown, job.rejected) == ({1: ("L1", 0)}, Counter())


def test_a_row_that_moves_on_before_anybody_knows_it() -> None:
    """The last half first, the first one last."""
    database, first = one_row()
    halves = [move(database, 0, 1), move(database, 1, 2), move(database, 2, 0)]
    job = Job()
    job.step(first)
    # key 1 stands in a partition of its own, so that its events may come last
    job.step([*halves[0][0], *halves[1][1], *halves[2][0], *halves[2][1]])
    assert job.shown == {}
    job.step([*halves[0][1], *halves[1][0]])
    assert (job.shown, job.rejected) == ({0: ("L1", 0)}, Counter())
    assert job.cells() == (1, 1)


def test_a_row_of_another_key_is_healed_until_it_is_whole() -> None:
    database, first = one_row()
    old, new = move(database, 0, 1)
    job = Job()
    job.step([*first, *old, *new])
    job.restart()
    job.step(database.said(lambda: database.set(1, ("L1", 5), logged=False)))
    assert job.shown == {1: ("L1", 5)}
    job.step(database.said(lambda: database.set(1, ("L2", 5), logged=True)))
    assert (job.shown, job.cells()) == ({1: ("L2", 5)}, (0, 0))
    job.step(database.said(lambda: database.set(1, ("L2", 6), logged=False)))
    assert (job.shown, job.rejected) == ({1: ("L2", 6)}, Counter())


@pytest.mark.parametrize("wait", ["clock", "end"])
def test_a_row_whose_old_key_never_speaks_is_rejected(wait: str) -> None:
    database, first = one_row()
    old, new = move(database, 0, 1)
    update = database.said(lambda: database.set(1, ("L1", 5), logged=False))
    job = Job()
    job.step([*first, *new, *update], clock_ms=NOON)
    job.step(clock_ms=NOON + WAIT_MS - 1)
    assert (job.shown, job.rejected) == ({0: ("L1", 0)}, Counter())
    if wait == "end":
        job.end()
    else:
        job.step(clock_ms=NOON + WAIT_MS + 5_000)
    assert (job.shown, job.rejected.total()) == ({0: ("L1", 0)}, 2)
    if wait == "clock":
        # each later event that lacks the value is rejected as well, until the old key speaks
        job.step(database.said(lambda: database.set(1, ("L1", 6), logged=False)))
        assert (job.shown, job.rejected.total()) == ({0: ("L1", 0)}, 3)
        job.step(old)
        assert (job.shown, job.rejected.total()) == ({1: ("L1", 6)}, 3)


def test_a_row_whose_old_key_was_never_read_is_rejected() -> None:
    """So is each later event that lacks the value, until one has it."""
    database, _ = one_row()
    old, new = move(database, 0, 1)
    job = Job()
    job.step([*old, *new])
    assert (job.shown, job.rejected.total()) == ({}, 1)
    job.step(database.said(lambda: database.set(1, ("L1", 5), logged=False)))
    assert (job.shown, job.rejected.total()) == ({}, 2)
    job.step(database.said(lambda: database.set(1, ("L2", 5), logged=True)))
    assert (job.shown, job.rejected.total()) == ({1: ("L2", 5)}, 2)


@pytest.mark.parametrize("then", ["whole", "deleted", "truncated"])
def test_an_event_that_needs_no_value_ends_the_wait(then: str) -> None:
    """What waited is dropped, and the old key has nothing more to say to it."""
    database, first = one_row()
    old, new = move(database, 0, 1)
    job = Job(options=", 'rejoin.debezium.truncate' = 'retract'")
    job.step(first)
    job.step(new, clock_ms=NOON)
    match then:
        case "whole":
            job.step(database.said(lambda: database.set(1, ("L2", 5), logged=True)))
        case "deleted":
            del database.rows[1]
            job.step(database.said(lambda: database.say("d", 1, logged=True)))
        case "truncated":
            job.step(database.said(database.truncate))
    job.step(old)
    job.step(clock_ms=NOON + WAIT_MS + 5_000)
    assert (job.shown, job.rejected) == (database.rows, Counter())


def test_an_old_row_that_nobody_asks_for_is_forgotten() -> None:
    database, first = one_row()
    old, new = move(database, 0, 1)
    job = Job(options=", 'rejoin.debezium.key-change-wait' = '1 min'")
    job.step([*first, *old], clock_ms=NOON)
    assert job.cells() == (1, 0)
    job.step(clock_ms=NOON + 65_000)
    assert job.cells() == (0, 0)
    job.step(new)
    job.step(clock_ms=NOON + 130_000)
    assert (job.shown, job.rejected.total(), job.cells()) == ({}, 1, (1, 1))


def test_values_small_enough_to_be_sent_leave_nothing_behind() -> None:
    database, first = one_row("s")
    old, new = move(database, 0, 1)
    job = Job()
    job.step(first)
    job.step(new, clock_ms=NOON)
    assert job.cells() == (1, 0)
    job.step(old)
    assert (job.shown, job.cells()) == ({1: ("s", 0)}, (0, 0))


def test_a_row_of_another_key_expires_with_the_normalisers() -> None:
    database, first = one_row()
    old, new = move(database, 0, 1)
    job = Job(settings="SET 'table.exec.state.ttl' = '1 h';")
    job.step([*first, *old, *new], clock_ms=NOON)
    assert job.cells() == (1, 1)
    job.step(clock_ms=NOON + 3_700_000)
    assert (job.shown, job.cells()) == ({1: ("L1", 0)}, (0, 0))
    job.step(database.said(lambda: database.set(1, ("L1", 5), logged=False)))
    assert job.rejected.total() == 1


def test_a_truncated_row_of_another_key_is_gone() -> None:
    database, first = one_row()
    old, new = move(database, 0, 1)
    job = Job(options=", 'rejoin.debezium.truncate' = 'retract'")
    job.step([*first, *old, *new])
    assert job.cells() == (1, 1)
    job.step(database.said(database.truncate))
    assert (job.shown, job.rejected, job.cells()) == ({}, Counter(), (0, 0))


@pytest.mark.parametrize("repaired", ["key change", "update"])
def test_a_dead_letter_comes_back_with_its_value(repaired: str) -> None:
    """The row has gone on; of the letter it takes what it lacks."""
    database, first = one_row()
    _, new = move(database, 0, 1)
    update = database.said(lambda: database.set(1, ("L1", 5), logged=False))
    job = Job()
    job.step([*first, *new, *update], clock_ms=NOON)
    job.step(clock_ms=NOON + WAIT_MS + 5_000)
    assert (job.shown, job.rejected.total()) == ({0: ("L1", 0)}, 2)
    job.step(new)
    assert job.shown == {0: ("L1", 0)}
    job.step([with_note(e, "L1") for e in (new if repaired == "key change" else update)])
    assert (job.shown[1], job.cells()) == (("L1", 5), (0, 0))


def test_an_event_without_its_place_in_the_log_is_rejected() -> None:
    """Nobody could tell which row it was: a time alone is that of many changes."""
    database, first = one_row()
    old, new = move(database, 0, 1)
    job = Job()
    job.step(first)
    job.step([without_lsn(e) for e in (*old, *new)])
    assert (job.shown, job.rejected.total()) == ({}, 1)
