"""How marks add up to the watermark and the clock of an operator, for the oracle's models."""

from dataclasses import dataclass, field

from tests.kernel.oracle.check import Batch, Event

NEVER = -(2**63)
END = 2**63 - 1
MARKS = ("watermark", "idle", "clock", "loaded", "end")


def is_mark(event: Event) -> bool:
    return event[0] in MARKS


@dataclass(slots=True)
class Partition:
    """The only partition of an input: its watermark, and when, by the clock, it last had records.

    `says_idle`: the operator that it is has said so.
    """

    watermark: int = NEVER
    active_at: int = NEVER
    says_idle: bool = False


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
        """The clock first, as records come at its time; idleness last, as it follows watermarks."""
        ranks = {"clock": 0, "idle": 2}
        for event in sorted((e for e in batch if is_mark(e)), key=lambda e: ranks.get(e[0], 1)):
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

    @property
    def is_idle(self) -> bool:
        """Whether the operator waits for no input."""
        known = [side for side in self.sides if side in self.inputs]
        quiet = all(self.watermark_of(side) is None for side in known)
        return quiet and len(known) == len(self.sides) and not self.ended

    def passed_on(self, before: int, was_idle: bool) -> list[Event]:
        """The marks that the operator passes on after a batch."""
        moved = was_idle or self.current > before
        marks: list[Event] = [["watermark", max(self.current, NEVER + 1)]] if moved else []
        return marks + ([["idle"]] if self.is_idle else [])

    def of(self, side: str) -> Partition:
        return self.inputs.setdefault(side, Partition(active_at=self.clock))

    def _apply(self, event: Event) -> None:
        match event:
            case ["clock", ms]:
                self.clock = max(self.clock, ms)
            case ["watermark", side, ms]:
                self.inputs[side] = Partition(max(ms, self.of(side).watermark), self.clock)
            case ["idle", side]:
                self.of(side).says_idle = True
            case ["end"]:
                self.ended = True
            case _:
                pass

    def _is_idle(self, partition: Partition) -> bool:
        if not self.idle_timeout_ms:
            return partition.says_idle
        if NEVER in (self.clock, partition.active_at):
            return False
        return self.clock - partition.active_at >= self.idle_timeout_ms
