"""Random calls of aggregate functions that mean the same in Flink SQL and in DuckDB.

Flink's values come in the order of arrival, DuckDB's in none: what is compared of LISTAGG and
ARRAY_AGG is the same in any order, and FIRST_VALUE and LAST_VALUE are asked for what groups their
rows. Variances are compared to eight places, and one below zero by rounding, NULL in Flink, is 0.
"""

import random
import re

from tests.differential.expressions import NUMBERS, Expressions, Scope
from tests.differential.tables import ROWTIME

# computed columns have values that a sum of squares does not hold to eight places
_COMPUTED = re.compile(r"\.c\d+$")
_VARIANCES = ("STDDEV_POP", "STDDEV_SAMP", "STDDEV", "VAR_POP", "VAR_SAMP", "VARIANCE")


def aggregate(rng: random.Random, scope: Scope, groups: list[tuple[str, str]]) -> tuple[str, str]:
    """The call and the type of its result. `groups`: what rows are grouped by, with types."""
    e = Expressions(rng)
    usable = [c for c in scope if c.type != ROWTIME]
    numbers = [c for c in usable if c.type in NUMBERS]
    keep = f" FILTER (WHERE {e.predicate(scope, 1)})" if rng.random() < 0.15 else ""
    distinct = "DISTINCT " if rng.random() < 0.15 else ""
    roll = rng.random()
    if roll < 0.2 or not usable:
        return f"COUNT(*){keep}", "BIGINT"
    if roll < 0.35:
        return f"COUNT({distinct}{rng.choice(usable).text}){keep}", "BIGINT"
    if roll < 0.6 and numbers:
        column = rng.choice(numbers)
        text = column.text if rng.random() < 0.6 else e.of(column.type, scope, 1)
        return f"SUM({distinct}{text}){keep}", column.type
    doubles = [c for c in usable if c.type == "DOUBLE"]
    if roll < 0.65 and doubles:
        return f"AVG({rng.choice(doubles).text}){keep}", "DOUBLE"
    if roll < 0.8:
        texts = [c.text for c in usable if c.type == "STRING"]
        return _by_arrival(rng, texts, distinct, keep, groups)
    whole = [c.text for c in usable if c.type == "INT" and not _COMPUTED.search(c.text)]
    if roll < 0.85 and whole:
        return _variance(rng, distinct + f"CAST({rng.choice(whole)} AS DOUBLE)", keep)
    column = rng.choice(usable)
    return f"{rng.choice(['MIN', 'MAX'])}({column.text}){keep}", column.type


def _by_arrival(
    rng: random.Random, texts: list[str], distinct: str, keep: str, groups: list[tuple[str, str]]
) -> tuple[str, str]:
    if groups and rng.random() < 0.3:
        text, kind = rng.choice(groups)
        return f"{rng.choice(['FIRST_VALUE', 'LAST_VALUE'])}({text})", kind
    text = rng.choice(texts or ["'a'"])
    forms = [
        (f"CHAR_LENGTH(LISTAGG({distinct}{text}, '; '){keep})", "INT"),
        (f"CHAR_LENGTH(LISTAGG({distinct}{text}){keep})", "INT"),
        (f"CARDINALITY(ARRAY_AGG({distinct}{text}){keep})", "INT"),
        (f"ARRAY_JOIN(ARRAY_SORT(ARRAY_AGG({distinct}{text}){keep}), '|')", "STRING"),
    ]
    return rng.choice(forms)


def _variance(rng: random.Random, argument: str, keep: str) -> tuple[str, str]:
    call = f"{rng.choice(_VARIANCES)}({argument}){keep}"
    return f"CAST(COALESCE({call}, CAST(0 AS DOUBLE)) AS DECIMAL(20, 8))", "DECIMAL"
