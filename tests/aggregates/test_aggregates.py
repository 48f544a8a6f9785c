"""Every aggregate gives what Flink gave after each change, as flink.json has it; in the kernel."""

import json
import re
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
from tests.aggregates.cases import CHANGELOGS, COLUMNS, REFUSED
from tests.aggregates.flink import RECORDED, after_each, batches
from tests.functions.jobs import is_same
from tests.harness.gateway import kernel

pytestmark = pytest.mark.service  # it takes long

_FORMATS = {"retract": "changelog-json", "append": "json"}
RECORDS: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
COMPUTED = [n for n, r in enumerate(RECORDS) if r["call"] not in REFUSED]
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
    states = list(after_each(changes))
    return {
        call: (fields[n].type.sql(), [None if s is None else s[n] for s in states])
        for n, call in enumerate(calls, 1)
    }


def _named(place: int) -> str:
    return f"{RECORDS[place]['over']}-{RECORDS[place]['call']}"


@pytest.mark.parametrize("place", COMPUTED, ids=_named)
def test_call_gives_what_flink_gives(place: int) -> None:
    recorded = RECORDS[place]
    type_, found = computed(recorded["over"])[recorded["call"]]
    assert type_.removesuffix(" NOT NULL") == recorded["type"].removesuffix(" NOT NULL")
    changes = zip(CHANGELOGS[recorded["over"]], recorded["results"], found, strict=True)
    wrong = [(change, e, f) for change, e, f in changes if not is_same(_plain(e), _plain(f))]
    assert not wrong


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
