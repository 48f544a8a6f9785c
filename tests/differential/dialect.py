"""How a query as the generator writes it becomes Flink's text and DuckDB's.

Two things are written that DuckDB reads differently, or not at all:

- Parts between ⟦ and ⟧ stand without parentheses in Flink's text, as its precedences group them in
  just this way. DuckDB, whose precedences are others, gets parentheses.
- `t FOR SYSTEM_TIME AS OF p.rt AS v ON ...` reads the table `t_versions` in DuckDB, which has each
  version with the times from which and until which it is valid; by processing time it reads
  `t_steps`, where these times are numbers of steps.
"""

import re

from tests.differential.tables import PROCTIME

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
