"""docs/semantics.md names each case once, and files and tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[3]
_CHAPTER = "## The seeds, claim by claim"
_CASE = re.compile(r"^\| ([A-Z]\d+) \|", re.MULTILINE)
_FILE = re.compile(r"`([\w.]+\.(?:scenario|txt|py))(?:::(\w+))?`")


def test_every_case_has_a_name_of_its_own() -> None:
    cases = _CASE.findall(_page())
    assert len(cases) > 80
    assert sorted(set(cases)) == sorted(cases)


def test_every_claim_names_what_shows_it() -> None:
    page = _page()
    named = _FILE.findall(page[page.index(_CHAPTER) :])
    assert len(named) > 25
    missing = [f"{name}::{test}" for name, test in named if not _exists(name, test)]
    assert missing == []


def _page() -> str:
    return (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")


def _exists(name: str, test: str) -> bool:
    found = list((ROOT / "tests").rglob(name))
    return any(not test or f"def {test}(" in file.read_text(encoding="utf-8") for file in found)
