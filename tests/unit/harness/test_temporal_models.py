"""The oracle's models of temporal joins, on inputs whose results a person can check."""

from typing import Any

from tests.kernel.oracle import latest, temporal
from tests.kernel.oracle.check import Batch


def times(**changed: Any) -> temporal.JoinModel:
    given: dict[str, Any] = {
        "is_left": True,
        "nulls_never_match": True,
        "residual": False,
        "where": False,
        "policy": "min",
        "idle_timeout_ms": 0,
        "paired": False,
    }
    return temporal.JoinModel(temporal.Join(**{**given, **changed}))


def marks(time: int) -> Batch:
    return [["watermark", "left", time], ["watermark", "right", time]]


def padded(time: int, value: int = 0) -> list[Any]:
    return ["+I", time, "k", value, "i", None, None, None]


def probe(time: int, value: int = 0) -> list[Any]:
    return ["left", "+I", [time, "k", value, "i"]]


def test_version_at_probe_time_and_late_rows() -> None:
    model = times()
    build = [["right", "+I", [1, "k", 10]], ["right", "+U", [5, "k", 50]]]
    assert model.step([*build, probe(5), probe(4, 1)], []) == []
    emitted = [["+I", 5, "k", 0, "i", 5, "k", 50], ["+I", 4, "k", 1, "i", 1, "k", 10]]
    assert model.step(marks(5), emitted) == []
    assert model.step([probe(5, 2), *marks(6)], []) == []


def test_late_rows_are_joined_at_the_next_watermark_where_asked_for() -> None:
    model = times(joins_late=True)
    build = [["right", "+I", [1, "k", 10]], ["right", "+U", [5, "k", 50]]]
    model.step([*build, *marks(6)], [])
    assert model.step([probe(5), probe(4, 1)], []) == []
    emitted = [["+I", 5, "k", 0, "i", 5, "k", 50], padded(4, 1)]
    assert model.step(marks(7), emitted) == []


def test_late_rows_are_set_aside_where_asked_for() -> None:
    model = times(late_topic="late-rows")
    model.step(marks(6), [])
    text = '{"l_t":5,"l_k":"k","l_v":0,"l_id":"i"}'
    assert model.step([probe(5)], [["reject", "late-rows", "late", text]]) == []


def test_order_within_a_key_is_that_of_arrival() -> None:
    model = times()
    problems = model.step([probe(5), probe(4, 1), *marks(5)], [padded(4, 1), padded(5)])
    assert any("order" in p for p in problems)


def test_deletion_and_tombstone() -> None:
    model = times()
    model.step([["right", "+I", [1, "k", 10]], ["right", "-D", [3, "k", 10]]], [])
    emitted = [["+I", 2, "k", 0, "i", 1, "k", 10], padded(3)]
    assert model.step([probe(2), probe(3), *marks(4)], emitted) == []
    model.step([["right", "+I", [6, "k", 60]], ["right", "-D", [None, "k", None]]], [])
    assert model.step([probe(7), *marks(9)], [padded(7)]) == []


def test_idle_input_does_not_count() -> None:
    model = times(idle_timeout_ms=10)
    first = [["clock", 0], probe(5), ["watermark", "left", 5]]
    assert model.step(first, []) == []
    model.step([["clock", 9]], [])
    assert model.step([["watermark", "left", 6]], []) == []
    assert model.step([["clock", 10]], [padded(5)]) == []


def test_idle_keys_expire() -> None:
    model = times(ttl_ms=4)
    model.step([["clock", 3], ["right", "+I", [3, "k", 30]]], [])
    model.step([["clock", 8]], [])
    joined = ["+I", 6, "k", 0, "i", 3, "k", 30]
    assert model.step([probe(6), *marks(6)], [joined]) == []
    model.step([["clock", 14]], [])
    assert model.step([probe(15), *marks(16)], [padded(15)]) == []


def newest(**changed: Any) -> latest.JoinModel:
    given: dict[str, Any] = {"is_left": True, "layout": "join-key-contains-unique-key"}
    return latest.JoinModel(latest.Join(**{**given, **changed}))


LEFT = ["1", "k", 0]
PADDED = ["+I", *LEFT, None, None, None]
JOINED = ["+I", *LEFT, 1, "k", 20]
BUILD: Batch = [["right", "+I", [1, "k", 10]], ["right", "+U", [1, "k", 20]]]


def test_newest_version_and_no_retraction() -> None:
    model = newest()
    assert model.step([["left", "+I", LEFT]], [PADDED]) == []
    assert model.step(BUILD, []) == []
    assert model.step([["left", "+I", LEFT]], [JOINED]) == []
    assert model.step([["left", "+I", LEFT], ["right", "-D", [1, "k", 20]]], [PADDED]) == []
    assert model.state_rows() == [0, 0]


def test_rows_wait_for_the_gate() -> None:
    model = newest(gate=latest.Gate("loaded"))
    assert model.step([["left", "+I", LEFT]], []) == []
    assert model.step(BUILD, []) == []
    assert model.state_rows() == [1, 1]
    assert model.step([["loaded", "right"]], [JOINED]) == []


def test_gate_opens_at_its_watermark_or_when_time_is_over() -> None:
    for mark in (["watermark", "right", 10], ["clock", 5], ["end"]):
        model = newest(gate=latest.Gate("watermark", at_ms=10, timeout_ms=5))
        assert model.step([["clock", 0], ["left", "+I", LEFT]], []) == []
        assert model.step([["watermark", "left", 10], ["clock", 4]], []) == []
        assert model.step([mark], [PADDED]) == []


def test_all_rows_without_a_unique_key() -> None:
    model = newest(layout="no-unique-key")
    same: Batch = [["right", "+I", [1, "k", 20]]] * 2
    assert model.step([*same, ["left", "+I", LEFT]], [JOINED, JOINED]) == []
