"""Finds the state behind a result row: the operators whose key the row shows, and that key."""

import json
from collections.abc import Collection, Iterator, Sequence
from typing import Any

from service.masking import is_hidden
from service.models import StateLink
from spark_jobs.job_record import GraphNode

_IMAGES = ("after", "before", "data")
"""Where the formats of changelogs have the row in a record's value."""


def state_links(
    key: bytes | str | None,
    value: bytes | str | None,
    nodes: Sequence[GraphNode],
    hidden: Collection[str],
    *,
    is_changelog: bool,
) -> Iterator[StateLink]:
    """One link per operator whose whole key is in the row; NULL and masked values tell nothing."""
    row = _columns(key) | _columns(value, is_changelog=is_changelog)
    for node in nodes:
        values = [row.get(column) for column in node.key_columns]
        if not values or any(v is None or isinstance(v, dict | list) for v in values):
            continue
        if node.operator is not None and not any(is_hidden(c, hidden) for c in node.key_columns):
            yield StateLink(
                operator=node.operator,
                title=node.title,
                columns=node.key_columns,
                key=json.dumps(values, ensure_ascii=False),
            )


def _columns(data: bytes | str | None, *, is_changelog: bool = False) -> dict[str, Any]:
    """The columns in a record's key or value; numbers with a fraction keep all their digits."""
    try:
        found = json.loads(data or b"", parse_float=str)
    except (ValueError, RecursionError):
        return {}
    if not isinstance(found, dict):
        return {}
    if not is_changelog:
        return found
    images = (found.get(name) for name in _IMAGES)
    rows = (image[0] if isinstance(image, list) and image else image for image in images)
    return next((row for row in rows if isinstance(row, dict)), {})
