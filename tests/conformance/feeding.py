"""In which order, in which batches and with which restarts a case's rows may arrive.

No order between tables is implied: the same result must come of every way that is allowed. What
narrows them is in the plan: a build side that probe rows wait for, rows that are late or not by
how often the watermark is told, and processing time.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import zip_longest
from typing import Literal, TypeAlias

from spark_jobs.plan.nodes.physical import Deduplicate, KafkaSink, Stateful, TemporalJoin
from spark_jobs.plan.nodes.walk import scans, stateful_nodes
from spark_jobs.scenario.file import Input
from tests.conformance.case import Case

Rows: TypeAlias = list[Input]
Action: TypeAlias = Rows | Literal["restart", "phase", "pause"] | tuple[Literal["loaded"], str]

PAUSE_MS = 3_600_000


@dataclass(frozen=True, slots=True)
class Feeding:
    """One way to run a case: batches of rows, and what happens between them.

    `says_loaded`: the actions say when a build side is complete. `is_fine`: batches are single
    rows, so that the changelog is that of a row-by-row engine.
    """

    name: str
    actions: tuple[Action, ...]
    says_loaded: bool = False
    is_fine: bool = False


@dataclass(frozen=True, slots=True)
class _Part:
    """The rows of each table between two stops of the job."""

    rows: dict[str, Rows]

    def all(self, tables: Iterable[str]) -> Rows:
        return [row for table in tables for row in self.rows[table]]

    def turns(self, tables: Iterable[str]) -> list[Rows]:
        """Single rows, one of each table in turn."""
        turns = zip_longest(*(self.rows[table] for table in tables))
        return [[row] for turn in turns for row in turn if row is not None]


def feedings(case: Case, roots: Iterable[KafkaSink]) -> Iterator[Feeding]:
    nodes = [node for root in roots for node in stateful_nodes(root)]
    parts = _parts(case)
    tables = list(case["tables"])
    builds = [table for table in tables if table in _build_tables(case, nodes)]
    yield Feeding("one batch", _acted(case, ([part.all(tables)] for part in parts)))
    if builds:
        yield from _gated(case, parts, tables, builds)
        return
    backwards = tables[::-1]
    by_table = ([part.rows[table] for table in backwards] for part in parts)
    yield Feeding("table by table", _acted(case, by_table), is_fine=False)
    if any(isinstance(m, Deduplicate) and m.on_watermark for m in (node.machine for node in nodes)):
        return  # the case's watermark comes seldom: with one behind every row some are late
    fine = [part.turns(tables) for part in parts]
    yield Feeding("row by row", _acted(case, fine), is_fine=True)
    yield Feeding("restarts between rows", _restarting(_acted(case, fine)), is_fine=True)


def _gated(
    case: Case, parts: list[_Part], tables: list[str], builds: list[str]
) -> Iterator[Feeding]:
    """Build sides before the first probe row, and behind a gate that is still closed."""
    probes = [table for table in tables if table not in builds]
    loaded: list[Action] = [("loaded", table) for table in builds]
    first, *rest = parts
    before = [first.all(builds), *first.turns(probes)]
    behind = [*first.turns(probes), first.all(builds)]
    later = [part.turns([*builds, *probes]) for part in rest]
    for name, fed in (("build side first", before), ("probe side first", behind)):
        actions = list(_acted(case, [fed, *later]))
        at = actions.index(first.all(builds)) + 1
        opened = (*actions[:at], *loaded, *actions[at:])
        yield Feeding(name, opened, says_loaded=True)
        yield Feeding(f"{name}, restarts between rows", _restarting(opened), says_loaded=True)


def _build_tables(case: Case, nodes: list[Stateful]) -> set[str]:
    """Tables below the build side of a join that takes the newest row."""
    preloaded = set((case.get("config") or {}).get("preload") or ())
    for node in nodes:
        if isinstance(node.machine, TemporalJoin) and node.machine.time == "processing":
            preloaded |= {s.table for i in node.inputs if i.side == 1 for s in scans(i)}
    return preloaded


def _acted(case: Case, phases: Iterable[list[Rows]]) -> tuple[Action, ...]:
    """Between two phases the job stops; processing time passes where the case depends on it."""
    actions: list[Action] = []
    for number, batches in enumerate(phases):
        if number > 0:
            actions += ["phase", "pause"] if "proc" in case["kind"] else ["phase"]
        actions += batches
    return tuple(actions)


def _restarting(actions: Iterable[Action]) -> tuple[Action, ...]:
    return tuple(a for action in actions for a in (action, "restart"))


def _parts(case: Case) -> list[_Part]:
    first, second = {}, {}
    for name, table in case["tables"].items():
        cut = table.get("restart_after")
        rows = [Input(0, name, 0, row[0], tuple(row[1:])) for row in table["rows"]]
        first[name] = rows[:cut]
        second[name] = rows[cut:] if cut is not None else []
    return [_Part(first), _Part(second)] if any(second.values()) else [_Part(first)]
