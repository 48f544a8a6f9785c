"""Random event-time temporal joins and their input."""

import random
from dataclasses import dataclass
from typing import Any

from tests.kernel.oracle.check import Event, struct
from tests.kernel.oracle.nodes import RESIDUAL, output_node, probe_node, side_node, timing_node
from tests.kernel.oracle.probes import Identity, ProbeWriter

LEFT = (("l_t", "long"), ("l_k", "string"), ("l_v", "integer"), ("l_id", "string"))
RIGHT = (("r_t", "long"), ("r_k", "string"), ("r_v", "integer"))
T, K, V, ID = range(4)


@dataclass(frozen=True, slots=True)
class Join:
    """A temporal join as the model understands it; each input has one partition.

    `paired`: the sink is keyed by the probe row's id, all of whose changes have one join key.
    `probes`: what the probe rows, which change, are known by; None where the join does not care.
    """

    is_left: bool
    nulls_never_match: bool
    residual: bool
    where: bool
    policy: str
    idle_timeout_ms: int
    paired: bool
    ttl_ms: int = 0
    joins_late: bool = False
    forwards: bool = False
    late_topic: str | None = None
    probes: Identity | None = None

    def node(self) -> dict[str, Any]:
        return {
            "kind": "temporal-join",
            "joinType": "left" if self.is_left else "inner",
            "time": "event",
            "gate": {"kind": "none", "atMs": 0, "timeoutMs": 0, "onTimeout": "fail"},
            "lateProbe": "join" if self.joins_late else "drop",
            "left": probe_node(LEFT, self.probes, ID),
            "probeChanges": self.probes is not None,
            "right": side_node(RIGHT),
            "key": struct([("k", "string")]),
            "filterNulls": [self.nulls_never_match],
            "residual": RESIDUAL if self.residual else None,
            "output": output_node(self.where, self.paired) | {"lateTopic": self.late_topic},
            "timing": timing_node(self.idle_timeout_ms, self.policy, self.forwards, self.ttl_ms),
            "rows": [
                {"schema": struct(LEFT), "key": [K], "time": T},
                {"schema": struct(RIGHT), "key": [K], "time": T},
            ],
        }


class EventWriter:
    """Rows and marks around a time that moves on; some rows late, some times before 1970."""

    def __init__(self, rng: random.Random, join: Join) -> None:
        self._rng = rng
        self._timeout_ms = join.idle_timeout_ms
        self._keyed = join.paired
        self._leaves_out = rng.choice([0.0, 0.3])
        self._probes: dict[str, list[Any]] = {}
        self._now = rng.choice([-50, 0, 0, 1_600_000_000_000, -(2**55), 2**62])
        self._pace = rng.choice([1, 5, 100])
        self._keys = [*"abcdef"[: rng.choice([1, 2, 6])], None]
        self._ttl_ms = join.ttl_ms
        self._changing = join.probes and ProbeWriter(
            rng, ID, join.probes, self._fresh, self._changed
        )
        self.clock = rng.choice([0, 1_700_000_000_000])

    def write(self) -> list[Event]:
        rng = self._rng
        self._now += rng.choice([0, 0, 1, self._pace])
        pick = rng.random()
        if pick < 0.40:
            return self._probe()
        if pick < 0.75:
            return [self._build()]
        if pick < (0.90 if self._ttl_ms else 0.97) or not self._timeout_ms + self._ttl_ms:
            side = rng.choice(["left", "right"])
            if rng.random() < 0.1:
                return [["idle", side]]
            return [["watermark", side, self._now - rng.choice([0, 1, 5, 20])]]
        pause = rng.choice([t for t in (self._timeout_ms, self._ttl_ms) if t])
        self.clock += rng.choice([1, pause // 2, pause])
        return [["clock", self.clock]]

    def _probe(self) -> list[Event]:
        rng = self._rng
        if self._changing is not None:
            return self._changing.write()
        row: list[Any] = [self._near(), self._key(), self._small(), "x"]
        if not self._keyed:
            return [["left", rng.choice(["+I", "+I", "+I", "+U", "-U", "-D"]), row]]
        row[ID] = f"{row[K]}{rng.randrange(3)}"
        old = self._probes.pop(row[ID], None)
        if old is None:
            self._probes[row[ID]] = row
            return [["left", "+I", row]]
        if rng.random() < 0.4:
            old = [rng.choice([old[T], row[T]]), *old[1:]]
            return [["left", "-D", old]]
        self._probes[row[ID]] = row
        return [["left", "-U", old], ["left", "+U", row]]

    def _fresh(self) -> list[Any]:
        key = self._key()
        name = f"{key}{self._rng.randrange(3)}" if self._keyed else self._rng.choice("xyzuvw")
        return [self._near(), key, self._small(), name]

    def _changed(self, old: list[Any]) -> list[Any]:
        rng = self._rng
        time = old[T] if rng.random() < 0.6 else self._near()
        key = self._key() if rng.random() < 0.3 and not self._keyed else old[K]
        return [time, key, self._small(), old[ID]]

    def _build(self) -> Event:
        rng = self._rng
        if rng.random() < self._leaves_out:
            return ["right", "+U", [self._near(), self._key(), None], {"missing": [V]}]
        kind = rng.choice(["+I", "+U", "+U", "+U", "-U", "-D"])
        time = None if kind == "-D" and rng.random() < 0.3 else self._near()
        return ["right", kind, [time, self._key(), self._small()]]

    def _near(self) -> int:
        return self._now + self._rng.choice([-100, -20, -5, -2, -1, 0, 0, 0, 1, 2, 5, 20])

    def _key(self) -> str | None:
        return self._rng.choice(self._keys) if self._rng.random() < 0.95 else None

    def _small(self) -> int | None:
        return None if self._rng.random() < 0.1 else self._rng.randrange(5)
