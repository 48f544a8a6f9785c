"""How much state an operator keeps: the formulas of docs/tuning.md, which a test compares.

`row` is what `packed_bytes` says of the kept columns; the rest is what cells and their keys take
beside it, measured by `python -m bench.hot_key`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

from spark_jobs.plan.nodes.parts import Side
from spark_jobs.plan.nodes.physical import (
    Aggregate,
    Deduplicate,
    IntervalJoin,
    JoinInput,
    MultiJoin,
    Normalize,
    RegularJoin,
    SinkMaterializer,
    Stateful,
    TemporalJoin,
)
from spark_jobs.sql.types.data_types import DataType

_WORD = 8
_INLINE_DIGITS = 18  # a longer DECIMAL stands behind the row

Grows: TypeAlias = Literal["rows", "keys", "window"]


@dataclass(frozen=True, slots=True)
class SideFormula:
    """What one input adds to an operator's state.

    `formula` is the text in docs/tuning.md, `beside` its bytes per row beside row and key, `key`
    the ordinals of the columns that are kept once more as a key. `grows` with each row, with each
    new key, or only as far as `kept_ms` reaches back; 0 keeps for ever.
    """

    side: str
    number: int
    grows: Grows
    formula: str
    beside: int
    key: tuple[int, ...] = ()
    kept_ms: int = 0

    def row_bytes(self, schema: DataType, rows: Sequence[Sequence[Any]]) -> tuple[float, float]:
        """Mean sizes of row and key over a sample of rows."""
        fields = [schema.fields[i] for i in self.key]
        key = DataType("ROW", fields=tuple(fields))
        whole = sum(packed_bytes(schema, row) for row in rows) / len(rows)
        if not self.key:
            return whole, 0.0
        return whole, sum(packed_bytes(key, [r[i] for i in self.key]) for r in rows) / len(rows)


def packed_bytes(schema: DataType, values: Sequence[Any]) -> int:
    """Of a row of these values, as the kernel's JSON of rows has them."""
    words = len(values) + (len(values) + 63) // 64
    behind = (_behind(f.type, v) for f, v in zip(schema.fields, values, strict=True))
    return _WORD * words + sum(behind)


def _behind(column: DataType, value: Any) -> int:
    """What stands behind the fixed part of a row, in whole words."""
    if value is None:
        return 0
    match column.name:
        case "STRING":
            size = len(str(value).encode())
        case "BYTES":
            size = len(str(value)) * 3 // 4
        case "DECIMAL" if (column.precision or 0) > _INLINE_DIGITS:
            size = 2 * _WORD
        case "ROW" | "ARRAY" | "MAP":
            size = len(json.dumps(value))
        case _:
            return 0
    return -(-size // _WORD) * _WORD


def side_formulas(node: Stateful) -> Iterator[SideFormula]:
    """Of every input that leaves rows in the state; of groups and sink keys no size is known."""
    ttl = node.timing.ttl_ms
    match node:
        case RegularJoin():
            yield from (
                _table(_name(i), i, side, ttl[i]) for i, side in enumerate((node.left, node.right))
            )
        case MultiJoin():
            yield from (
                _table(f"side {i + 1}", i, side, ttl[i]) for i, side in enumerate(node.sides)
            )
        case IntervalJoin() if node.lower_ms <= node.upper_ms:
            windows = max(-node.lower_ms, 0), max(node.upper_ms, 0)
            for i, window_ms in enumerate(windows):
                kept_ms = window_ms + node.min_cleanup_ms
                yield SideFormula(
                    _name(i), i, "window", "rate x window x (row + 25)", 25, kept_ms=kept_ms
                )
        case TemporalJoin(time="event"):
            yield SideFormula(_name(1), 1, "keys", "keys x (row + 30)", 30, kept_ms=max(ttl))
        case TemporalJoin():
            yield SideFormula(_name(1), 1, "keys", "keys x (row + 25)", 25, kept_ms=max(ttl))
        case Normalize():
            yield SideFormula(
                "input", 0, "keys", "keys x (row + key + 15)", 15, node.key, kept_ms=max(ttl)
            )
        case IntervalJoin() | Deduplicate() | Aggregate() | SinkMaterializer():
            return


def _table(name: str, number: int, side: Side, ttl_ms: int) -> SideFormula:
    key = side.unique_key if side.layout == "has-unique-key" else ()
    text = "rows x (row + unique key + 20) per side"
    return SideFormula(name, number, "rows", text, 20, key, kept_ms=ttl_ms)


def _name(number: int) -> str:
    return ("left", "right")[number]


def feeds(node: Stateful, formula: SideFormula) -> tuple[JoinInput, ...]:
    """The inputs of that side."""
    return tuple(i for i in node.inputs if len(node.inputs) == 1 or i.side == formula.number)
