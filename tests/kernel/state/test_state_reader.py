"""Rows that `rejoin state` decodes out of a real checkpoint, against the records that made it.

The checkpoint is the one that every release must go on from: each kind of operator, each layout.
"""

import json
import shutil
import tarfile
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from spark_jobs.driver.queries import sinks_of
from spark_jobs.errors import ConfigError, StateError
from spark_jobs.plan.planner import plan
from spark_jobs.settings import Environment, Overrides, job_settings
from spark_jobs.sql.bind.binder import bind
from spark_jobs.state import inspection
from spark_jobs.state.operators import StateSelection
from spark_jobs.state.reading import QueryState, open_queries
from tests.checkpoints.job import ROOT
from tests.harness.gateway import kernel

pytestmark = pytest.mark.service  # opens RocksDB some forty times
FOLDER = ROOT / "v1"
ALL = 10_000
Row = dict[str, Any]
Ask = Callable[..., list[Row]]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    work = tmp_path_factory.mktemp("state")
    with tarfile.open(FOLDER / "checkpoint.tar.gz") as packed:
        packed.extractall(work, filter="data")
    return work / "checkpoint"


@pytest.fixture(scope="module")
def open_query(checkpoint: Path) -> Callable[..., QueryState]:
    job = bind((FOLDER / "job.sql").read_text(encoding="utf-8"))
    sinks = sinks_of(plan(job))
    overrides = Overrides(checkpoint=str(checkpoint))
    settings = job_settings(job.settings, "job", overrides, Environment())

    def opened(name: str | None, wanted: StateSelection | None = None) -> QueryState:
        chosen = replace(wanted or StateSelection(), query=name)
        return open_queries(kernel(), sinks, settings, chosen)[0][0]

    return opened


@pytest.fixture(scope="module")
def kept(open_query: Callable[..., QueryState]) -> Ask:
    """Per side, what one operator keeps of a key: the first operator of the query, or the named."""

    def ask(name: str, key: str, operator: str | None = None) -> list[Row]:
        told, _ = inspection.rows_of(open_query(name), StateSelection(operator=operator), key, ALL)
        sides: list[Row] = told[0]["sides"]
        return [side["kept"] for side in sides]

    return ask


def records(table: str) -> Iterator[Row]:
    for line in (FOLDER / "records.jsonl").read_text(encoding="utf-8").splitlines():
        record = json.loads(line)
        if record["step"] == "before" and record["table"] == table:
            yield record


def newest(table: str) -> dict[Any, Row]:
    """An upsert topic's rows by key."""
    rows: dict[Any, Row] = {}
    for record in records(table):
        [key] = record["key"].values()
        rows.pop(key, None)
        if record["value"] is not None:
            rows[key] = record["value"]
    return rows


def counted(table: str, *columns: str) -> Counter[tuple[Any, ...]]:
    """The rows of an append-only table or a changelog, projected, with their copies."""
    rows: Counter[tuple[Any, ...]] = Counter()
    for record in records(table):
        value = record["value"]
        data = value.get("data", value)
        rows[tuple(data[c] for c in columns)] += -1 if value.get("op") in ("-D", "-U") else 1
    return +rows


def at(timestamp: str) -> str:
    return timestamp.replace(" ", "T") + ".000"


def bag(side: list[Row]) -> Counter[tuple[Any, ...]]:
    return Counter({tuple(r["row"].values()): r["copies"] for r in side})


def of_key(rows: Counter[tuple[Any, ...]], key: int) -> Counter[tuple[Any, ...]]:
    return Counter({row[1:]: n for row, n in rows.items() if row[0] == key})


def test_rows_by_unique_key_and_one_row_per_key(kept: Ask) -> None:
    customers, orders = newest("customers"), newest("orders").values()
    for customer in (1, 2, 8):  # the first has orders and is deleted
        left, right = kept("named", str(customer), "regular-join")
        wanted = [o for o in orders if o["customer_id"] == customer]
        assert sorted((r["row"]["order_id"], r["row"]["amount"]) for r in left) == sorted(
            (o["order_id"], o["amount"]) for o in wanted
        )
        names = [customers[customer]["name"]] if customer in customers else []
        assert [r["row"]["name"] for r in right] == names


def test_rows_with_counts_on_one_page_and_on_many(kept: Ask) -> None:
    for a1 in (2, 3, 7):
        left, right = kept("residual_full", str(a1))
        a = of_key(counted("a", "a1", "a1", "a2", "a3"), a1)
        b = of_key(counted("b", "b1", "b1", "b2", "b3"), a1)
        assert (bag(left), bag(right)) == (a, b)
        matches = {tuple(r["row"].values()): r["matches"] for r in left}
        assert matches == {x: sum(n for y, n in b.items() if x[1] > y[1]) for x in a}


def test_all_sides_of_a_multi_join(kept: Ask) -> None:
    customers = newest("customers")
    for key in (2, 3, 7):
        first, second, third = kept("multi", str(key))
        names = [customers[key]["name"]] if key in customers else []
        assert [r["row"]["name"] for r in first] == names
        assert bag(second) == of_key(counted("a", "a1", "a2"), key)
        assert bag(third) == of_key(counted("b", "b1", "b2"), key)


def test_operators_of_one_row_per_key(kept: Ask) -> None:
    orders = newest("orders")
    for order_id in (1, 2, 999):
        [rows] = kept("named", str(order_id), "normalize")
        assert [r["row"] for r in rows] == [
            {c: o[c] for c in ("order_id", "customer_id", "amount")}
            for o in [orders.get(order_id)]
            if o is not None
        ]
    last = {r["value"]["currency"]: r["value"] for r in records("probes")}
    for currency in ("EUR", "X4"):
        [[row]] = kept("last_probe", currency)
        assert row["row"] == {"order_id": last[currency]["order_id"], "currency": currency}
        assert row["time"] == at(last[currency]["order_time"])


