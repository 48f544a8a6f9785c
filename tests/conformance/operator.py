"""Operator and derived cases: events straight into a state machine, without SQL."""

import json
import re
from collections import Counter
from collections.abc import Iterable
from typing import Any, TypeAlias

from tests.conformance.case import Case, Failed, Skipped
from tests.kernel.oracle.check import MakeMachine, struct

Change: TypeAlias = tuple[str, tuple[Any, ...]]

_TYPES = {"INT": "integer", "BIGINT": "long", "STRING": "string"}
_LAYOUTS = {
    "JoinKeyContainsUniqueKey": "join-key-contains-unique-key",
    "HasUniqueKey": "has-unique-key",
    "NoUniqueKey": "no-unique-key",
}


def run_operator_case(case: Case, make_machine: MakeMachine) -> None:
    _skip_unsupported(case)
    _run(case, make_machine, one_batch_per_segment=False)
    if (case["config"].get("mini_batch_size") or 1) > 1:
        _run(case, make_machine, one_batch_per_segment=True)


def _skip_unsupported(case: Case) -> None:
    config = case["config"]
    operator = case["operator"]
    if config.get("implementation") == "multi-join":
        raise Skipped("multi-join harness: not supported yet")
    if operator not in ("regular", "temporal", "normalize"):
        raise Skipped(f"kind {operator}: not supported yet")
    join_type = config.get("join_type", "inner")
    if join_type not in ("inner", "left"):
        raise Skipped(f"kind {operator}-{join_type}: not supported yet")
    if config.get("time", "event") != "event":
        raise Skipped(f"kind temporal-proc-{join_type}: not supported yet")
    if any(config[s].get("ttl_ms") for s in ("left", "right") if s in config):
        raise Skipped("state TTL: not supported yet")
    if config.get("max_retention_ms"):
        raise Skipped("state TTL (idle state retention): not supported yet")
    if case.get("net_effect_equals_unbatched") is False:
        raise Skipped("net_effect_equals_unbatched false: malformed input")
    if operator == "regular" and (fault := _fault_of_input(case)):
        raise Skipped(f"malformed input: {fault}")


def _fault_of_input(case: Case) -> str:
    """What no changelog contains, and what we therefore treat otherwise than Flink.

    docs/semantics.md, "What differs from Flink": unknown retractions are ignored, not emitted; and
    a row that replaces another without a -U is one match, not two.
    """
    present: Counter[Any] = Counter()
    for event in case["events"]:
        if event[0] not in ("left", "right"):
            continue
        side, kind, values = event
        names = case["config"][side]["unique_key"] or list(values)
        identity = (side, *(values[name] for name in names))
        if kind in ("-U", "-D"):
            if present[identity] == 0:
                return "retraction of an unknown row"
            present[identity] -= 1
        elif case["config"][side]["unique_key"] and present[identity]:
            if side == "right" and case["config"]["join_type"] == "left":
                return "+U without -U on the inner side of a left join"
        else:
            present[identity] += 1
    return ""


def _run(case: Case, make_machine: MakeMachine, one_batch_per_segment: bool) -> None:
    machine = make_machine(json.dumps(_node(case)))
    comparison = _Comparison(case)
    size = 1 if one_batch_per_segment else (case["config"].get("mini_batch_size") or 1)
    for since, until, expected in _segments(case):
        events = case["events"][since : until + 1]
        emitted: list[Change] = []
        for batch in _batches(case, events, one_batch_per_segment):
            if batch == "restart":
                machine.restart()
            else:
                [rows] = json.loads(machine.run(json.dumps([batch])))
                emitted += [(row[0], tuple(row[1:])) for row in rows]
        problem = comparison.problem(expected, emitted)
        # Flink says nothing until its mini-batch is full
        if problem and ((until + 1) % size == 0 or until + 1 == len(case["events"])):
            mode = "one batch per segment" if one_batch_per_segment else "one batch per event"
            raise Failed(f"events {since}..{until} ({mode}): {problem}")


def _segments(case: Case) -> Iterable[tuple[int, int, dict[str, Any]]]:
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


def _batches(case: Case, events: list[Any], together: bool) -> list[Any]:
    batches: list[Any] = []
    for event in events:
        if event[0] == "checkpoint_and_restore":
            batches.append("restart")
        elif event[0] == "proctime":
            batches.append([["clock", event[1]]])
        else:
            row = event if len(event) == 2 else [event[0], event[1], list(event[2].values())]
            if together and batches and batches[-1] != "restart":
                batches[-1].append(row)
            else:
                batches.append([row])
    return batches


