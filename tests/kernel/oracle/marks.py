"""How marks add up to the watermark and the clock of an operator, for the oracle's models."""

from dataclasses import dataclass, field

from tests.kernel.oracle.check import Batch, Event

NEVER = -(2**63)
END = 2**63 - 1
MARKS = ("watermark", "clock", "loaded", "end")


def is_mark(event: Event) -> bool:
    return event[0] in MARKS


@dataclass(slots=True)
class Partition:
    """The only partition of an input: its watermark and when, by the clock, that last moved."""

    watermark: int = NEVER
    moved_at: int = NEVER


@dataclass(slots=True)
class TimeModel:
    """The watermark of some inputs together, as docs/semantics.md has it."""

    policy: str
    idle_timeout_ms: int
    sides: tuple[str, ...] = ("left", "right")
    clock: int = NEVER
    inputs: dict[str, Partition] = field(default_factory=dict)
    current: int = NEVER
    ended: bool = False

    def hear(self, batch: Batch) -> None:
        """The clock first: a watermark of its batch moves at its time."""
        marks = sorted((e for e in batch if is_mark(e)), key=lambda e: e[0] != "clock")
        for event in marks:
            self._apply(event)
        marked = [w for side in self.sides if (w := self.watermark_of(side)) is not None]
        if self.ended:
            self.current = END
        elif marked:
            pick = max(marked) if self.policy == "max" else min(marked)
            self.current = max(self.current, pick)

    def watermark_of(self, side: str) -> int | None:
        partition = self.of(side)
        return None if self._is_idle(partition) else partition.watermark

    def of(self, side: str) -> Partition:
        return self.inputs.setdefault(side, Partition(moved_at=self.clock))

    def _apply(self, event: Event) -> None:
        match event:
            case ["clock", ms]:
                self.clock = max(self.clock, ms)
            case ["watermark", side, ms] if ms > self.of(side).watermark:
                self.inputs[side] = Partition(ms, self.clock)
            case ["end"]:
                self.ended = True
            case _:
                pass

    def _is_idle(self, partition: Partition) -> bool:
        if not self.idle_timeout_ms or NEVER in (self.clock, partition.moved_at):
            return False
        return self.clock - partition.moved_at >= self.idle_timeout_ms
