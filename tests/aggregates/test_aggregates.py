"""Every aggregate gives what Flink gave after each change, as flink.json has it; in the kernel."""

import json
import re
from collections import Counter
from datetime import date
from functools import cache
from typing import Any

import pytest

from spark_jobs.errors import SqlErrors
from spark_jobs.scenario.file import Input, Scenario, Step
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Encoder, decode
from spark_jobs.scenario.runner import bind_scenario
from spark_jobs.sql.bind.binder import bind_query
from tests.aggregates.cases import CHANGELOGS, COLUMNS, GROUPED, NEVER_CAME, REFUSED
from tests.aggregates.flink import RECORDED, RECORDED_GROUPS, after_each, batches, left_over
from tests.functions.jobs import is_same
from tests.harness.gateway import kernel

pytestmark = pytest.mark.service  # it takes long

_FORMATS = {"retract": "changelog-json", "append": "json"}
RECORDS: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
_GROUPS: list[dict[str, Any]] = json.loads(RECORDED_GROUPS.read_text(encoding="utf-8"))
COMPUTED = [n for n, r in enumerate(RECORDS) if r["call"] not in REFUSED]
# Flink's show a value that was only taken back
_SHOWS_STRAYS = re.compile(r"(MIN|MAX)\(")
_TIME = re.compile(r"(\d\d:\d\d:\d\d)\.?(\d*?)0*$")


def test_all_calls_are_recorded() -> None:
    written = [(over, call) for over in CHANGELOGS for calls in batches() for call in calls]
    assert [(r["over"], r["call"]) for r in RECORDS] == written


def _table(name: str, columns: str, format_: str) -> str:
    servers = "'properties.bootstrap.servers' = 'localhost:9092'"
    options = f"'connector' = 'kafka', 'topic' = '{name}', 'format' = '{format_}', {servers}"
    return f"CREATE TABLE {name} ({columns}) WITH ({options});"


def _source(changelog: str) -> str:
    columns = ", ".join(f"{name} {kind}" for name, kind in COLUMNS.items())
    return _table("t", columns, _FORMATS[changelog])


@cache
def computed(changelog: str) -> dict[str, tuple[str, list[Any]]]:
    """The type of each call, and its results after each change."""
    found: dict[str, tuple[str, list[Any]]] = {}
    calls = [r["call"] for r in RECORDS if r["over"] == changelog and r["call"] not in REFUSED]
    for begin in range(0, len(calls), 25):
        found |= _run(changelog, calls[begin : begin + 25])
    return found


def _run(changelog: str, calls: list[str]) -> dict[str, tuple[str, list[Any]]]:
    listed = ", ".join(f"{call} AS r{n}" for n, call in enumerate(calls))
    select = " ".join(("SELECT COUNT(*) AS n,", listed, "FROM t"))
    fields = bind_query(f"{_source(changelog)}\n{select};").query.fields
    states = list(after_each(_changes(changelog, select)))
    return {
        call: (fields[n].type.sql(), [None if s is None else s[n] for s in states])
        for n, call in enumerate(calls, 1)
    }


def _changes(changelog: str, select: str) -> list[list[Any]]:
    """What the query emits, its input fed change by change."""
    fields = bind_query(f"{_source(changelog)}\n{select};").query.fields
    columns = ", ".join(f"{f.name} {f.type.sql()}" for f in fields)
    sink = _table("s", columns, "changelog-json")
    job = f"{_source(changelog)}\n{sink}\nINSERT INTO s {select};"
    bound = bind_scenario(Scenario("aggregates", job, ()))
    backend, encoder = MemoryBackend(bound, kernel()), Encoder(bound.tables["t"])
    changes: list[list[Any]] = []
    for kind, *row in CHANGELOGS[changelog]:
        backend.feed("t", encoder.encode([Input(0, "t", 0, kind, tuple(row))]))
        outcome = backend.run_step(Step(0), lambda _: True)
        decoded = [c for r in outcome.records.get("s", ()) for c in decode(bound.tables["s"], r)]
        changes += [[c.kind, *c.row] for c in decoded]
    return changes


def _named(place: int) -> str:
    return f"{RECORDS[place]['over']}-{RECORDS[place]['call']}"


@pytest.mark.parametrize("place", COMPUTED, ids=_named)
def test_call_gives_what_flink_gives(place: int) -> None:
    recorded = RECORDS[place]
    type_, found = computed(recorded["over"])[recorded["call"]]
    assert type_.removesuffix(" NOT NULL") == recorded["type"].removesuffix(" NOT NULL")
    changes = zip(CHANGELOGS[recorded["over"]], recorded["results"], found, strict=True)
    known = list(changes)
    if recorded["over"] == "retract" and _SHOWS_STRAYS.match(recorded["call"]):
        known = known[:NEVER_CAME]
    wrong = [(change, e, f) for change, e, f in known if not is_same(_plain(e), _plain(f))]
    assert not wrong


@pytest.mark.parametrize(("over", "rows"), [tuple(e.values()) for e in _GROUPS])
def test_grouping_sets_give_what_flink_gives(over: str, rows: list[Any]) -> None:
    assert left_over(_changes(over, GROUPED)) == rows


@pytest.mark.parametrize(("name", "extreme"), [("MIN", min), ("MAX", max)])
def test_a_value_that_never_came_is_not_shown(name: str, extreme: Any) -> None:
    """Only a value that has come and is still there is shown."""
    there: Counter[int] = Counter()
    expected = []
    for kind, *row in CHANGELOGS["retract"]:
        value = row[list(COLUMNS).index("i")]
        if value is not None and (kind in ("+I", "+U") or there[value] > 0):
            there[value] += 1 if kind in ("+I", "+U") else -1
        expected.append(extreme(+there, default=None))
    assert computed("retract")[f"{name}(i)"][1] == expected


def _plain(value: Any) -> Any:
    """Dates and times as texts without zeros at their end, arrays as one text."""
    if isinstance(value, list | tuple):
        return str([_plain(v) for v in value])
    text = str(value) if isinstance(value, date) else value
    return _TIME.sub(r"\1.\2", text) if isinstance(text, str) else text


@pytest.mark.parametrize("place", [n for n in range(len(RECORDS)) if n not in COMPUTED])
def test_what_flink_refuses_is_refused(place: int) -> None:
    recorded = RECORDS[place]
    assert "error" in recorded
    with pytest.raises(SqlErrors):
        bind_query(" ".join((_source(recorded["over"]), "SELECT", recorded["call"], "FROM t;")))
