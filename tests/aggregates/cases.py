"""Which aggregate calls are compared with Flink, over which changes of one table."""

from itertools import product
from typing import Any, TypeAlias

Change: TypeAlias = tuple[Any, ...]

COLUMNS = {
    "k": "BOOLEAN",
    "i": "INT",
    "l": "BIGINT",
    "f": "DOUBLE",
    "p": "DECIMAL(10, 2)",
    "s": "STRING",
    "e": "DATE",
    "t": "TIMESTAMP(3)",
}
_A = (True, 1, 10, 0.1, "1.10", "a", "2024-01-01", "2024-01-01 00:00:00.001")
_B = (False, 2, 20, 0.2, "2.25", "b", "2024-02-29", "2024-01-02 00:00:00")
_C = (None, -7, 3_000_000_000, 1e9, "99999999.99", "", "1969-12-31", "2024-01-03 12:00:00")
_D = (True, 2, 20, 0.7, "-0.01", "ä,b", "2024-02-29", "2024-01-04 12:00:00")
_NULLS = (True, *(None for _ in range(len(COLUMNS) - 1)))
_STRAY = (True, 5, 5, 5.0, "5.00", "stray", "2020-05-05", "2020-05-05 00:00:00")

# every change of the number of rows shows in COUNT(*): one result per change
RETRACTIONS: tuple[Change, ...] = (
    ("+I", *_NULLS),
    ("+I", *_A),
    ("+I", *_B),
    ("+I", *_C),
    ("+I", *_A),
    ("+I", *_D),
    ("-D", *_A),  # the first of two equal values
    ("-D", *_NULLS),
    ("+I", *_NULLS),
    ("-D", *_STRAY),  # never came
    ("-U", *_C),
    ("+U", *_B),
    ("-D", *_B),
    ("-D", *_D),
    ("-D", *_A),
    ("-D", *_B),
    ("+I", *_STRAY),
    ("+I", *_D),
    ("+I", *_C),
)
NEVER_CAME = RETRACTIONS.index(("-D", *_STRAY))
INSERTIONS: tuple[Change, ...] = tuple(c for c in RETRACTIONS if c[0] == "+I")
CHANGELOGS = {"retract": RETRACTIONS, "append": INSERTIONS}

_NUMBERS = ("i", "l", "f", "p", "CAST(f AS FLOAT)")
_VARIANCES = ("STDDEV_POP", "STDDEV_SAMP", "STDDEV", "VAR_POP", "VAR_SAMP", "VARIANCE")
_KEEP = " FILTER (WHERE k)"

# BYTES are left out: Flink does not find them again
CALLS: tuple[str, ...] = (
    *(f"{f}({x})" for f, x in product(_VARIANCES, _NUMBERS)),
    *(f"{f}(DISTINCT {x})" for f, x in product(("STDDEV_POP", "VAR_SAMP"), _NUMBERS)),
    "VAR_POP(i)" + _KEEP,
    "STDDEV_SAMP(DISTINCT f)" + _KEEP,
    *(f"{f}({x})" for f, x in product(("FIRST_VALUE", "LAST_VALUE"), COLUMNS)),
    *(f"{f}(DISTINCT {x})" for f, x in product(("FIRST_VALUE", "LAST_VALUE"), ("i", "s"))),
    *(f"{f}(s){_KEEP}" for f in ("FIRST_VALUE", "LAST_VALUE", "LISTAGG")),
    "LISTAGG(s)",
    "LISTAGG(s, '; ')",
    "LISTAGG(s, '')",
    "LISTAGG(DISTINCT s)",
    "LISTAGG(DISTINCT s, '|')",
    "LISTAGG(CAST(i AS STRING), '-')",
    *(f"JSON_STRING(ARRAY_AGG({x}))" for x in ("k", "i", "l", "p", "s")),
    # PyFlink cannot read an array with a NULL
    *(f"ARRAY_AGG({x}) FILTER (WHERE {x} IS NOT NULL)" for x in ("f", "e", "t")),
    *(f"JSON_STRING(ARRAY_AGG(DISTINCT {x}))" for x in ("i", "s")),
    f"JSON_STRING(ARRAY_AGG(s){_KEEP})",
    f"JSON_STRING(ARRAY_AGG(DISTINCT i){_KEEP})",
    "JSON_STRING(ARRAY_AGG(s) IGNORE NULLS)",
    "JSON_STRING(ARRAY_AGG(s) RESPECT NULLS)",
    "JSON_STRING(ARRAY_AGG(s IGNORE NULLS))",
    "JSON_STRING(ARRAY_AGG(DISTINCT s IGNORE NULLS))",
    "JSON_STRING(ARRAY_AGG(ARRAY[i, 1]))",
    "JSON_STRING(ARRAY_AGG(ROW(i, s)))",
    "ELEMENT(ARRAY_AGG(MAP['a', i]) FILTER (WHERE i = 5))['a']",
    "CARDINALITY(FIRST_VALUE(ARRAY[i, 1]))",
    "JSON_STRING(LAST_VALUE(ROW(i, s)))",
    "CAST(LAST_VALUE(CAST(t AS TIMESTAMP_LTZ(3))) AS STRING)",
    "CAST(LAST_VALUE(CAST(t AS TIME)) AS STRING)",
    *(f"{f}({x})" for f, x in product(("SUM", "AVG"), _NUMBERS)),
    *(f"{f}({x})" for f, x in product(("MIN", "MAX"), (*list(COLUMNS)[1:], "CAST(f AS FLOAT)"))),
    *(f"COUNT({x})" for x in ("i", "s", "DISTINCT i", "DISTINCT s")),
    *(f"{f}(DISTINCT i){_KEEP}" for f in ("SUM", "AVG", "MIN", "MAX", "COUNT")),
    # calls that share their values
    "CONCAT_WS('/', FIRST_VALUE(s), LAST_VALUE(s), LISTAGG(s), LISTAGG(s, '+'))",
)
# one query of several rows, which are compared once all changes have come
GROUPED = (
    "SELECT k, e, GROUPING(k) AS gk, GROUPING(e) AS ge, GROUPING_ID(k, e) AS g, COUNT(*) AS n"
    " FROM t GROUP BY GROUPING SETS ((k, e), (k), (e), ())"
)
REFUSED: tuple[str, ...] = (
    "LISTAGG(i)",
    "LISTAGG(s, s)",
    "LISTAGG(s, ',' || ';')",
    "LISTAGG(s, ',', 'x')",
    "LISTAGG(s, CAST(NULL AS STRING))",
    "LISTAGG(s) WITHIN GROUP (ORDER BY i)",
    "LISTAGG(s) IGNORE NULLS",
    "ARRAY_AGG(s) WITHIN GROUP (ORDER BY i)",
    "ARRAY_AGG(s, i)",
    "FIRST_VALUE(s) IGNORE NULLS",
    "LAST_VALUE(s) RESPECT NULLS",
    "FIRST_VALUE(s, l)",
    "SUM(i) IGNORE NULLS",
    "STDDEV_POP(s)",
    "VAR_POP(e)",
    "VAR_POP(DISTINCT i, l)",
)
