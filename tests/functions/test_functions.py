"""Every function gives what Flink gave, as flink.json has it; in the kernel, without Spark."""

import json
import math
from collections.abc import Sequence
from functools import cache
from typing import Any

import pytest

from spark_jobs.scenario.file import Input, Scenario, Step
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Encoder
from spark_jobs.scenario.runner import bind_scenario
from spark_jobs.sql.bind.binder import bind_query
from tests.functions.cases import CASES, Calls
from tests.functions.flink import RECORDED, columns, rows, written
from tests.harness.gateway import kernel

pytestmark = pytest.mark.service  # it takes long

_OPTIONS = (
    "'connector' = 'kafka', 'format' = 'json', 'properties.bootstrap.servers' = 'localhost:9092'"
)
RECORDS: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))


def test_all_calls_are_recorded() -> None:
    assert [r["call"] for r in RECORDS] == [calls.expression for calls in CASES]


@cache
def computed() -> dict[int, list[Any]]:
    """The results of each call that Flink takes, by its place."""
    found: dict[int, list[Any]] = {}
    known = [n for n, r in enumerate(RECORDS) if "results" in r]
    for begin in range(0, len(known), 40):
        places = known[begin : begin + 40]
        for place, results in zip(places, _run([CASES[p] for p in places]), strict=True):
            found[place] = results
    return found


def _run(batch: Sequence[Calls]) -> list[list[Any]]:
    listed = ", ".join(f"{name} {type_}" for name, type_ in columns(batch))
    source = f"CREATE TABLE t (n INT, {listed}) WITH ({_OPTIONS}, 'topic' = 't');"
    calls = ", ".join(f"{written(c, i)} AS r{i}" for i, c in enumerate(batch))
    select = " ".join(("SELECT n,", calls, "FROM t"))
    fields = bind_query(f"{source}\n{select};").query.fields
    sink = ", ".join(f"{f.name} {f.type.sql()}" for f in fields)
    job = f"{source}\nCREATE TABLE s ({sink}) WITH ({_OPTIONS}, 'topic' = 's');\n"
    bound = bind_scenario(Scenario("functions", f"{job}INSERT INTO s {select};", ()))
    backend = MemoryBackend(bound, kernel())
    encoder = Encoder(bound.tables["t"])
    given = [Input(0, "t", 0, "+I", tuple(row)) for row in rows(batch)]
    backend.feed("t", encoder.encode(given))
    outcome = backend.run_step(Step(0), lambda _: True)
    answers = [json.loads(r.value or b"{}") for r in outcome.records["s"]]
    found = {answer["n"]: answer for answer in answers}
    return [[found[n][f"r{i}"] for n in range(len(c.rows))] for i, c in enumerate(batch)]


@pytest.mark.parametrize(
    "place",
    [n for n, r in enumerate(RECORDS) if "results" in r],
    ids=lambda n: CASES[n].expression,
)
def test_call_gives_what_flink_gives(place: int) -> None:
    expected, found = RECORDS[place]["results"], computed()[place]
    wrong = [
        (row, e, f)
        for row, e, f in zip(CASES[place].rows, expected, found, strict=True)
        if not is_same(e, f)
    ]
    assert not wrong


def is_same(expected: Any, found: Any) -> bool:
    """Numbers of any type are compared as numbers: a DECIMAL is recorded as its text."""
    kinds = {type(expected), type(found)}
    if expected is None or found is None or bool in kinds or kinds == {str}:
        return bool(expected == found)
    a, b = float(expected), float(found)
    # Math and StrictMath may differ in the last digit
    return math.isclose(a, b, rel_tol=1e-15) or (math.isnan(a) and math.isnan(b))
