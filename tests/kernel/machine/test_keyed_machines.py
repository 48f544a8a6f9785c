"""Keyed machines where the oracle does not go: large keys, failures, limits of types."""

import json
import random
from typing import Any

import pytest
from py4j.protocol import Py4JJavaError

from tests.harness.gateway import new_machine
from tests.kernel.oracle.aggregate import COLUMNS as VALUES
from tests.kernel.oracle.aggregate import Aggregation, Call
from tests.kernel.oracle.aggregate import S as TEXT
from tests.kernel.oracle.deduplicate import Deduplication
from tests.kernel.oracle.materializer import Materializer

COUNT = Call("COUNT", None, distinct=False, filtered=False)
OWN_CELL = 1  # what the key group knows of itself


class Driven:
    """A machine; each call is one batch."""

    def __init__(self, node: dict[str, Any]) -> None:
        self.machine = new_machine(json.dumps(node))

    def __call__(self, *events: Any) -> list[list[Any]]:
        [emitted] = json.loads(self.machine.run(json.dumps([list(events)])))
        return list(emitted)


def aggregation(*calls: Call, ttl_ms: int = 0) -> Aggregation:
    return Aggregation((0,), calls, having=False, pair_by=None, ttl_ms=ttl_ms)


def value(kind: str, group: str, **given: Any) -> list[Any]:
    row = {name: None for name, _ in VALUES} | {"g": group} | given
    return [0, kind, list(row.values())]


def sink_row(kind: str, pk: str, uk: int, text: str = "") -> list[Any]:
    return [0, kind, [pk, uk, 0, text, 0]]


def test_extremes_of_a_large_group_come_back_one_by_one() -> None:
    calls = [Call(f, TEXT, distinct=False, filtered=False) for f in ("MIN", "MAX")]
    run = Driven(aggregation(*calls, Call("COUNT", TEXT, True, False)).node())
    texts = [f"{n:05}" + "x" * 200 for n in range(1_000)]
    shuffled = random.Random(5).sample(texts, len(texts))  # noqa: S311 - repeatable, not secret
    for at in range(0, len(texts), 50):
        run(*[value("+I", "a", s=text) for text in shuffled[at : at + 50]])
    assert run.machine.stateCells() > 50
    low, high = 0, len(texts) - 1
    while low < high:
        run.machine.restart()
        gone = [value("-D", "a", s=texts[low]), value("-D", "a", s=texts[high])]
        old = ["-U", "a", texts[low], texts[high], high - low + 1]
        low, high = low + 1, high - 1
        new = ["+U", "a", texts[low], texts[high], high - low + 1]
        assert run(*gone) == ([old, new] if low < high else [["-D", *old[1:]]])
    assert run.machine.stateCells() == OWN_CELL


def test_a_large_sink_key_gives_its_rows_back_and_leaves_no_page() -> None:
    for upsert_key in ((), (1,)):
        run = Driven(Materializer("deduplicate", upsert_key).node())
        rows = [(uk, f"{uk:05}" + "x" * 200) for uk in range(1_000)]
        for at in range(0, len(rows), 50):
            emitted = run(*[sink_row("+I", "k", *row) for row in rows[at : at + 50]])
            uk, text = rows[at + 49]
            assert emitted == [["+U" if at else "+I", "k", uk, 0, text, 0]]
        assert run.machine.stateCells() > 50
        for uk, text in rows[0:1_000:2]:
            assert run(sink_row("-D", "k", uk, text)) == []
        left = rows[1:1_000:2]
        while len(left) > 1:
            uk, text = left.pop()
            newest = [*left[-1]]
            emitted = run(sink_row("-D", "k", uk, text))
            assert emitted == [["+U", "k", newest[0], 0, newest[1], 0]]
        assert run(sink_row("-D", "k", *left[0])) == [["-D", "k", left[0][0], 0, left[0][1], 0]]
        assert run.machine.stateCells() == OWN_CELL


def test_a_large_group_expires_with_all_its_pages() -> None:
    run = Driven(aggregation(Call("MAX", TEXT, distinct=False, filtered=False), ttl_ms=10).node())
    run(["clock", 100])
    run(*[value("+I", "a", s=f"{n}" + "x" * 200) for n in range(1_000)])
    assert run.machine.stateCells() > 50
    assert run(["clock", 110]) == []
    assert run.machine.stateCells() == OWN_CELL
    assert run(value("+I", "a", s="z")) == [["+I", "a", "z"]]


