"""The public Python API of rejoin, described in docs/python.md.

Everything else in `spark_jobs` is internal and may change at any time.
"""

from spark_jobs import __version__
from spark_jobs.api.changelog import (
    Changelog,
    TemporalTableFunction,
    interval_join,
    regular_join,
    temporal_join,
)
from spark_jobs.api.job import Job
from spark_jobs.api.running import RunningJob
from spark_jobs.api.session import session, session_conf
from spark_jobs.errors import RejoinError, SqlErrors
from spark_jobs.functions.declared import udf

__all__ = [
    "Changelog",
    "Job",
    "RejoinError",
    "RunningJob",
    "SqlErrors",
    "TemporalTableFunction",
    "__version__",
    "interval_join",
    "regular_join",
    "session",
    "session_conf",
    "temporal_join",
    "udf",
]
