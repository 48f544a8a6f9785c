"""The two kinds of refusal, at a place in the SQL text, with a way out."""

from spark_jobs.errors import SqlError, UnsupportedError
from spark_jobs.plan.nodes.logical import Position


def wrong(code: str, message: str, at: Position, hint: str) -> SqlError:
    """What Flink refuses too."""
    return SqlError(code, message, hint, line=at.line, column=at.column)


def unsupported(code: str, message: str, at: Position, hint: str) -> UnsupportedError:
    """What Flink runs and rejoin does not."""
    return UnsupportedError(code, message, hint, line=at.line, column=at.column)
