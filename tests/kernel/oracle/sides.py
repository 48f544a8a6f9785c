"""What the changes of one input of a join leave behind."""

import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.kernel.oracle.check import Batch, Emitted, struct
from tests.kernel.oracle.rows import COLUMNS, Row


@dataclass(frozen=True, slots=True)
class Side:
    """What the planner would say of one input."""

    layout: str
    unique_key: tuple[int, ...]
    upsert: bool

    def spec(self, prefix: str) -> dict[str, Any]:
        return {
            "schema": struct((f"{prefix}_{name}", kind) for name, kind in COLUMNS),
            "layout": self.layout,
            "uniqueKey": list(self.unique_key),
            "upsert": self.upsert,
        }


@dataclass(slots=True)
class SideModel:
    """The rows that the changes of one input leave behind; `unhealed` are those that lack values
    which nobody knows."""

    side: Side
    key: tuple[int, ...]
    rows: Counter[Row] = field(default_factory=Counter)
    unhealed: list[Row] = field(default_factory=list)

    def take(self, kind: str, row: Row, missing: Sequence[int]) -> None:
        """Apply a change that lacks some values: they are those of the row before."""
        if missing:
            same = (*self.key, *self.side.unique_key)
            old = [r for r in self.rows if all(r[i] == row[i] for i in same)]
            if not old:
                self.unhealed.append(row)
                return
            row = tuple(old[0][i] if i in missing else v for i, v in enumerate(row))
        self.apply(kind, row)

    def apply(self, kind: str, row: Row) -> None:
        if self.side.layout == "no-unique-key":
            if kind in ("+I", "+U"):
                self.rows[row] += 1
            elif self.rows[row] > 0:
                self.rows[row] -= 1
                self.rows += Counter()  # forgets zeros
            return
        same = (*self.key, *self.side.unique_key)
        old = [r for r in self.rows if all(r[i] == row[i] for i in same)]
        for stored in old:
            del self.rows[stored]
        if kind in ("+I", "+U"):
            self.rows[row] = 1


def take_batch(batch: Batch, sides: Mapping[Any, SideModel], emitted: Emitted) -> list[str]:
    """Apply a batch; what is wrong with the records that the machine sets aside."""
    for side, kind, values, *more in batch:
        sides[side].take(kind, tuple(values), more[0]["missing"] if more else ())
    models = sides.values()
    texts = [json.dumps(list(r), separators=(",", ":")) for s in models for r in s.unhealed]
    for model in models:
        model.unhealed.clear()
    wanted = sorted(["reject", "rejects", "debezium-unavailable-value", text] for text in texts)
    found = sorted(e for e in emitted if e[0] == "reject")
    return [] if wanted == found else [f"rejects {found}, expected {wanted}"]
