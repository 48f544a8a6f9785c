"""The models of keyed operators, on inputs whose results a person can check."""

from typing import Any

from tests.kernel.oracle.aggregate import COLUMNS, INT, AggregateModel, Aggregation, Call
from tests.kernel.oracle.deduplicate import DeduplicateModel, Deduplication
from tests.kernel.oracle.materializer import CompactingModel, ListModel, Materializer


def deduplication(keep: str, time: str = "event", **changed: Any) -> DeduplicateModel:
    given: dict[str, Any] = {
        "on_watermark": False,
        "generate_insert": True,
        "key": (0,),
        "filter": None,
        "pair_by": None,
        "ttl_ms": 0,
    }
    return DeduplicateModel(Deduplication(keep, time, **{**given, **changed}))


def click(value: int, time: int, key: str = "k") -> list[Any]:
    return [0, "+I", [key, 0, value, time]]


def test_last_row_by_time_of_equal_ones_the_later() -> None:
    model = deduplication("last")
    assert model.step([click(1, 5)], [["+I", "k", 0, 1, 5]]) == []
    assert model.step([click(2, 4)], []) == []
    assert model.step([click(3, 5)], [["-U", "k", 0, 1, 5], ["+U", "k", 0, 3, 5]]) == []
    assert model.step([click(4, 6)], []) != []


def test_first_row_waits_for_the_watermark() -> None:
    model = deduplication("first", on_watermark=True)
    assert model.step([click(1, 5), click(2, 3), click(3, 3)], []) == []
    assert model.step([["watermark", 0, 4]], [["+I", "k", 0, 2, 3]]) == []
    assert model.step([click(4, 3, "late")], []) == []
    assert model.step([click(5, 4, "in time")], [["+I", "in time", 0, 5, 4]]) == []


def test_ttl_starts_anew_with_a_write_and_repeats_identical_rows() -> None:
    model = deduplication("last", "processing", ttl_ms=10)
    assert model.step([["clock", 1], click(1, 0)], [["+I", "k", 0, 1, 0]]) == []
    repeated = [["-U", "k", 0, 1, 0], ["+U", "k", 0, 1, 0]]
    assert model.step([["clock", 10], click(1, 0)], repeated) == []
    assert model.step([["clock", 19]], []) == []
    assert model.step([["clock", 20], click(1, 0)], [["+I", "k", 0, 1, 0]]) == []


def number(kind: str, group: str, value: int | None) -> list[Any]:
    row = {name: None for name, _ in COLUMNS} | {"g": group, "i": value}
    return [0, kind, list(row.values())]


def test_aggregates_of_nothing_and_of_duplicates() -> None:
    calls = (
        Call("COUNT", INT, True, False),
        Call("SUM", INT, False, False),
        Call("AVG", INT, False, False),
        Call("MAX", INT, False, False),
    )
    model = AggregateModel(Aggregation((0,), calls, having=False, pair_by=None, ttl_ms=0))
    assert model.step([number("+I", "a", None)], [["+I", "a", 0, None, None, None]]) == []
    batch = [number("+I", "a", -3), number("+I", "a", -3), number("+I", "a", 1)]
    new = ["a", 2, -5, -1, 1]
    assert model.step(batch, [["-U", "a", 0, None, None, None], ["+U", *new]]) == []
    assert model.step([number("-D", "a", -3)], [["-U", *new], ["+U", "a", 2, -2, -1, 1]]) == []
    assert model.step([number("-D", "b", 1)], []) == []
    rest = [number("-D", "a", value) for value in (-3, 1, None)]
    assert model.step(rest, [["-D", "a", 2, -2, -1, 1]]) == []


def person(kind: str, number: int, name: str = "") -> list[Any]:
    return [0, kind, ["k", number, 0, name, 0]]


def test_the_newest_row_of_a_sink_key_shows() -> None:
    model = ListModel(Materializer("deduplicate", (1,)))
    assert model.step([person("+I", 1, "a")], [["+I", "k", 1, 0, "a", 0]]) == []
    assert model.step([person("+I", 2, "b")], [["+U", "k", 2, 0, "b", 0]]) == []
    assert model.step([person("+U", 1, "c")], [["+U", "k", 1, 0, "c", 0]]) == []
    assert model.step([person("-D", 1)], [["+U", "k", 2, 0, "b", 0]]) == []
    assert model.step([person("-D", 2)], [["-D", "k", 2, 0, "", 0]]) == []


def test_the_first_of_what_is_netted_at_the_watermark_stays() -> None:
    model = CompactingModel(Materializer("nothing", (), watermarks=True))
    gone = [person("+I", 1), person("-D", 1)]
    assert model.step([*gone, person("+I", 2), person("+I", 3)], []) == []
    assert model.step([["watermark", 0, 7]], [["+I", "k", 2, 0, "", 0]]) == []
    assert model.step([person("-D", 2)], []) == []
    assert model.step([["watermark", 0, 8]], [["-D", "k", 2, 0, "", 0]]) == []
