"""Finds the columns of a result row that hold the key under which an operator keeps its rows.

A result row does not say where it comes from. Its columns are followed from the sink down to the
operators, as far as each is passed on unchanged; where both sides of a join are equal in a key
column, the value of one side is that of the other. An outer join fills a side with NULL, so a
column that is NULL tells nothing.
"""

import re
from collections.abc import Mapping
from typing import assert_never

from spark_jobs.plan.nodes.physical import (
    Aggregate,
    KafkaScan,
    KafkaSink,
    Rekey,
    Results,
    Stateful,
)

_COLUMN = re.compile(r"`((?:[^`]|``)+)`")

Shown = Mapping[str, str]
"""The columns of an operator that are seen in a result row, each with its name there."""


def result_keys(root: KafkaSink | Results) -> dict[str, tuple[str, ...]]:
    """By operator id, the result columns that hold its key; without operators that do not show it.

    The columns stand in the order of the key. An operator without a key is not in it.
    """
    found: dict[str, tuple[str, ...]] = {}
    for project in root.inputs:
        passed = ((_column(named.expr), named.name) for named in project.select)
        _follow(project.input, {column: name for column, name in passed if column}, found)
    return found


def _follow(node: KafkaScan | Stateful, shown: Shown, found: dict[str, tuple[str, ...]]) -> None:
    match node:
        case KafkaScan():
            return
        case Stateful():
            key = _key(node, shown)
            if key and all(key):
                found[node.id] = tuple(name for name in key if name)
            for below in node.inputs:
                if isinstance(below, Rekey):
                    _follow(below.input, _below(below, key, shown), found)
        case _:
            assert_never(node)


def _key(node: Stateful, shown: Shown) -> list[str | None]:
    """For each column of the operator's key, the result column that holds it, if one does."""
    machine = node.machine
    width = len(node.inputs[0].key)
    if isinstance(machine, Aggregate):  # its rows begin with the key
        return [shown.get(field.name) for field in machine.schema.fields[:width]]
    key: list[str | None] = [None] * width
    for side in node.inputs:
        passed = _passed(side, shown)
        for i, expr in enumerate(side.key):
            key[i] = key[i] or passed.get(_column(expr) or "")
    return key


def _below(rekey: Rekey, key: list[str | None], shown: Shown) -> dict[str, str]:
    """The columns below an input of an operator that are seen, those of its key among them."""
    keyed = ((_column(expr), name) for expr, name in zip(rekey.key, key, strict=True))
    return {column: name for column, name in keyed if column and name} | _passed(rekey, shown)


def _passed(side: KafkaScan | Rekey, shown: Shown) -> dict[str, str]:
    """The columns that an input has before it is projected and that are seen."""
    columns = ((_column(named.expr), shown.get(named.name)) for named in side.row)
    return {column: name for column, name in columns if column and name}


def _column(expr: str) -> str | None:
    """The name of a column; None for any other expression.

    >>> _column("`a``b`"), _column("CAST(`a` AS BIGINT)"), _column("`a` + `b`")
    ('a`b', None, None)
    """
    match = _COLUMN.fullmatch(expr)
    return None if match is None else match[1].replace("``", "`")
