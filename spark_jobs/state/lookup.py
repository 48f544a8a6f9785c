"""Looks up keys for the admin verb `state-get`: `python -m spark_jobs.state.lookup FOLDER`.

The driver starts it (driver/state_lookups.py) with its plan and the order in the folder. It shows
what `rejoin state get` shows, of several keys at once and cut to a size that a page can take.
"""

import json
import pickle
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from spark_jobs.commands import StateOrder
from spark_jobs.driver.state_lookups import ASKED, FOUND, Asked
from spark_jobs.errors import ConfigError, RejoinError
from spark_jobs.plan.nodes.plan_json import Json
from spark_jobs.state.inspection import key_error, rows_of
from spark_jobs.state.operators import StateSelection
from spark_jobs.state.reading import QueryState, open_queries, state_kernel
from spark_jobs.state.values import JsonObject
from spark_jobs.status import replace_file

MOST_CHARS = 200_000
_MOST_VALUE_CHARS = 1000


def main(folder: Path) -> int:
    """Write what was found into the folder; returns the exit code."""
    tempfile.tempdir = str(folder)  # the copies of state files go with the folder
    try:
        found = _look_up(folder)
    except RejoinError as error:
        sys.stderr.write(error.render() + "\n")
        return error.exit_code
    replace_file(folder / FOUND, json.dumps(cut(found)))
    return 0


def _look_up(folder: Path) -> list[JsonObject]:
    # the folder is the driver's own, and nobody else may write to it
    asked: Asked = pickle.loads((folder / ASKED).read_bytes())  # noqa: S301
    with state_kernel(asked.settings) as kernel:
        queries, _ = open_queries(kernel, asked.sinks, asked.settings, StateSelection())
        return rows_under(queries, asked.order)


def rows_under(queries: Sequence[QueryState], order: StateOrder) -> list[JsonObject]:
    """The rows under each key, one object per operator; raises ConfigError if a key fits none."""
    found: list[JsonObject] = []
    for lookup in order.lookups:
        selection = StateSelection(operator=lookup.operator)
        taken = [q for q in queries if any(selection.takes(o) for o in q.operators)]
        if not taken and lookup.operator is not None:
            raise ConfigError("STATE_SELECTION", f"no state of operator '{lookup.operator}'")
        looked = [rows_of(query, selection, lookup.key, order.limit) for query in taken]
        objects = [one for of_query, _ in looked for one in of_query]
        if not objects:
            raise key_error(lookup.key, [why for _, others in looked for why in others])
        found += objects
    return found


def cut(found: Sequence[JsonObject]) -> list[JsonObject]:
    """The rows with long values cut, as many as fit into an answer; `left_out` counts the others.

    Each side has an equal share, so that a side with long rows does not hide another.
    """
    share = MOST_CHARS // max(sum(len(operator["sides"]) for operator in found), 1)
    return [
        {**operator, "sides": [_cut_side(side, share) for side in operator["sides"]]}
        for operator in found
    ]


def _cut_side(side: JsonObject, share: int) -> JsonObject:
    shown: list[Any] = []
    for row in side["kept"]:
        short = _cut_values(row)
        share -= len(json.dumps(short))
        if share < 0:
            break
        shown.append(short)
    counted = sum(row.get("copies", 1) for row in shown)
    return {**side, "kept": shown, "left_out": max(side["rows"] - counted, 0)}


def _cut_values(row: JsonObject) -> JsonObject:
    columns = None if row["row"] is None else {k: _cut_value(v) for k, v in row["row"].items()}
    return {"row": columns, **{k: _cut_value(v) for k, v in row.items() if k != "row"}}


def _cut_value(value: Json) -> Json:
    text = value if isinstance(value, str) else json.dumps(value)
    return value if len(text) <= _MOST_VALUE_CHARS else text[:_MOST_VALUE_CHARS] + "…"


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
