"""SQL cases: a job file made of the case's tables, fed with real bytes, through every layer."""

import re
from collections.abc import Callable, Iterable
from itertools import zip_longest
from typing import Any

from spark_jobs.errors import RejoinError
from tests.conformance.case import Case, Failed, Skipped
from tests.harness.fold import View, show, show_row, view_difference
from tests.harness.memory import MemoryBackend
from tests.harness.records import Change, Encoder, decode
from tests.harness.runner import Bound, bind_scenario
from tests.harness.scenario import Input, Scenario, Step
from tests.harness.values import canonical

SINK = "rejoin_result"
SUPPORTED = {"regular-inner", "regular-left", "temporal-inner", "temporal-left", "normalize"}
_CONNECTORS = {
    "append": {"connector": "kafka", "format": "json"},
    "retract": {"connector": "kafka", "format": "changelog-json"},
    "upsert": {"connector": "upsert-kafka", "key.format": "json", "value.format": "json"},
}
_UNSUPPORTED_NEEDS = {"aggregate-on-top"}
Feed = list[Input]


def run_sql_case(case: Case) -> None:
    _skip_unsupported(case)
    try:
        bound = bind_scenario(Scenario(case["name"], job_text(case), ()))
        for name, plan_feeds in _MODES.items():
            _run(case, bound, name, *plan_feeds(case))
    except RejoinError as error:
        raise Failed(error.render().replace("\n", " | ")) from error


def _skip_unsupported(case: Case) -> None:
    if case["kind"] not in SUPPORTED:
        raise Skipped(f"kind {case['kind']}: not supported yet")
    for need in case["requires"]:
        if need in _UNSUPPORTED_NEEDS:
            raise Skipped(f"{need}: not supported yet")
    config = case.get("config") or {}
    if config.get("state_ttl_ms"):
        raise Skipped("state TTL: not supported yet")
    if any("ROW_NUMBER()" in view for view in case["views"].values()):
        raise Skipped("versioned view (ROW_NUMBER): not supported yet")
    if len(re.findall(r"\bJOIN\b", case["query"])) > 1:
        raise Skipped("several joins in one query: not supported yet")


def job_text(case: Case) -> str:
    parts = [_create_table(name, table) for name, table in case["tables"].items()]
    parts += [f"CREATE VIEW `{name}` AS {query};" for name, query in case["views"].items()]
    sink = {"columns": case["output_columns"], "primary_key": case.get("sink_primary_key")}
    sink["changelog"] = "upsert" if sink["primary_key"] else "retract"
    parts += [_create_table(SINK, sink), f"INSERT INTO `{SINK}` {case['query']};"]
    return "\n".join(parts) + "\n"


def _create_table(name: str, table: dict[str, Any]) -> str:
    lines = [f"`{column}` {kind}" for column, kind in table["columns"]]
    if mark := table.get("watermark"):
        column = f"`{mark['column']}`"
        delay = mark["delay_ms"]
        back = f" - INTERVAL '{delay / 1000:g}' SECOND" if delay % 86_400_000 else ""
        back = back or (f" - INTERVAL '{delay // 86_400_000}' DAY" if delay else "")
        lines.append(f"WATERMARK FOR {column} AS {column}{back}")
    if key := _primary_key(table):
        lines.append(f"PRIMARY KEY ({', '.join(f'`{k}`' for k in key)}) NOT ENFORCED")
    options = {
        **_CONNECTORS[table["changelog"]],
        "topic": name,
        "properties.bootstrap.servers": "localhost:9092",
    }
    given = ", ".join(f"'{k}' = '{v}'" for k, v in options.items())
    return f"CREATE TABLE `{name}` (\n  " + ",\n  ".join(lines) + f"\n) WITH ({given});"


def _primary_key(table: dict[str, Any]) -> list[str]:
    """The declared key, or one known from a GROUP BY if none of its values is NULL."""
    declared = table.get("primary_key")
    if declared:
        return list(declared)
    names = [column for column, _ in table["columns"]]
    known = table.get("unique_key") or []
    positions = [names.index(k) + 1 for k in known]
    has_null = any(row[p] is None for row in table.get("rows", ()) for p in positions)
    return [] if has_null else list(known)


def _inputs(name: str, table: dict[str, Any], rows: Iterable[list[Any]]) -> Feed:
    return [Input(0, name, 0, row[0], tuple(row[1:])) for row in rows]


def _parts(case: Case) -> list[list[Feed]]:
    """Per phase (a restart lies between two phases) the rows of each table."""
    first, second = [], []
    for name, table in case["tables"].items():
        cut = table.get("restart_after")
        rows = table["rows"]
        first.append(_inputs(name, table, rows[:cut]))
        second.append(_inputs(name, table, rows[cut:] if cut is not None else []))
    return [first, second] if any(second) else [first]


