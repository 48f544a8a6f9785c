"""The statements of a job file, names unresolved; `start` is an offset into the text."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, TypeAlias

from sqlglot import exp

from spark_jobs.sql.types.type_text import WrittenType

ConflictStrategy: TypeAlias = Literal["deduplicate", "nothing", "error"]


@dataclass(frozen=True, slots=True)
class Name:
    """An identifier or a quoted text, and where it stands."""

    text: str
    start: int


@dataclass(frozen=True, slots=True)
class ColumnClause:
    """`name TYPE`, `name AS expr`, or `name TYPE METADATA [FROM 'key'] [VIRTUAL]`."""

    name: Name
    type: WrittenType | None = None
    computed: exp.Expr | None = None
    metadata_key: Name | None = None
    virtual: bool = False


@dataclass(frozen=True, slots=True)
class KeyClause:
    """PRIMARY KEY (columns) NOT ENFORCED."""

    columns: tuple[Name, ...]
    start: int


@dataclass(frozen=True, slots=True)
class WatermarkClause:
    """WATERMARK FOR column AS expr."""

    column: Name
    expr: exp.Expr
    start: int


@dataclass(frozen=True, slots=True)
class OptionClause:
    """'key' = 'value'."""

    key: Name
    value: Name


LikePart: TypeAlias = Literal["CONSTRAINTS", "GENERATED", "METADATA", "OPTIONS", "WATERMARKS"]
LikeRule: TypeAlias = Literal["INCLUDING", "EXCLUDING", "OVERWRITING"]


@dataclass(frozen=True, slots=True)
class LikeClause:
    """LIKE table (rules): what is taken over from another table, each part by its rule."""

    table: Name
    rules: Mapping[LikePart, LikeRule]


@dataclass(frozen=True, slots=True)
class CreateTable:
    """CREATE TABLE with all its clauses, in the order of the text."""

    name: Name
    if_not_exists: bool
    columns: tuple[ColumnClause, ...]
    keys: tuple[KeyClause, ...]
    watermarks: tuple[WatermarkClause, ...]
    options: tuple[OptionClause, ...]
    like: LikeClause | None = None


@dataclass(frozen=True, slots=True)
class CreateView:
    """CREATE VIEW name [(columns)] AS query."""

    name: Name
    if_not_exists: bool
    columns: tuple[Name, ...]
    query: exp.Expr


@dataclass(frozen=True, slots=True)
class CreateTemporalFunction:
    """CREATE TEMPORAL TABLE FUNCTION name FOR table TIME ATTRIBUTE time PRIMARY KEY (key)."""

    name: Name
    table: Name
    time: Name
    key: tuple[Name, ...]


@dataclass(frozen=True, slots=True)
class CreateFunction:
    """CREATE FUNCTION name AS 'module.function' LANGUAGE PYTHON."""

    name: Name
    if_not_exists: bool
    target: Name


@dataclass(frozen=True, slots=True)
class SetOption:
    """SET 'key' = 'value'."""

    key: Name
    value: Name


@dataclass(frozen=True, slots=True)
class InsertInto:
    """INSERT INTO table [(columns)] query [ON CONFLICT DO ...]."""

    table: Name
    columns: tuple[Name, ...]
    query: exp.Expr
    start: int
    on_conflict: ConflictStrategy | None = None


@dataclass(frozen=True, slots=True)
class Query:
    """A bare SELECT."""

    query: exp.Expr
    start: int


Statement: TypeAlias = (
    CreateTable
    | CreateView
    | CreateTemporalFunction
    | CreateFunction
    | SetOption
    | InsertInto
    | Query
)
