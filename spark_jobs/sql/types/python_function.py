"""A Python function that SQL may call: what it takes and what it gives."""

from dataclasses import dataclass

from spark_jobs.sql.types.data_types import DataType


@dataclass(frozen=True, slots=True)
class PythonFunction:
    """CREATE FUNCTION ... LANGUAGE PYTHON.

    `parameters` are the types that arguments are cast to, None where the function does not say.
    The last `optional` of them may be left out; `is_variadic`: more arguments may follow.
    """

    name: str
    target: str
    parameters: tuple[DataType | None, ...]
    optional: int
    is_variadic: bool
    result: DataType