def _one_batch(case: Case) -> tuple[list[list[Feed]], bool]:
    return [[[row for table in phase for row in table]] for phase in _parts(case)], False


def _table_by_table(case: Case) -> tuple[list[list[Feed]], bool]:
    return [phase[::-1] for phase in _parts(case)], False


def _row_by_row(case: Case) -> tuple[list[list[Feed]], bool]:
    phases = []
    for phase in _parts(case):
        turns = zip_longest(*phase)
        phases.append([[row] for turn in turns for row in turn if row is not None])
    return phases, False


def _restart_after_each_row(case: Case) -> tuple[list[list[Feed]], bool]:
    return _row_by_row(case)[0], True


# no order between tables is implied: the same result must come of every way to feed them
_MODES: dict[str, Callable[[Case], tuple[list[list[Feed]], bool]]] = {
    "one batch": _one_batch,
    "table by table": _table_by_table,
    "row by row": _row_by_row,
    "restarts between rows": _restart_after_each_row,
}


def _run(case: Case, bound: Bound, mode: str, phases: list[list[Feed]], restarts: bool) -> None:
    table = bound.tables[SINK]
    view = View.of(table)
    changes: list[Change] = []
    encoders = {name: Encoder(bound.tables[name]) for name in case["tables"]}
    backend = MemoryBackend(bound)
    for number, phase in enumerate(phases):
        if number > 0:
            _compare_before_restart(case, bound, mode, view)
            backend.restart()
        for feed in phase:
            for row in feed:
                backend.feed(row.table, encoders[row.table].encode([row]))
            changes += _step(bound, backend, Step(0), view)
            if restarts:
                backend.restart()
    changes += _step(bound, backend, Step(0, "end"), view)
    _compare(_rows(case, table_columns(case), case["expected_final"]), view, mode)
    if mode == "row by row" and case.get("expected_changelog"):
        _compare_changelog(case, changes)


def _step(bound: Bound, backend: MemoryBackend, step: Step, view: View) -> list[Change]:
    outcome = backend.run_step(step, lambda _: True)
    if outcome.rejects:
        raise Failed(f"rejects {outcome.rejects}")
    table = bound.tables[SINK]
    changes = [c for record in outcome.records.get(SINK, ()) for c in decode(table, record)]
    view.apply(changes)
    return changes


def table_columns(case: Case) -> list[Any]:
    """Types of the output columns, as the binder read them from the sink."""
    bound = bind_scenario(Scenario(case["name"], job_text(case), ()))
    return [column.type for column in bound.tables[SINK].columns]


def _rows(case: Case, types: list[Any], rows: list[list[Any]]) -> list[tuple[Any, ...]]:
    return [tuple(canonical(v, t) for v, t in zip(row, types, strict=True)) for row in rows]


def _compare(expected: list[tuple[Any, ...]], view: View, mode: str) -> None:
    wanted = View(None)
    wanted.rows.update(expected)
    problems = [*view.problems, *view_difference(wanted, view)]
    if problems:
        more = f" and {len(problems) - 6} more" if len(problems) > 6 else ""
        raise Failed(f"{mode}: " + "; ".join(problems[:6]) + more)


def _compare_before_restart(case: Case, bound: Bound, mode: str, view: View) -> None:
    """Only where the watermark has no say in what has left by then."""
    expected = case.get("expected_before_restart")
    if expected is not None and case["kind"].startswith("regular"):
        _compare(_rows(case, table_columns(case), expected), view, f"{mode}, before the restart")


def _compare_changelog(case: Case, changes: list[Change]) -> None:
    types = table_columns(case)
    rows = _rows(case, types, [row[1:] for row in case["expected_changelog"]])
    kinds = [row[0] for row in case["expected_changelog"]]
    expected = [Change(kind, row) for kind, row in zip(kinds, rows, strict=True)]
    if case["expected_changelog_order"] != "per-key":
        if sorted(map(show, expected)) != sorted(map(show, changes)):
            raise Failed(f"changelog {[show(c) for c in changes]}")
        return
    key = case.get("sink_primary_key") or next(iter(case["tables"].values()))["primary_key"]
    names = [name for name, _ in case["output_columns"]]
    positions = [names.index(k) for k in key]
    for value in {tuple(c.row[p] for p in positions) for c in [*expected, *changes]}:
        wanted = [show(c) for c in expected if tuple(c.row[p] for p in positions) == value]
        found = [show(c) for c in changes if tuple(c.row[p] for p in positions) == value]
        if wanted != found:
            raise Failed(f"changelog of {show_row(value)}: {found}, expected {wanted}")