class _Comparison:
    """Row kinds and all where our rules are Flink's; elsewhere what the changes add up to.

    By sums are compared: mini-batches (netted differently) and inputs with a bare +U, whose old
    row we retract and Flink leaves to be overwritten (docs/semantics.md, R10): there rows with
    the same unique keys replace each other.
    """

    def __init__(self, case: Case) -> None:
        config = case["config"]
        self._columns: list[str] = config["output_columns"]
        self._by_sum = case["operator"] == "regular" and (
            (config.get("mini_batch_size") or 1) > 1 or _has_bare_updates(case)
        )
        self._key = _output_key(config) if _has_bare_updates(case) else None
        self._expected = _Fold(self._key)
        self._found = _Fold(self._key)

    def problem(self, segment: dict[str, Any], emitted: list[Change]) -> str:
        wanted = [(r[0], tuple(r[1:])) for r in segment["emit"] if r[0] != "watermark"]
        if self._by_sum:
            self._expected.apply(wanted)
            self._found.apply(emitted)
            same = self._expected.rows() == self._found.rows()
        elif segment["order"] == "any":
            same = Counter(wanted) == Counter(emitted)
        else:
            same = wanted == emitted
        return "" if same else f"emits {emitted}, expected {wanted}"


class _Fold:
    def __init__(self, key: tuple[int, ...] | None) -> None:
        self._key = key
        self._rows: Counter[Any] = Counter()
        self._by_key: dict[Any, Any] = {}

    def apply(self, changes: Iterable[Change]) -> None:
        for kind, row in changes:
            add = kind in ("+I", "+U")
            if self._key is None:
                self._rows[row] += 1 if add else -1
                continue
            key = tuple(row[i] for i in self._key)
            if add:
                self._by_key[key] = row
            elif self._by_key.get(key) == row:
                del self._by_key[key]

    def rows(self) -> dict[Any, Any]:
        if self._key is not None:
            return dict(self._by_key)
        return {row: n for row, n in self._rows.items() if n}


def _has_bare_updates(case: Case) -> bool:
    if case["operator"] != "regular":
        return False
    kinds = {(e[0], e[1]) for e in case["events"] if len(e) == 3}
    return any((side, "+U") in kinds and (side, "-U") not in kinds for side in ("left", "right"))


def _output_key(config: dict[str, Any]) -> tuple[int, ...]:
    names = [
        name for s in ("left", "right") for name in config[s]["unique_key"] or _names(config[s])
    ]
    return tuple(config["output_columns"].index(name) for name in names)


def _node(case: Case) -> dict[str, Any]:
    config = case["config"]
    if case["operator"] == "normalize":
        return {
            "kind": "normalize",
            "schema": _struct(config["columns"]),
            "key": _ordinals(config["columns"], config["key"]),
            "filter": _quoted(config.get("filter"), config["columns"]),
            "updateBefore": config["generate_update_before"],
        }
    left, right = config["left"], config["right"]
    columns = left["columns"] + right["columns"]
    key = [c for c in left["columns"] if c[0] in left["join_key"]]
    node = {
        "kind": f"{case['operator']}-join",
        "joinType": config["join_type"],
        "left": _side(left),
        "right": _side(right),
        "key": _struct(key),
        "leftKey": _ordinals(left["columns"], left["join_key"]),
        "rightKey": _ordinals(right["columns"], right["join_key"]),
        "filterNulls": config.get("filter_null_keys", [True] * len(key)),
        "residual": _quoted(config.get("residual"), columns),
        "where": None,
        "updateBefore": True,
        "pairBy": None,
    }
    if case["operator"] == "temporal":
        node |= {
            "leftTime": _ordinals(left["columns"], [config["left_time"]])[0],
            "rightTime": _ordinals(right["columns"], [config["right_time"]])[0],
            "leftTopics": [0],
            "rightTopics": [1],
            "idleTimeoutMs": 0,
            "watermarkPolicy": "min",
        }
    return node


def _side(side: dict[str, Any]) -> dict[str, Any]:
    layout = _LAYOUTS.get(side.get("state_layout", ""), "no-unique-key")
    unique_key = _ordinals(side["columns"], side.get("unique_key") or [])
    schema = _struct(side["columns"])
    return {"schema": schema, "layout": layout, "uniqueKey": unique_key, "upsert": False}


def _struct(columns: list[list[str]]) -> dict[str, Any]:
    return struct((name, _TYPES[kind.split()[0]]) for name, kind in columns)


def _names(side: dict[str, Any]) -> list[str]:
    return [name for name, _ in side["columns"]]


def _ordinals(columns: list[list[str]], names: list[str]) -> list[int]:
    return [[c[0] for c in columns].index(name) for name in names]


def _quoted(text: str | None, columns: list[list[str]]) -> str | None:
    """Spark SQL: column names in backticks."""
    if text is None:
        return None
    names = {name for name, _ in columns}
    return re.sub(r"[\w#]+", lambda m: f"`{m[0]}`" if m[0] in names else m[0], text)