def test_an_aggregate_shows_its_result_and_the_rows_behind_it(kept: Ask) -> None:
    cities: dict[str, list[Row]] = {}
    customers = newest("customers")
    for (a1, a2, a3), n in counted("a", "a1", "a2", "a3").items():
        if a1 in customers:
            cities.setdefault(customers[a1]["city"], []).extend([{"a2": a2, "a3": a3}] * n)
    assert cities
    for city, rows in cities.items():
        [[told]] = kept("sums", city, "aggregate")
        a2 = [r["a2"] for r in rows]
        n3, high = len({r["a3"] for r in rows}), max(r["a3"] for r in rows)
        wanted = [city, len(rows), n3, min(a2), high, sum(a2), int(sum(a2) / len(a2))]
        assert list(told["row"].values()) == wanted
        assert told["rows"] == len(rows)


def test_rows_that_wait_and_versions_carry_their_times(kept: Ask) -> None:
    probes = [r["value"] for r in records("probes")]
    rates = [r["value"] for r in records("rates") if r["value"] is not None]
    for currency in ("EUR", "USD", "NOK"):
        sent = [p for p in probes if p["currency"] == currency]
        waiting, versions = kept("priced", currency)
        of_time = {at(p["order_time"]): (p["order_id"], p["amount"]) for p in sent}
        for row in waiting:
            assert of_time[row["time"]] == (row["row"]["order_id"], row["row"]["amount"])
            assert row["waiting"] == "+I"
        times = {at(r["rate_time"]): r["rate"] for r in rates if r["currency"] == currency}
        alive = [row for row in versions if row["row"] is not None]
        assert alive
        assert all(times[row["time"]] == row["row"]["rate"] for row in alive)
        assert max(times) in {row["time"] for row in versions}
        held, _ = kept("snapshot", currency)
        orders = sorted(p["order_id"] for p in sent)
        assert sorted(r["row"]["order_id"] for r in held) == orders


def test_sizes_and_largest_keys(open_query: Callable[..., QueryState]) -> None:
    query = open_query("residual_full")
    a, b = counted("a", "a1"), counted("b", "b1")
    [size] = inspection.sizes(query, StateSelection())
    assert size["rows"] == {"left": a.total(), "right": b.total()}
    assert (size["keys"], size["key_groups"], size["state_format"]) == (len(a | b), 2, 1)
    top = [
        (t["side"], t["key"]["a1"], t["rows"])
        for t in inspection.largest(query, StateSelection(), 3)
    ]
    for side, rows in (("left", a), ("right", b)):
        assert [n for s, _, n in top if s == side] == sorted(rows.values(), reverse=True)[:3]
        assert all(rows[(key,)] == n for s, key, n in top if s == side)


def test_an_older_epoch_and_one_that_is_gone(open_query: Callable[..., QueryState]) -> None:
    [size] = inspection.sizes(open_query("looked_up", StateSelection(epoch=0)), StateSelection())
    assert size["epoch"] == 0
    with pytest.raises(StateError, match=r"epoch 99 .* 0 to 4$") as gone:
        open_query("looked_up", StateSelection(epoch=99))
    assert gone.value.code == "STATE_EPOCH_GONE"


def test_where_an_epoch_goes_while_it_is_read_the_next_one_is(
    open_query: Callable[..., QueryState], checkpoint: Path
) -> None:
    folder = checkpoint / "looked_up"
    commit, hidden = folder / "commits" / "4", folder / "hidden"
    [file] = (folder / "state" / "0" / "0").glob("4_*.changelog")
    away = folder / file.name
    commit.rename(hidden)

    def ask(_: object, reader: Any) -> Any:
        if hidden.exists():  # the job commits epoch 4, and a file of epoch 3 goes
            hidden.rename(commit)
            file.rename(away)
        else:
            away.rename(file)
        return json.loads(reader.size(0))

    epoch, [(operator, size)] = open_query("looked_up").read(StateSelection(), ask)
    assert (epoch, operator.node.id, size["rows"][1]) == (4, "temporal-join", 3)


def test_a_damaged_state_and_none_at_all(
    open_query: Callable[..., QueryState], checkpoint: Path
) -> None:
    for files in (checkpoint / "once" / "state").glob("0/*/*.*"):
        files.unlink()
    with pytest.raises(StateError, match=r"query once, epoch 0: .*") as damaged:
        list(inspection.sizes(open_query("once"), StateSelection()))
    shutil.rmtree(checkpoint / "once")
    with pytest.raises(StateError, match=r"query once: .* holds no committed epoch") as missing:
        open_query("once")
    assert (damaged.value.code, missing.value.code) == ("STATE_UNREADABLE", "STATE_NOT_FOUND")


def test_what_cannot_be_found_is_named(open_query: Callable[..., QueryState]) -> None:
    told, others = inspection.rows_of(open_query("named"), StateSelection(), "x", ALL)
    assert not told
    assert others == [
        'named/regular-join (customer_id INT): "x" is no INT',
        'named/normalize (order_id BIGINT): "x" is no BIGINT',
    ]
    for wanted, known in (
        (StateSelection(operator="join"), "known: named/regular-join, named/normalize"),
        (StateSelection(side="middle"), "known: left, right, input"),
    ):
        with pytest.raises(ConfigError, match="is called") as unknown:
            open_query("named", wanted)
        assert (unknown.value.code, unknown.value.hint) == ("STATE_SELECTION", known)
