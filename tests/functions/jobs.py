"""Jobs that compute batches of calls, and what their records hold."""

import json
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, TypeAlias

from spark_jobs.scenario.file import Input
from spark_jobs.scenario.records import Encoder, Record
from spark_jobs.scenario.runner import BoundScenario
from spark_jobs.sql.bind.binder import bind_query
from tests.functions.cases import CASES, Calls
from tests.functions.flink import RECORDED, columns, rows, written

_OPTIONS = (
    "'connector' = 'kafka', 'format' = 'json', 'properties.bootstrap.servers' = 'localhost:9092'"
)
_SIZE = 40
Batch: TypeAlias = Sequence[Calls]
Place: TypeAlias = int
RECORDS: list[dict[str, Any]] = json.loads(RECORDED.read_text(encoding="utf-8"))
PLACES: list[Place] = [n for n, r in enumerate(RECORDS) if "results" in r]


def batches() -> Iterator[Sequence[Place]]:
    """The places of the calls that Flink takes."""
    for begin in range(0, len(PLACES), _SIZE):
        yield PLACES[begin : begin + _SIZE]


def calls_at(places: Iterable[Place]) -> Batch:
    return [CASES[place] for place in places]


def job_text(batches: Sequence[Batch]) -> str:
    """An INSERT from a table t0, t1, ... into a table s0, s1, ... for each batch."""
    return "\n".join(_insert(batch, str(number)) for number, batch in enumerate(batches))


def _insert(batch: Batch, number: str) -> str:
    listed = ", ".join(f"{name} {type_}" for name, type_ in columns(batch))
    options = f"{_OPTIONS}, 'scan.startup.mode' = 'earliest-offset', 'topic' = 't{number}'"
    source = f"CREATE TABLE t{number} (n INT, {listed}) WITH ({options});"
    calls = ", ".join(f"{written(c, i)} AS r{i}" for i, c in enumerate(batch))
    select = " ".join(("SELECT n,", calls, f"FROM t{number}"))
    fields = bind_query(f"{source}\n{select};").query.fields
    sink = ", ".join(f"{f.name} {f.type.sql()}" for f in fields)
    target = f"CREATE TABLE s{number} ({sink}) WITH ({_OPTIONS}, 'topic' = 's{number}');"
    return f"{source}\n{target}\nINSERT INTO s{number} {select};"


def records(bound: BoundScenario, batch: Batch, number: int = 0) -> Sequence[Record]:
    """The arguments of a batch, as the records of its table."""
    name = f"t{number}"
    given = [Input(0, name, 0, "+I", tuple(row)) for row in rows(batch)]
    return Encoder(bound.tables[name]).encode(given)


def answers(batch: Batch, found: Iterable[Record]) -> list[list[Any]]:
    """The results of each call in the records of the batch's sink."""
    read = [json.loads(record.value or b"{}") for record in found]
    by_row = {answer["n"]: answer for answer in read}
    return [[by_row[n][f"r{i}"] for n in range(len(c.rows))] for i, c in enumerate(batch)]


def wrong(place: Place, found: Sequence[Any]) -> list[tuple[Any, Any, Any]]:
    """The arguments, what Flink gave for them and what was found, where the two differ."""
    compared = zip(CASES[place].rows, RECORDS[place]["results"], found, strict=True)
    return [(row, e, f) for row, e, f in compared if not is_same(e, f)]


def is_same(expected: Any, found: Any) -> bool:
    """Numbers of any type are compared as numbers: a DECIMAL is recorded as its text."""
    kinds = {type(expected), type(found)}
    if expected is None or found is None or bool in kinds or kinds == {str}:
        return bool(expected == found)
    a, b = float(expected), float(found)
    # Math and StrictMath may differ in the last digit
    return math.isclose(a, b, rel_tol=1e-15) or (math.isnan(a) and math.isnan(b))
