"""Formats read and write what Flink read and wrote, as flink.json has it; without Spark."""

import json
from collections import Counter
from functools import cache
from typing import Any

import pytest

from spark_jobs.scenario.file import Scenario, Step
from spark_jobs.scenario.memory import MemoryBackend
from spark_jobs.scenario.records import Record
from spark_jobs.scenario.runner import StepOutcome, bind_scenario
from tests.flink_formats.cases import CASES, Columns, Reads, Writes
from tests.flink_formats.flink import RECORDED
from tests.harness.gateway import kernel

pytestmark = pytest.mark.service  # it takes long

ANSWERS: list[Any] = json.loads(RECORDED.read_text(encoding="utf-8"))


def created(name: str, listed: str, format_: str, options: dict[str, str]) -> str:
    given = {
        "connector": "kafka",
        "topic": name,
        "properties.bootstrap.servers": "localhost:9092",
        "format": format_,
        **options,
    }
    texts = ("'" + value.replace("'", "''") + "'" for value in given.values())
    listing = ", ".join(f"'{key}' = {text}" for key, text in zip(given, texts, strict=True))
    return f"CREATE TABLE {name} ({listed}) WITH ({listing});"


def listed(columns: Columns) -> str:
    return ", ".join(f"`{name}` {type_}" for name, type_ in columns)


def given_in(case: Writes) -> str:
    """The format of the rows: a sink of insertions alone takes no table of changes."""
    return "changelog-json" if any(kind != "+I" for kind, _ in case.rows) else "json"


def job_text(number: int, case: Reads | Writes) -> str:
    """An INSERT from a table t0, t1, ... into a table s0, s1, ... for a case."""
    own = {f"{case.format}.{name}": value for name, value in case.options.items()}
    source, sink = f"t{number}", f"s{number}"
    letters = {"rejoin.on-error": "dead-letter", "rejoin.dead-letter.topic": f"d{number}"}
    if isinstance(case, Writes):
        tables = (
            created(source, listed(case.columns), given_in(case), letters),
            created(sink, listed(case.columns), case.format, own),
        )
    else:
        metadata = "".join(f", `{n}` {t} METADATA FROM 'value.{n}'" for n, t in case.metadata)
        tables = (
            created(source, listed(case.columns) + metadata, case.format, own | letters),
            created(sink, listed([*case.columns, *case.metadata]), "changelog-json", {}),
        )
    return "\n".join((*tables, " ".join(("INSERT INTO", sink, "SELECT * FROM", f"{source};"))))


def records(case: Reads | Writes) -> list[Record]:
    if isinstance(case, Reads):
        return [Record(None, value) for value in case.values]
    in_changes = given_in(case) == "changelog-json"
    values = [{"op": kind, "data": row} if in_changes else row for kind, row in case.rows]
    return [Record(None, json.dumps(value).encode()) for value in values]


@cache
def outcome() -> StepOutcome:
    text = "\n".join(job_text(number, case) for number, case in enumerate(CASES))
    backend = MemoryBackend(bind_scenario(Scenario("formats", text, ())), kernel())
    for number, case in enumerate(CASES):
        backend.feed(f"t{number}", records(case))
    return backend.run_step(Step(0), lambda _: True)


def test_all_cases_are_recorded() -> None:
    counts = [len(c.values if isinstance(c, Reads) else c.rows) for c in CASES]
    assert [len(answer) for answer in ANSWERS] == counts


def expected(case: Reads | Writes, answers: list[Any]) -> list[Any]:
    if isinstance(case, Writes):
        return [answer.encode("latin-1") for answer in answers]
    changes = [change for found in answers if isinstance(found, list) for change in found]
    return [{"op": kind, "data": json.loads(row)} for kind, row in changes]


def found(case: Reads | Writes, number: int) -> list[Any]:
    values = [record.value or b"" for record in outcome().records[f"s{number}"]]
    return values if isinstance(case, Writes) else [json.loads(value) for value in values]


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda n: f"{CASES[n].format}-{n}")
def test_records_are_those_of_flink(number: int) -> None:
    case, answers = CASES[number], ANSWERS[number]
    assert found(case, number) == expected(case, answers)
    rejected = Counter(topic for topic, _ in outcome().rejects)
    assert rejected[f"d{number}"] == sum(isinstance(answer, dict) for answer in answers)
