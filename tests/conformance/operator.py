"""Operator and derived cases: events straight into a state machine, without SQL."""

import json
from collections import Counter
from collections.abc import Iterator
from typing import Any, TypeAlias

from tests.conformance.case import Case, Failed
from tests.conformance.mini_batch import folded
from tests.conformance.nodes import emitted_columns, inputs_of, node_of, passes
from tests.kernel.oracle.check import MakeMachine

Change: TypeAlias = tuple[str, tuple[Any, ...]]

_RESTART = "restart"


def run_operator_case(case: Case, make_machine: MakeMachine) -> None:
    if case.get("net_effect_equals_unbatched") is not False:
        _run(case, make_machine, together=False)
    if _bundle_size(case) > 1:
        _run(case, make_machine, together=True)


def _run(case: Case, make_machine: MakeMachine, together: bool) -> None:
    """`together`: Flink's mini-batches, each one batch."""
    machine = make_machine(json.dumps(node_of(case)))
    comparison = _Comparison(case)
    columns = emitted_columns(case)
    selected = [columns.index(name) for name in case["config"]["output_columns"]]
    events = list(_events(case))
    for since, until, expected in _bundles(case):
        emitted: list[Change] = []
        try:
            for batch in _batches(case, events[since : until + 1], together):
                if batch == [_RESTART]:
                    machine.restart()
                else:
                    [rows] = json.loads(machine.run(json.dumps([batch])))
                    emitted += [_selected(row, selected) for row in rows]
        except Exception as error:
            if not _is_expected(error, expected):
                raise
            return
        if "error" in expected:
            raise Failed(f"events {since}..{until}: no error {expected['error']!r}")
        if problem := comparison.problem(expected, emitted):
            mode = "one batch per segment" if together else "one batch per event"
            raise Failed(f"events {since}..{until} ({mode}): {problem}")


def _selected(row: list[Any], columns: list[int]) -> Change:
    values = row[1:]
    return row[0], tuple(values if row[0] == "watermark" else [values[i] for i in columns])


def _bundle_size(case: Case) -> int:
    return int(case["config"].get("mini_batch_size") or 1)


def _is_expected(error: Exception, segment: dict[str, Any]) -> bool:
    """The case says that the operator fails, and in which words."""
    return "error" in segment and segment["error"].lower() in str(error).lower()


def _segments(case: Case) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """All events in order; where the case names no segment, nothing may be emitted."""
    following = 0
    for segment in case["expected"]:
        since, until = segment["since_event"], segment["after_event"]
        if since > following:
            yield following, since - 1, {"order": "exact", "emit": []}
        yield since, until, segment
        following = until + 1
    if following < len(case["events"]):
        yield following, len(case["events"]) - 1, {"order": "exact", "emit": []}


def _bundles(case: Case) -> Iterator[tuple[int, int, dict[str, Any]]]:
    """Segments, joined until Flink's mini-batch is full: before that it says nothing."""
    size = _bundle_size(case)
    start, joined = 0, None
    for _, until, segment in _segments(case):
        joined = segment if joined is None else joined | {"emit": joined["emit"] + segment["emit"]}
        if (until + 1) % size == 0 or until + 1 == len(case["events"]):
            yield start, until, joined
            start, joined = until + 1, None


def _events(case: Case) -> Iterator[Any]:
    """The case's events as the machine takes them; a row that a filter refuses is a deletion.

    Flink forgets its watermark when it is restored, we do not: what a case tells after that is
    moved behind what it has told before.
    """
    condition = case["config"].get("filter")
    names = inputs_of(case)
    told = moved = 0
    is_restored = False
    for event in case["events"]:
        match event:
            case ["checkpoint_and_restore"]:
                is_restored = True
                yield _RESTART
            case ["proctime", ms]:
                yield ["clock", ms]
            case [str() as mark, int() as ms]:
                if is_restored and ms <= told:
                    moved = told + 1 - ms
                is_restored = False
                told = max(told, ms + moved)
                yield ["watermark", _input_of(mark, names), ms + moved]
            case [name, kind, values, *time]:
                accepted = passes(condition, values)
                row = [names.index(name), kind if accepted else "-D", list(values.values())]
                yield row + [ms + moved for ms in time if isinstance(ms, int)]


def _input_of(mark: str, names: list[str]) -> int:
    name = mark.removeprefix("watermark").removeprefix("_")
    return names.index(name) if name else 0


def _batches(case: Case, events: list[Any], together: bool) -> list[list[Any]]:
    """The events begin where a mini-batch does."""
    size = _bundle_size(case) if together else 1
    bundles: list[list[Any]] = [[]]
    for event in events:
        if event == _RESTART:
            bundles += [[_RESTART], []]
        elif len(bundles[-1]) < size:
            bundles[-1].append(event)
        else:
            bundles.append([event])
    if not together:
        return [bundle for bundle in bundles if bundle]
    identities = _identities(case)
    halves = [half for b in bundles for half in _by_side(case, b, identities)]
    return [half for half in halves if half]


def _by_side(case: Case, bundle: list[Any], identities: list[list[int]]) -> list[list[Any]]:
    """A mini-batch joins the rows of one side after those of the other."""
    if bundle == [_RESTART]:
        return [bundle]
    rows = folded(bundle, identities)
    first = 0 if case["config"]["join_type"] == "right" else 1
    return [[r for r in rows if r[0] == first], [r for r in rows if r[0] != first]]


def _identities(case: Case) -> list[list[int]]:
    """Per input the ordinals that tell its rows apart; none for all."""
    found = []
    for name in inputs_of(case):
        side = case["config"][name]
        names = [column for column, _ in side["columns"]]
        identity = {*side["join_key"], *side["unique_key"]} if side["unique_key"] else names
        found.append([i for i, column in enumerate(names) if column in identity])
    return found


class _Comparison:
    """Row kinds and all where an event is a batch; elsewhere what the changes add up to.

    By sums are compared mini-batches, which net otherwise, and multi-joins, which keep -U and +U
    where a padding goes.
    """

    def __init__(self, case: Case) -> None:
        config = case["config"]
        columns = config["output_columns"]
        self._by_sum = config.get("implementation") == "multi-join" or _bundle_size(case) > 1
        self._key = [columns.index(name) for name in config.get("key") or columns]
        self._sums: Counter[Any] = Counter()

    def problem(self, segment: dict[str, Any], emitted: list[Change]) -> str:
        wanted = [(r[0], tuple(r[1:])) for r in segment["emit"]]
        if self._by_sum:
            self._add(wanted, 1)
            self._add(emitted, -1)
            same = not any(self._sums.values())
        elif segment["order"] == "any":
            same = Counter(wanted) == Counter(emitted)
        elif segment["order"] == "per-key":
            same = self._by_key(wanted) == self._by_key(emitted)
        else:
            same = wanted == emitted
        return "" if same else f"emits {emitted}, expected {wanted}"

    def _add(self, changes: list[Change], times: int) -> None:
        for kind, row in changes:
            self._sums[row] += times if kind in ("+I", "+U") else -times

    def _by_key(self, changes: list[Change]) -> dict[Any, list[Change]]:
        found: dict[Any, list[Change]] = {}
        for kind, row in changes:
            key = kind if kind == "watermark" else tuple(row[i] for i in self._key)
            found.setdefault(key, []).append((kind, row))
        return found
