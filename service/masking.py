"""Hides the columns that the sidecar is told to mask, in result rows and in rows of state."""

import re
from collections.abc import Collection
from typing import Any

MASK = "***"


def masked(value: Any, hidden: Collection[str]) -> Any:
    """A JSON value whose hidden columns, at any depth, are `***`.

    >>> masked({"id": 1, "card": 4111, "to": [{"card0": 4112}]}, ("card",))
    {'id': 1, 'card': '***', 'to': [{'card0': '***'}]}
    """
    match value:
        case dict():
            return {
                k: MASK if is_hidden(k, hidden) else masked(v, hidden) for k, v in value.items()
            }
        case list() | tuple():
            return [masked(v, hidden) for v in value]
        case _:
            return value


def is_hidden(column: str, hidden: Collection[str]) -> bool:
    """Whether a column is hidden, or is computed of one that is.

    A join numbers columns of one name (`card0`), and a key is named by its expression, in which
    columns are in backticks.

    >>> [is_hidden(name, ("card",)) for name in ("card1", "LOWER(`card`)", "cards")]
    [True, True, False]
    """
    return any(re.search(rf"(^|`){re.escape(name)}\d*(`|$)", column) for name in hidden)
