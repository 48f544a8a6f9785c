"""Recorded Debezium topics as tables: what they fold to is what PostgreSQL held.

Expected rows are those that fixtures/debezium/sql leaves behind.
"""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path

import pytest

from spark_jobs.scenario.file import Scenario, Step
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Record, decode
from spark_jobs.scenario.runner import bind_scenario
from spark_jobs.scenario.values import Row
from tests.debezium.recording import FIXTURES, records
from tests.harness.gateway import kernel

pytestmark = pytest.mark.service  # it takes long

_SERVERS = "'connector' = 'kafka', 'properties.bootstrap.servers' = 'localhost:9092'"
WIDE = {
    "id": "BIGINT",
    "c_int4": "INT",
    "nn_int": "INT NOT NULL",
    "big_text": "STRING",
    "big_nn_text": "STRING NOT NULL",
    "big_bytes": "BYTES",
    "big_arr": "ARRAY<STRING>",
    "big_jsonb": "STRING",
}
PRODUCTS = {"product_id": "STRING", "product_name": "STRING"}


def read(
    file: Path,
    columns: dict[str, str],
    *,
    settings: str = "",
    options: str = "",
    where: str = "",
    format_: str = "debezium-json",
    batches: Sequence[slice] = (slice(None),),
) -> tuple[Counter[str], list[str], list[list[str]]]:
    """The folded result of `SELECT *`, the reasons of rejects, the kinds of each batch's rows."""
    key, *_ = columns
    listed = ", ".join(f"{n} {t}" for n, t in columns.items())
    sql = [
        settings,
        f"CREATE TABLE t ({listed}, PRIMARY KEY ({key}) NOT ENFORCED) WITH ({_SERVERS},"
        f" 'topic' = 't', 'format' = '{format_}', 'rejoin.dead-letter.topic' = 'd'{options});",
        f"CREATE TABLE r ({listed.replace(' NOT NULL', '')}) WITH ({_SERVERS}, 'topic' = 'r',"
        " 'format' = 'changelog-json');",
        *("INSERT INTO r SELECT", ", ".join(columns), "FROM t", where, ";"),
    ]
    bound = bind_scenario(Scenario("recorded", " ".join(sql), ()))
    backend = MemoryBackend(bound, kernel())
    found: Counter[Row] = Counter()
    rejects: list[str] = []
    kinds: list[list[str]] = []
    given = [Record(r.key, r.value, headers=r.headers) for r in records(file)]
    for batch in batches:
        backend.feed("t", given[batch])
        outcome = backend.run_step(Step(0), lambda _: True)
        changes = [c for r in outcome.records.get("r", ()) for c in decode(bound.tables["r"], r)]
        for change in changes:
            found[_text(change.row)] += 1 if change.kind in ("+I", "+U") else -1
        kinds.append([change.kind for change in changes])
        rejects += [reason for _, reason in outcome.rejects]
        backend.restart()
    assert all(n in (0, 1) for n in found.values())
    return +found, rejects, kinds


def _text(row: Row) -> str:
    return json.dumps(row, default=repr)


def wide_3(note: str) -> list[object]:
    """The row that S11 inserts, with `big_text` of one letter."""
    arr = ["elem-abcdefghij"] * 200
    large = [note * 3000, "D" * 3000, bytes.fromhex("beef" * 1500), arr, big("K")]
    return [3, None, 1, *large]


def wide_1() -> list[object]:
    arr = ["elem-0123456789"] * 200
    large = ["A" * 3000, "B" * 3000, bytes.fromhex("c0de" * 1500), arr, big("J")]
    return [1, 100, 5, *large]


def big(letter: str) -> str:
    return f'{{"big": "{letter * 3000}"}}'


WIDE_2 = [2, None, 0, None, "short", None, None, None]


def counted(*rows: list[object]) -> Counter[str]:
    return Counter(_text(tuple(row)) for row in rows)


ONE_BY_ONE = [slice(i, i + 1) for i in range(11)]


@pytest.mark.parametrize("where", ["", "WHERE big_nn_text <> ''"])
@pytest.mark.parametrize("batches", [[slice(0, 5)], ONE_BY_ONE[:5]], ids=["at once", "one by one"])
def test_left_out_values_are_healed(where: str, batches: list[slice]) -> None:
    """S12 and S13: five values are left out of row 1, four of row 3."""
    file = FIXTURES / "json" / "shopjson.public.wide.jsonl"
    found, rejects, _ = read(file, WIDE, where=where, batches=batches)
    assert found == counted(wide_1(), WIDE_2, wide_3("E"))
    assert rejects == []


