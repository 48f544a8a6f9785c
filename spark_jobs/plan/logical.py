"""The logical plan by the planner's name for it.

The nodes stand in sql/logical.py, because the binder makes them and imports point one way.
"""

from spark_jobs.sql.logical import (
    Field,
    Filter,
    Join,
    JoinType,
    Logical,
    Position,
    Project,
    Scan,
    Sink,
    TimeAttribute,
)

__all__ = [
    "Field",
    "Filter",
    "Join",
    "JoinType",
    "Logical",
    "Position",
    "Project",
    "Scan",
    "Sink",
    "TimeAttribute",
]
