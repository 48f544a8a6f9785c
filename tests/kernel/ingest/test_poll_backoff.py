"""How often a table without new records is asked for some."""

from itertools import pairwise
from typing import Any

from tests.harness.gateway import jvm

MS = 1_000_000
BEGAN = 7_000 * MS


def backoff() -> Any:
    kernel: Any = jvm().org.apache.spark.sql.rejoin
    return kernel.ingest.PollBackoff(BEGAN)


def asked_at(table: Any, until_ms: int, has_more: bool = False) -> list[int]:
    """Looks every 100 ms, from the beginning on."""
    found = []
    for ms in range(0, until_ms, 100):
        if table.isDue(BEGAN + ms * MS):
            table.looked(BEGAN + ms * MS, has_more)
            found.append(ms)
    return found


def test_a_table_with_records_is_asked_each_time() -> None:
    assert asked_at(backoff(), 5_000, has_more=True) == list(range(0, 5_000, 100))


def test_a_silent_one_is_asked_less_and_less_and_twice_a_second_at_least() -> None:
    times = asked_at(backoff(), 20_000)
    gaps = [later - before for before, later in pairwise(times)]
    assert gaps[:5] == [100] * 5
    assert gaps == sorted(gaps)
    assert gaps[-1] == 500


def test_a_record_ends_the_silence() -> None:
    table = backoff()
    asked_at(table, 20_000)
    table.looked(BEGAN + 20_000 * MS, True)
    assert table.isDue(BEGAN + 20_100 * MS)


def test_of_a_silent_one_most_asks_are_for_the_ends_alone() -> None:
    table = backoff()
    looks = []
    for ms in range(0, 20_000, 100):
        if not table.isDue(BEGAN + ms * MS):
            continue
        if table.isLookDue(BEGAN + ms * MS):
            looks.append(ms)
            table.looked(BEGAN + ms * MS, False)
        else:
            table.asked(BEGAN + ms * MS)
    assert min(b - a for a, b in pairwise(looks) if a >= 5_000) >= 5_000
    assert max(b - a for a, b in pairwise(looks)) < 5_600
    table.looked(BEGAN + 20_000 * MS, True)
    assert table.isLookDue(BEGAN + 20_100 * MS)