@pytest.mark.parametrize("batches", [[slice(None)], ONE_BY_ONE], ids=["at once", "one by one"])
def test_key_change_without_values_is_rejected(batches: list[slice]) -> None:
    """S14: what row 30 holds stands under key 3. PostgreSQL has row 30 besides."""
    file = FIXTURES / "json" / "shopjson.public.wide.jsonl"
    found, rejects, _ = read(file, WIDE, batches=batches)
    assert found == counted(WIDE_2)
    assert rejects == ["debezium-unavailable-value"]


@pytest.mark.parametrize("batches", [[slice(None)], ONE_BY_ONE], ids=["at once", "one by one"])
@pytest.mark.parametrize("unwrapped", [False, True], ids=["events", "unwrapped"])
def test_key_change_without_values_is_healed(batches: list[slice], unwrapped: bool) -> None:
    """S14 with the values that row 30 had as row 3."""
    options = ", 'rejoin.debezium.key-changes' = 'heal'"
    if unwrapped:
        file = FIXTURES / "json_unwrapped" / "shopflat.public.wide.jsonl"
        options += ", 'rejoin.debezium.unwrapped' = 'true'"
    else:
        file = FIXTURES / "json" / "shopjson.public.wide.jsonl"
    format_ = "json" if unwrapped else "debezium-json"
    found, rejects, _ = read(file, WIDE, options=options, format_=format_, batches=batches)
    assert found == counted(WIDE_2, [30, *wide_3("E")[1:]])
    assert rejects == []


def test_full_rows_need_no_healing() -> None:
    file = FIXTURES / "json" / "shopjson.public.wide_full.jsonl"
    found, rejects, _ = read(file, WIDE)
    assert found == counted([30, *wide_3("E")[1:]], WIDE_2)
    assert rejects == []


def test_rejects_every_event_without_its_values() -> None:
    file = FIXTURES / "json" / "shopjson.public.wide.jsonl"
    options = ", 'rejoin.debezium.unavailable' = 'reject'"
    _, rejects, _ = read(file, WIDE, options=options)
    assert rejects == ["debezium-unavailable-value"] * 3


def test_truncated_table() -> None:
    """S21: product_changelog_full is emptied by its last event."""
    file = FIXTURES / "json" / "shopjson.public.product_changelog_full.jsonl"
    options = ", 'rejoin.debezium.truncate' = 'retract'"
    batches = [slice(0, 3), slice(3, None)]
    found, rejects, kinds = read(file, PRODUCTS, options=options, batches=batches)
    assert (found, rejects) == (Counter(), [])
    assert kinds == [["+I", "+I"], ["-D", "-D"]]


def test_truncated_then_filled() -> None:
    """S21: one row is inserted into orders_full after it was emptied."""
    file = FIXTURES / "json" / "shopjson.public.orders_full.jsonl"
    options = ", 'rejoin.debezium.truncate' = 'retract'"
    columns = {"order_id": "STRING", "note": "STRING"}
    for batches in ([slice(None)], [slice(i, i + 1) for i in range(17)]):
        found, rejects, _ = read(file, columns, options=options, batches=batches)
        assert (found, rejects) == (counted(["o-7", "after truncate"]), [])


REPLAYED = [slice(0, 3), slice(3, 6), slice(6, 8), slice(8, 9), slice(9, 11), slice(11, 13)]


def test_repeated_events() -> None:
    """Offsets 8 to 12 say 3 to 7 again, after a crash of the connector."""
    file = FIXTURES / "json_replayed" / "shopdup.public.product_changelog.jsonl"
    setting = "SET 'table.exec.source.cdc-events-duplicate' = 'true';"
    found, rejects, kinds = read(file, PRODUCTS, settings=setting, batches=REPLAYED)
    rows = [["p-1", "scooter"], ["p-2", "basketball v2"], ["p-3", "wallet"]]
    assert (found, rejects) == (counted(*rows), [])
    assert kinds == [["+I"] * 3, ["+I"], ["-D"], [], [], []]


def test_repeated_events_come_back_without_positions() -> None:
    file = FIXTURES / "json_replayed" / "shopdup.public.product_changelog.jsonl"
    found, _, kinds = read(file, PRODUCTS, batches=REPLAYED)
    assert len(found) == 3
    assert kinds == [["+I"] * 3, ["+I"], ["-D"], ["+I"], [], ["-D"]]
