"""What a real Flink computes for the calls of cases.py, as flink.json has it.

`python -m tests.aggregates.flink` asks Flink anew. `results` are the values after each change, the
last of them None where no row is left; a call that Flink refuses has an `error`.
"""

import json
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.aggregates.cases import CALLS, CHANGELOGS, COLUMNS, REFUSED
from tests.differential.flink.client import FlinkProcess
from tests.functions.flink import cause

RECORDED = Path(__file__).with_name("flink.json")
_BATCH = 8
_ADDS = ("+I", "+U")


def ask(flink: FlinkProcess, changelog: str, items: Sequence[str]) -> list[list[Any]] | str:
    """The results of each call after each change, its type in front; the text of an error."""
    typed = [f"TYPEOF({item})" for item in items]
    table = {
        "name": "t",
        "mode": "all" if changelog == "retract" else "insert_only",
        "columns": [[name, kind] for name, kind in COLUMNS.items()],
        "key": [],
        "computed": [],
        "watermarks": [],
        "rows": CHANGELOGS[changelog],
    }
    listed = ", ".join(["COUNT(*)", *typed, *items])
    asked = {"tables": [table], "views": [], "query": " ".join(("SELECT", listed, "FROM t"))}
    answer = flink.ask(asked)
    if "error" in answer:
        return str(answer["error"])
    types = answer["rows"][0][2 : 2 + len(items)]
    states = list(after_each(answer["rows"]))
    return [
        [type_, *(None if state is None else state[1 + len(items) + i] for state in states)]
        for i, type_ in enumerate(types)
    ]


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
    RECORDED.write_text("[\n" + ",\n".join(entries) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
