"""The rows of regular and multi-way joins, and predicates over pairs of them."""

from collections.abc import Callable
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]
Test: TypeAlias = Callable[[Row, Row], bool]

COLUMNS = (("id", "integer"), ("k", "integer"), ("j", "string"), ("v", "integer"), ("p", "string"))
ID, K, J, V, P = range(5)
WIDTH = len(COLUMNS)
PADDING: Row = (None,) * WIDTH

# residual predicates and WHERE clauses: Spark text, and the same in Python with SQL's NULLs
PREDICATES: dict[str, Test] = {
    "`l_v` < `r_v`": lambda a, b: a[V] is not None and b[V] is not None and a[V] < b[V],
    "`l_v` <> `r_v` OR `r_v` IS NULL": lambda a, b: (
        b[V] is None or (a[V] is not None and a[V] != b[V])
    ),
    "`l_id` = `r_id`": lambda a, b: a[ID] is not None and a[ID] == b[ID],
    # NOT IN
    "`l_v` = `r_v` OR `l_v` IS NULL OR `r_v` IS NULL": lambda a, b: (
        a[V] is None or b[V] is None or a[V] == b[V]
    ),
    "`r_id` IS NULL": lambda a, b: b[ID] is None,
    "`l_v` > 1": lambda a, b: a[V] is not None and a[V] > 1,
}
RESIDUALS = list(PREDICATES)[:4]
WHERES = list(PREDICATES)[4:]
