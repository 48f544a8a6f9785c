"""What a real Flink computes for the calls of cases.py, as flink.json has it.

`python -m tests.functions.flink` asks Flink anew. A call that Flink refuses or fails at has an
`error` in place of results.
"""

import json
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from tests.differential.flink.client import FlinkProcess
from tests.functions.cases import CASES, Calls

RECORDED = Path(__file__).with_name("flink.json")
_BATCH = 25
_PLACE = re.compile(r"\$(\d)(?!\d)")
_TYPES = {"DECIMAL": "DECIMAL(10, 2)", "TIMESTAMP": "TIMESTAMP(3)"}


def written(calls: Calls, number: int) -> str:
    """The expression over the columns of a table of many."""
    return _PLACE.sub(lambda found: f"c{number}_{found[1]}", calls.expression)


def columns(batch: Sequence[Calls]) -> list[list[str]]:
    """Names and types of the arguments of all calls."""
    return [
        [f"c{number}_{place}", _TYPES.get(name, name)]
        for number, calls in enumerate(batch)
        for place, name in enumerate(calls.types, 1)
    ]


def rows(batch: Sequence[Calls]) -> Iterator[list[Any]]:
    """Row by row the arguments of all calls, with the number of the row in front."""
    for number in range(max(len(calls.rows) for calls in batch)):
        given = [calls.rows[min(number, len(calls.rows) - 1)] for calls in batch]
        yield [number, *(value for values in given for value in values)]


def ask(flink: FlinkProcess, batch: Sequence[Calls]) -> list[list[Any]] | str:
    """The results of each call, row by row; the text of an error."""
    calls = ", ".join(written(calls, number) for number, calls in enumerate(batch))
    table = {
        "name": "t",
        "mode": "insert_only",
        "columns": [["n", "INT"], *columns(batch)],
        "key": [],
        "computed": [],
        "watermarks": [],
        "rows": [["+I", *row] for row in rows(batch)],
    }
    answer = flink.ask(
        {"tables": [table], "views": [], "query": " ".join(("SELECT n,", calls, "FROM t"))}
    )
    if "error" in answer:
        return str(answer["error"])
    found = {row[1]: row[2:] for row in answer["rows"]}
    return [
        [found[i][number] for i in range(len(calls.rows))] for number, calls in enumerate(batch)
    ]


def asked(flink: FlinkProcess, batch: Sequence[Calls]) -> Iterator[dict[str, Any]]:
    """An entry for each call; a batch that fails is asked in halves."""
    found = ask(flink, batch)
    if isinstance(found, str):
        if len(batch) == 1:
            yield {"call": batch[0].expression, "error": cause(found)}
            return
        half = len(batch) // 2
        yield from asked(flink, batch[:half])
        yield from asked(flink, batch[half:])
        return
    for calls, results in zip(batch, found, strict=True):
        yield {"call": calls.expression, "types": calls.types, "results": results}


def batches(size: int = _BATCH) -> Iterator[Sequence[Calls]]:
    for begin in range(0, len(CASES), size):
        yield CASES[begin : begin + size]


def cause(error: str) -> str:
    causes = [line for line in error.splitlines() if "Exception" in line]
    return (causes[-1] if causes else error).strip()[:200]


def main() -> None:
    with FlinkProcess() as flink:
        entries = [json.dumps(e, ensure_ascii=False) for b in batches() for e in asked(flink, b)]
    RECORDED.write_text("[\n" + ",\n".join(entries) + "\n]\n", encoding="utf-8")


if __name__ == "__main__":
    main()
