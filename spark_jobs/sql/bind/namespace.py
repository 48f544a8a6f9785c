"""The names that the statements of one job file have made so far."""

from dataclasses import dataclass, field

from spark_jobs.options.settings import NOTHING_SET, DeclaredSettings
from spark_jobs.sql.catalog import Table
from spark_jobs.sql.logical import Logical


@dataclass(frozen=True, slots=True)
class TemporalFunction:
    """CREATE TEMPORAL TABLE FUNCTION: the rows of `input` as of a time, by key.

    `key` and `time` are positions in the input's fields.
    """

    input: Logical
    key: tuple[int, ...]
    time: int


@dataclass(slots=True)
class Namespace:
    """Tables, views and temporal table functions, and the settings in force."""

    tables: dict[str, Table] = field(default_factory=dict)
    views: dict[str, Logical] = field(default_factory=dict)
    functions: dict[str, TemporalFunction] = field(default_factory=dict)
    settings: DeclaredSettings = NOTHING_SET
