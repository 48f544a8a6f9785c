"""The logical plan by the planner's name for it.

The nodes stand in sql/logical.py, because the binder makes them and imports point one way.
"""

from spark_jobs.sql.logical import (
    Aggregate,
    AggregateCall,
    Deduplicate,
    Field,
    Filter,
    Join,
    JoinType,
    Logical,
    Position,
    Project,
    RowNumber,
    Scan,
    Sink,
    Snapshot,
    TimeAttribute,
    Union,
    inputs_of,
)

__all__ = [
    "Aggregate",
    "AggregateCall",
    "Deduplicate",
    "Field",
    "Filter",
    "Join",
    "JoinType",
    "Logical",
    "Position",
    "Project",
    "RowNumber",
    "Scan",
    "Sink",
    "Snapshot",
    "TimeAttribute",
    "Union",
    "inputs_of",
]
