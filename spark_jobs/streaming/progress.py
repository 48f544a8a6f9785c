"""Spark's reports of a running query's epochs."""

import json
from collections.abc import Mapping
from typing import Any

from pyspark.sql.streaming.query import StreamingQuery


def last_progress(query: StreamingQuery) -> Mapping[str, Any] | None:
    """The newest report, as Spark's JSON; None before the first epoch."""
    handle: Any = query
    latest = handle._jsq.lastProgress()
    return None if latest is None else json.loads(latest.json())
