"""How a query as the generator writes it becomes Flink's text and DuckDB's.

Two things are written that DuckDB reads differently, or not at all:

- Parts between ⟦ and ⟧ stand without parentheses in Flink's text, as its precedences group them in
  just this way. DuckDB, whose precedences are others, gets parentheses.
- `t FOR SYSTEM_TIME AS OF p.rt AS v ON ...` reads the table `t_versions` in DuckDB, which has each
  version with the times from which and until which it is valid; by processing time it reads
  `t_steps`, where these times are numbers of steps. Of a view of the last row of each key, every
  row of its table is a version.
"""

import re

from tests.differential.tables import PROCTIME

_LAST_ROWS = re.compile(r"PARTITION BY (\w+) ORDER BY rt DESC\) AS rn FROM (\w+)\) WHERE rn = 1$")
_TEMPORAL = re.compile(r"(\w+) FOR SYSTEM_TIME AS OF (\w+)\.(\w+) AS (\w+) ON ")


def flink_text(written: str) -> str:
    return written.replace("⟦", "").replace("⟧", "")


def duckdb_text(written: str) -> str:
    return _TEMPORAL.sub(_valid_rows, parenthesised(written))


def parenthesised(written: str) -> str:
    return written.replace("⟦", "(").replace("⟧", ")")


def _valid_rows(found: re.Match[str]) -> str:
    table, probe, time, alias = found.groups()
    history = f"{table}_{'steps' if time == PROCTIME else 'versions'}"
    at = f"{probe}.{time}"
    return f"{history} AS {alias} ON {alias}.since <= {at} AND {at} < {alias}.until AND "


def view_of_versions(name: str, text: str) -> tuple[str, str] | None:
    """The name and the text of the view with the versions of a view of last rows."""
    found = _LAST_ROWS.search(text)
    if found is None:
        return None
    by, table = found.groups()
    following = f"LEAD(rt) OVER (PARTITION BY {by} ORDER BY rt)"
    until = f"COALESCE({following}, TIMESTAMP '9999-01-01 00:00:00') AS until"
    return f"{name}_versions", f"SELECT *, rt AS since, {until} FROM {table}"  # noqa: S608
