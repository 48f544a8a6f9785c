"""What Flink is asked: a case as plain data, with the changelogs as Flink's sources read them."""

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any

from tests.differential.case import Case
from tests.differential.dialect import flink_text
from tests.differential.tables import ADDS, DATA_TYPES, PROCTIME, Change, Contents, Table

_MODES = {"append": "insert_only", "upsert": "upsert"}


def request(case: Case) -> dict[str, Any]:
    """`tables`: columns, keys, times and changes; `views` and `query`: Flink's text."""
    changes = [change for step in case.steps for change in step]
    return {
        "tables": [_table(t, [c for c in changes if c.table == t.name]) for t in case.tables],
        "views": [[name, flink_text(text)] for name, text in case.views],
        "query": case.select(),
    }


def _table(table: Table, changes: Iterable[Change]) -> dict[str, Any]:
    return {
        "name": table.name,
        "mode": _MODES.get(table.mode, "all"),
        "columns": [[name, DATA_TYPES[kind].sql()] for name, kind in table.columns],
        "key": [table.columns[i][0] for i in table.key],
        "computed": [[PROCTIME, "PROCTIME()"]] if table.is_clocked else [],
        "watermarks": [list(table.watermark)] if table.watermark else [],
        "rows": [[c.kind, *c.row] for c in whole(table, _by_time(table, changes))],
    }


def _by_time(table: Table, changes: Iterable[Change]) -> Iterable[Change]:
    """In the order of time, if rows are only added.

    In Flink a row of a versioned view that is older than the newest of its key is no version.
    """
    at = table.rowtime
    if table.mode != "append" or at is None:
        return changes
    return sorted(changes, key=lambda change: change.row[at])


def whole(table: Table, changes: Iterable[Change]) -> Iterator[Change]:
    """The changes with the old rows that Debezium events have and that rejoin does not trust.

    Flink takes the old row of an update from the event, even if the table has a primary key.
    """
    if table.mode != "debezium" or not table.is_upsert:
        yield from changes
        return
    contents = Contents(table)
    for change in changes:
        old = contents.stored(change.row)
        if change.kind not in ADDS:
            if old is not None:
                yield replace(change, row=old)
        elif old is None:
            yield replace(change, kind="+I")
        else:
            yield replace(change, kind="-U", row=old)
            yield replace(change, kind="+U")
        contents.apply(change)
