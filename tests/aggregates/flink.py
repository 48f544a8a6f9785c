"""What a real Flink computes for the calls of cases.py, as flink.json has it.

`python -m tests.aggregates.flink` asks Flink anew. `results` are the values after each change, the
last of them None where no row is left; a call that Flink refuses has an `error`.
"""

import json
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.aggregates.cases import CALLS, CHANGELOGS, COLUMNS, GROUPED, REFUSED
from tests.differential.flink.client import FlinkProcess
from tests.functions.flink import cause

RECORDED = Path(__file__).with_name("flink.json")
RECORDED_GROUPS = Path(__file__).with_name("grouped.json")
_BATCH = 8
_ADDS = ("+I", "+U")


def ask(flink: FlinkProcess, changelog: str, items: Sequence[str]) -> list[list[Any]] | str:
    """The results of each call after each change, its type in front; the text of an error."""
    typed = [f"TYPEOF({item})" for item in items]
    listed = ", ".join(["COUNT(*)", *typed, *items])
    answer = _answer(flink, changelog, " ".join(("SELECT", listed, "FROM t")))
    if "error" in answer:
        return str(answer["error"])
    types = answer["rows"][0][2 : 2 + len(items)]
    states = list(after_each(answer["rows"]))
    return [
        [type_, *(None if state is None else state[1 + len(items) + i] for state in states)]
        for i, type_ in enumerate(types)
    ]


def _answer(flink: FlinkProcess, changelog: str, query: str) -> dict[str, Any]:
    table = {
        "name": "t",
        "mode": "all" if changelog == "retract" else "insert_only",
        "columns": [[name, kind] for name, kind in COLUMNS.items()],
        "key": [],
        "computed": [],
        "watermarks": [],
        "rows": CHANGELOGS[changelog],
    }
    return flink.ask({"tables": [table], "views": [], "query": query})


def recorded_groups(flink: FlinkProcess) -> str:
    """The rows of GROUPED after all changes, by changelog, a line each."""
    found = {name: left_over(_answer(flink, name, GROUPED)["rows"]) for name in CHANGELOGS}
    lines = [json.dumps({"over": name, "rows": rows}) for name, rows in found.items()]
    return "[\n" + ",\n".join(lines) + "\n]\n"


def left_over(changes: Sequence[Sequence[Any]]) -> list[list[Any]]:
    """The rows that stand when all changes have come, in an order of their own."""
    found: Counter[str] = Counter()
    for kind, *row in changes:
        found[json.dumps(row, default=str)] += 1 if kind in _ADDS else -1
    return [json.loads(row) for row in sorted(found.elements())]


def after_each(changes: Sequence[Sequence[Any]]) -> Iterator[Sequence[Any] | None]:
    """The one result row as it stands after each change of the input; None where there is none."""
    for kind, *row in changes:
        if kind in _ADDS:
            yield row
        elif kind == "-D":
            yield None


def asked(flink: FlinkProcess, changelog: str, calls: Sequence[str]) -> Iterator[dict[str, Any]]:
    """An entry for each call; a batch that fails is asked in halves."""
    found = ask(flink, changelog, calls)
    if not isinstance(found, str):
        for call, (type_, *results) in zip(calls, found, strict=True):
            yield {"over": changelog, "call": call, "type": type_, "results": results}
    elif len(calls) == 1:
        yield {"over": changelog, "call": calls[0], "error": cause(found)}
    else:
        half = len(calls) // 2
        yield from asked(flink, changelog, calls[:half])
        yield from asked(flink, changelog, calls[half:])


def batches() -> Iterator[Sequence[str]]:
    for begin in range(0, len(CALLS), _BATCH):
        yield CALLS[begin : begin + _BATCH]
    yield from ((call,) for call in REFUSED)


def main() -> None:
    with FlinkProcess() as flink:
        entries = [
            json.dumps(entry, ensure_ascii=False)
            for changelog in CHANGELOGS
            for batch in batches()
            for entry in asked(flink, changelog, batch)
        ]
        groups = recorded_groups(flink)
    RECORDED.write_text("[\n" + ",\n".join(entries) + "\n]\n", encoding="utf-8")
    RECORDED_GROUPS.write_text(groups, encoding="utf-8")


if __name__ == "__main__":
    main()
