"""Functions of arrays and maps with Flink's meaning as Spark SQL text."""

from collections.abc import Sequence

from spark_jobs.plan.spark_sql.kernel_functions import Render
from spark_jobs.plan.spark_sql.types import type_text
from spark_jobs.sql.types.expr import Call

# a name that no column has, so that the other side of a comparison is not taken for it
_ITEM = "`\\u0001item`"


def _named(name: str) -> Render:
    return lambda args, call: f"CAST({name}({', '.join(args)}) AS {type_text(call.type)})"


def _contains(args: Sequence[str], _: Call) -> str:
    return f"exists({args[0]}, {_ITEM} -> {_ITEM} <=> {args[1]})"


def _remove(args: Sequence[str], _: Call) -> str:
    return f"filter({args[0]}, {_ITEM} -> NOT ({_ITEM} <=> {args[1]}))"


def _element(args: Sequence[str], _: Call) -> str:
    several = "raise_error('ELEMENT of an array of more than one element')"
    return f"if(size({args[0]}) > 1, {several}, get({args[0]}, 0))"


def _slice(args: Sequence[str], _: Call) -> str:
    """Both ends count from 1, or from the end if they are negative; 0 is 1."""
    array, begin, *end = args
    size = f"size({array})"
    first = _place(begin, size)
    last = _place(end[0], size) if end else size
    length = f"greatest({last} - {first} + 1, 0)"
    nulls = " OR ".join(f"{arg} IS NULL" for arg in args)
    return f"if({nulls}, NULL, slice({array}, greatest({first}, 1), {length}))"


def _place(value: str, size: str) -> str:
    value = f"CAST({value} AS INT)"
    from_end = f"greatest({size} + {value} + 1, 1)"
    from_begin = f"least(greatest({value}, 1), {size} + 1)"
    return f"if({value} < 0, {from_end}, {from_begin})"


def _sort(args: Sequence[str], _: Call) -> str:
    array, *order = args
    ascending = order[0] if order else "true"
    found = f"if({ascending}, sort_array({array}, true), sort_array({array}, false))"
    if len(order) < 2:
        return found if not order else f"if({ascending} IS NULL, NULL, {found})"
    there = f"filter({array}, {_ITEM} -> {_ITEM} IS NOT NULL)"
    nulls = f"filter({array}, {_ITEM} -> {_ITEM} IS NULL)"
    values = f"if({ascending}, sort_array({there}, true), sort_array({there}, false))"
    both = f"if({order[1]}, concat({nulls}, {values}), concat({values}, {nulls}))"
    return f"if({ascending} IS NULL OR {order[1]} IS NULL, NULL, {both})"


COLLECTION_RENDERS: dict[str, Render] = {
    "ELEMENT": _element,
    "ARRAY_APPEND": _named("array_append"),
    "ARRAY_PREPEND": _named("array_prepend"),
    "ARRAY_CONCAT": _named("concat"),
    "ARRAY_CONTAINS": _contains,
    "ARRAY_POSITION": _named("array_position"),
    "ARRAY_REMOVE": _remove,
    "ARRAY_REVERSE": _named("reverse"),
    "ARRAY_SLICE": _slice,
    "ARRAY_SORT": _sort,
    "MAP_UNION": _named("map_concat"),
}
