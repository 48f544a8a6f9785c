"""Lookup joins: which join looks rows up in a database, and by which columns there."""

from spark_jobs.plan.facts.facts import facts
from spark_jobs.plan.facts.keys import EquiKey, JoinCondition, shift
from spark_jobs.plan.facts.sources import Source, source_of
from spark_jobs.sql.logical import Join
from spark_jobs.sql.types.data_types import BOOLEAN, INTEGERS, TIMESTAMPS
from spark_jobs.sql.types.expr import Call, Column, columns

KEY_TYPES = (*INTEGERS, "DECIMAL", "STRING", "BOOLEAN", "DATE", *TIMESTAMPS)
"""Types of columns that rows can be looked up by."""


def looked_up(join: Join) -> Source | None:
    """The table of a database that the left rows are looked up in; None for any other join."""
    source = source_of(join.right)
    is_lookup = join.as_of is not None and source is not None and source.table.is_looked_up
    return source if is_lookup else None


def lookup_condition(join: Join, source: Source) -> JoinCondition:
    """The join's condition, whose keys are those that the database can look up.

    They compare a column of its table as it stands with something of the left row. All other
    conditions are checked of the rows that were found.
    """
    found = facts(join).condition
    keys = tuple(k for k in found.keys if _is_lookup_key(k, source))
    width = len(join.left.fields)
    rest = tuple(_equality(k, width) for k in found.keys if k not in keys)
    return JoinCondition(keys, (*rest, *found.residual))


def key_places(condition: JoinCondition, source: Source) -> tuple[int, ...]:
    """The column of the table that each key is compared with."""
    exprs = (source.exprs[k.right.index] for k in condition.keys if isinstance(k.right, Column))
    return tuple(e.index for e in exprs if isinstance(e, Column))


def _is_lookup_key(key: EquiKey, source: Source) -> bool:
    """A constant of the query could be a key as well; it is left to the rows that are found."""
    if key.null_safe or not columns((key.left,)) or not isinstance(key.right, Column):
        return False
    stored = source.exprs[key.right.index]
    return isinstance(stored, Column) and stored.type.name in KEY_TYPES


def _equality(key: EquiKey, width: int) -> Call:
    name = "IS NOT DISTINCT FROM" if key.null_safe else "="
    return Call(name, (key.left, shift(key.right, width)), BOOLEAN)
