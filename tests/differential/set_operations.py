"""Queries above queries: UNION, INTERSECT and EXCEPT, and WITH."""

import random
from collections.abc import Sequence

_OPERATIONS = ("UNION ALL", "UNION ALL", "UNION", "INTERSECT", "EXCEPT")


def set_operations(rng: random.Random, parts: Sequence[str]) -> str:
    """The queries with random operations between them, INTERSECT before the others."""
    text = parts[0]
    for part in parts[1:]:
        if rng.random() < 0.3:
            text = f"({text})" if rng.random() < 0.5 else text
            part = f"({part})"
        text = f"{text} {rng.choice(_OPERATIONS)} {part}"
    return text


def with_clause(views: Sequence[tuple[str, str]], text: str) -> str:
    """The query with its views in front of it, by their names."""
    named = ", ".join(f"{name} AS ({view})" for name, view in views)
    return f"WITH {named} {text}"