def test_many_keys_due_at_once_leave_with_one_watermark() -> None:
    spec = Deduplication("first", "event", True, True, (0,), None, None, 0)
    run = Driven(spec.node())
    run(*[[0, "+I", [f"k{n}", 0, n, 10 * n]] for n in range(2_000)])
    emitted = run(["watermark", 0, 10_000])
    assert sorted(row[3] for row in emitted) == list(range(1_001))
    assert len(run(["end"])) == 999


@pytest.mark.parametrize("upsert_key", [(), (1,)])
def test_conflict_names_the_sink_key(upsert_key: tuple[int, ...]) -> None:
    run = Driven(Materializer("error", upsert_key, watermarks=True).node())
    assert run(sink_row("+I", "a", 1, "first"), sink_row("+I", "a", 2, "second")) == []
    with pytest.raises(Py4JJavaError, match=r'constraint violation.*\[pk="a"\].*second.*CONFLICT'):
        run(["watermark", 0, 1])


def test_a_move_between_watermarks_is_no_conflict() -> None:
    run = Driven(Materializer("error", (1,), watermarks=True).node())
    run(sink_row("+I", "a", 1), ["watermark", 0, 1])
    assert run(sink_row("+I", "a", 2, "moved")) == []
    assert run(sink_row("-D", "a", 1)) == []
    assert run(["watermark", 0, 2]) == [["+U", "a", 2, 0, "moved", 0]]


def test_without_watermarks_every_batch_is_netted() -> None:
    run = Driven(Materializer("nothing", ()).node())
    assert run(sink_row("+I", "a", 1), sink_row("+I", "a", 2)) == [["+I", "a", 1, 0, "", 0]]
    assert run(sink_row("-D", "a", 1)) == [["-D", "a", 1, 0, "", 0]]


def test_sums_beyond_their_type() -> None:
    places = {name: place for place, (name, _) in enumerate(VALUES)}
    calls = [Call("SUM", places[name], False, False) for name in ("i", "l")]
    run = Driven(aggregation(*calls).node())
    batch = [value("+I", "a", i=2**31 - 1, l=2**63 - 1), value("+I", "a", i=1, l=1)]
    assert run(*batch) == [["+I", "a", -(2**31), -(2**63)]]
    narrow = aggregation(Call("SUM", places["d"], False, False)).node()
    for column in (narrow["calls"][0], narrow["schema"]["fields"][1]):
        column["type"] = "decimal(5,2)"
    run = Driven(narrow)
    assert run(value("+I", "a", d="999.99")) == [["+I", "a", "999.99"]]
    changed = [["-U", "a", "999.99"], ["+U", "a", None]]
    assert run(value("+I", "a", d="0.01")) == changed
    assert run(value("-D", "a", d="0.01")) == [["-U", "a", None], ["+U", "a", "999.99"]]


def test_a_sum_that_lost_all_its_values_starts_anew() -> None:
    places = {name: place for place, (name, _) in enumerate(VALUES)}
    run = Driven(aggregation(Call("SUM", places["f"], False, False)).node())
    run(value("+I", "a"), value("+I", "a", f=0.1), value("+I", "a", f=0.2))
    assert run(value("-D", "a", f=0.1), value("-D", "a", f=0.2))[1] == ["+U", "a", None]
    assert run(value("+I", "a", f=0.3))[1] == ["+U", "a", 0.3]


def test_an_extreme_that_was_never_there_does_not_show() -> None:
    run = Driven(aggregation(Call("MAX", TEXT, distinct=False, filtered=False)).node())
    run(value("+I", "a", s="b"), value("+I", "a", s="c"))
    assert run(value("-D", "a", s="z")) == []
    assert run(value("-D", "a", s="c")) == [["-D", "a", "c"]]


def test_no_extreme_of_what_has_no_order() -> None:
    node = aggregation(COUNT).node()
    node["inputSchema"]["fields"][TEXT]["type"] = "binary"
    node["calls"][0] |= {"function": "MAX", "argument": TEXT, "type": "binary"}
    with pytest.raises(Py4JJavaError, match="MAX of BYTES is not defined"):
        new_machine(json.dumps(node))
