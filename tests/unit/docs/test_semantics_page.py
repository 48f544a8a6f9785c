"""docs/semantics.md names each case once, docs/seeds.md files and tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
_CASE = re.compile(r"^\| ([A-Z]\d+) \|", re.MULTILINE)
_FILE = re.compile(r"`([\w.]+\.(?:scenario|txt|py))(?:::(\w+))?`")


def test_every_case_has_a_name_of_its_own() -> None:
    cases = _CASE.findall(_page("semantics.md"))
    assert len(cases) > 80
    assert sorted(set(cases)) == sorted(cases)


def test_every_claim_names_what_shows_it() -> None:
    named = _FILE.findall(_page("seeds.md"))
    assert len(named) > 25
    missing = [f"{name}::{test}" for name, test in named if not _exists(name, test)]
    assert missing == []


def _page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


def _exists(name: str, test: str) -> bool:
    found = list((ROOT / "tests").rglob(name))
    return any(not test or f"def {test}(" in file.read_text(encoding="utf-8") for file in found)
