"""The input of `python -m bench.big_state`."""

from collections.abc import Iterable

from bench.big_state import Input
from bench.workloads.records import Record


def keys_of(records: Iterable[Record]) -> list[bytes]:
    return [key for _, key, _ in records]


def test_results_come_at_the_same_rate_all_the_time() -> None:
    given = Input(10_000)
    lefts, rights = keys_of(given.lefts()), keys_of(given.rights())
    places = {key: place for place, key in enumerate(lefts)}
    for begin in range(0, 10_000, 1_000):
        found = [places[key] for key in rights[begin : begin + 1_000] if key in places]
        assert len(found) == 800
        assert found == list(range(begin * 4 // 5, (begin + 1_000) * 4 // 5))


def test_the_result_is_known() -> None:
    given = Input(10_000)
    lefts = set(keys_of(given.lefts()))
    rights = [*keys_of(given.rights()), *keys_of(given.extra())]
    found = [int(key) for key in rights if key in lefts]
    assert len(rights) == len(set(rights))
    assert (len(found), sum(found)) == given.expected()
