"""How much state an operator keeps: the formulas of docs/tuning.md, which a test compares.

`row` is the `packed_bytes` of the kept columns; the rest is what cells and their keys take
beside it, measured by `python -m bench.hot_key`.
"""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias, assert_never

from spark_jobs.plan.nodes.parts import Side
from spark_jobs.plan.nodes.physical import (
    BUILD_SIDE,
    Aggregate,
    Deduplicate,
    IntervalJoin,
    JoinInput,
    KeyChanges,
    LookupJoin,
    MultiJoin,
    Normalize,
    Rank,
    RegularJoin,
    SinkMaterializer,
    Stateful,
    TemporalJoin,
    Unnest,
)
from spark_jobs.sql.types.data_types import DataType

_WORD = 8
_BESIDE_REMEMBERED = 15
_INLINE_DIGITS = 18  # a longer DECIMAL stands behind the row

Grows: TypeAlias = Literal["rows", "keys", "window"]


@dataclass(frozen=True, slots=True)
class SideFormula:
    """What one input adds to an operator's state.

    `formula` is the text in docs/tuning.md, `beside` its bytes per row beside row and key, `key`
    the ordinals of the columns that are kept once more as a key, or instead of the row where
    `keeps_row` is false. `grows` with each row, with each new key, or only as far as `kept_ms`
    reaches back; 0 keeps for ever.
    """

    side: str
    number: int
    grows: Grows
    formula: str
    beside: int
    key: tuple[int, ...] = ()
    kept_ms: int = 0
    keeps_row: bool = True

    def row_bytes(self, schema: DataType, rows: Sequence[Sequence[Any]]) -> tuple[float, float]:
        """Mean sizes of row and key over a sample of rows."""
        fields = [schema.fields[i] for i in self.key]
        key = DataType("ROW", fields=tuple(fields))
        whole = sum(packed_bytes(schema, row) for row in rows) / len(rows) if self.keeps_row else 0
        if not self.key:
            return whole, 0.0
        return whole, sum(packed_bytes(key, [r[i] for i in self.key]) for r in rows) / len(rows)


def packed_bytes(schema: DataType, values: Sequence[Any]) -> int:
    """The size of a row of these values, given as the kernel's JSON of rows has them."""
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
    """Every input that leaves rows in the state; of groups and sink keys no size is known."""
    ttl, machine, names = node.timing.ttl_ms, node.machine, node.side_names
    kept_ms = max(ttl)
    match machine:
        case RegularJoin() | MultiJoin():
            for i, side in enumerate(node.sides):
                yield _table(names[i], i, side, ttl[i])
        case IntervalJoin():
            for i, kept_ms in enumerate(
                machine.kept_ms if machine.lower_ms <= machine.upper_ms else ()
            ):
                text = "rate x window x (row + 25)"
                yield SideFormula(names[i], i, "window", text, 25, kept_ms=kept_ms)
        case TemporalJoin() | LookupJoin():
            if machine.probe_changes:
                yield _memory(names[0], machine, kept_ms)
            if isinstance(machine, LookupJoin):
                return
            # a version is kept under its time, the newest row of a key alone
            versions = "keys x (row + 30)", 30
            text, beside = versions if machine.time == "event" else ("keys x (row + 25)", 25)
            yield SideFormula(names[BUILD_SIDE], BUILD_SIDE, "keys", text, beside, kept_ms=kept_ms)
        case Normalize(key=key):
            text = "keys x (row + key + 15)"
            yield SideFormula(names[0], 0, "keys", text, 15, key, kept_ms=kept_ms)
        case KeyChanges() | Deduplicate() | Rank() | Aggregate() | SinkMaterializer() | Unnest():
            return
        case _:
            assert_never(machine)


def _table(name: str, number: int, side: Side, ttl_ms: int) -> SideFormula:
    key = side.unique_key if side.layout == "has-unique-key" else ()
    text = "rows x (row + unique key + 20) per side"
    return SideFormula(name, number, "rows", text, 20, key, kept_ms=ttl_ms)


def _memory(name: str, join: TemporalJoin | LookupJoin, kept_ms: int) -> SideFormula:
    """What the probe rows were joined with."""
    text = "rows x (row + build row + 15)"
    if join.pair.left.layout != "no-unique-key":
        text = "rows x (unique key + build row + 15)"
    beside = _fixed_bytes(join.pair.right.schema) + _BESIDE_REMEMBERED
    keeps_row = join.pair.left.layout == "no-unique-key"
    key = join.pair.left.unique_key
    return SideFormula(name, 0, "rows", text, beside, key, kept_ms=kept_ms, keeps_row=keeps_row)


def remembered_bytes(join: TemporalJoin | LookupJoin) -> int:
    """What a probe row that may change leaves in the state, but for the texts in it."""
    left = join.pair.left
    known_by = {
        "join-key-contains-unique-key": (),
        "has-unique-key": tuple(left.schema.fields[i] for i in left.unique_key),
        "no-unique-key": left.schema.fields,
    }[left.layout]
    identity = _fixed_bytes(DataType("ROW", fields=known_by)) if known_by else 0
    return identity + _fixed_bytes(join.pair.right.schema) + _BESIDE_REMEMBERED


def _fixed_bytes(schema: DataType) -> int:
    return packed_bytes(schema, [None] * len(schema.fields))


def feeds(node: Stateful, formula: SideFormula) -> tuple[JoinInput, ...]:
    """The inputs of that side."""
    return tuple(i for i in node.inputs if len(node.inputs) == 1 or i.side == formula.number)
