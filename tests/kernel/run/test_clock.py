"""Processing time never comes twice, even where the machine's clock jumps back."""

from typing import Any

from tests.harness.gateway import jvm

HOUR_MS = 3_600_000


def offset(time_ms: int, partitions: int = 2, ended: str = "false") -> Any:
    package: Any = jvm().org.apache.spark.sql.rejoin.run
    return package.ClockOffset.read(
        f'{{"time": {time_ms}, "partitions": [[0, {partitions}]], "end": {ended}}}'
    )


def clock_after(start: Any, present: Any, tick_ms: int = 1000) -> Any:
    package: Any = jvm().org.apache.spark.sql.rejoin.run
    return package.Clock.next(start, present, tick_ms)


def test_clock_ticks() -> None:
    start = offset(10 * HOUR_MS)
    assert clock_after(start, offset(10 * HOUR_MS + 999)).timeMs() == 10 * HOUR_MS
    assert clock_after(start, offset(10 * HOUR_MS + 1000)).timeMs() == 10 * HOUR_MS + 1000


def test_clock_stands_still_until_the_machine_has_caught_up() -> None:
    start = offset(10 * HOUR_MS)
    back = clock_after(start, offset(9 * HOUR_MS))
    assert back.json() == start.json()
    assert clock_after(start, offset(10 * HOUR_MS + 5000)).timeMs() == 10 * HOUR_MS + 5000


def test_other_news_under_a_clock_that_jumped_back_keep_the_time() -> None:
    start = offset(10 * HOUR_MS)
    grown = clock_after(start, offset(9 * HOUR_MS, partitions=3))
    assert grown.timeMs() == 10 * HOUR_MS
    assert "[0,3]" in grown.json()
    ended = clock_after(start, offset(9 * HOUR_MS, ended="true"))
    assert (ended.timeMs(), ended.ended()) == (10 * HOUR_MS, True)
