"""docs/formats.md names tests that exist, every reason of a reject, Debezium's options."""

import re
from pathlib import Path

from spark_jobs.options.connectors import CONNECTORS
from tests.kernel.format.fuzz import reasons

ROOT = Path(__file__).parents[3]
PAGE = (ROOT / "docs" / "formats.md").read_text(encoding="utf-8")
_TEST = re.compile(r"`(test_\w+\.py)::(\w+)`")
_REASON = re.compile(r'final val \w+ = "([a-z-]+)"')


def test_every_truth_names_a_test_that_exists() -> None:
    truths = [line for line in PAGE.splitlines() if line.startswith("| ") and "`test_" in line]
    assert len(truths) > 40
    missing = [f"{file}::{test}" for file, test in _TEST.findall(PAGE) if not _exists(file, test)]
    assert missing == []


def test_rows_of_the_truths_end_with_a_test() -> None:
    for chapter in ("## Debezium truths", "## Types"):
        part = PAGE[PAGE.index(chapter) :].partition("\n## ")[0]
        rows = [line for line in part.splitlines() if line.startswith("| ")][2:]
        assert rows
        assert [r for r in rows if not _TEST.search(r)] == []


def test_every_reason_is_listed() -> None:
    code = (ROOT / "spark_jobs/kernel/spark/ingest/BadRecord.scala").read_text(encoding="utf-8")
    listed = code[code.index("object Reason") : code.index("object ErrorText")]
    # the reasons of rows that a job has made
    known = set(_REASON.findall(listed)) - {"late", "record-too-large"}
    assert len(known) > 20
    assert reasons() == known


def test_every_option_of_debezium_is_explained() -> None:
    names = [n for n in CONNECTORS["kafka"] if n.startswith("rejoin.debezium.")]
    assert names
    assert [n for n in names if f"`{n}`" not in PAGE] == []


def _exists(file: str, test: str) -> bool:
    found = list((ROOT / "tests").rglob(file))
    return any(f"def {test}(" in f.read_text(encoding="utf-8") for f in found)
