"""The table of the seeds in docs/semantics.md names files and tests that exist."""

import re
from pathlib import Path

ROOT = Path(__file__).parents[2]
_CHAPTER = "## The seeds, claim by claim"
_FILE = re.compile(r"`([\w.]+\.(?:scenario|txt|py))(?:::(\w+))?`")


def test_every_claim_names_what_shows_it() -> None:
    page = (ROOT / "docs" / "semantics.md").read_text(encoding="utf-8")
    named = _FILE.findall(page[page.index(_CHAPTER) :])
    assert len(named) > 25
    missing = [f"{name}::{test}" for name, test in named if not _exists(name, test)]
    assert missing == []


def _exists(name: str, test: str) -> bool:
    found = list((ROOT / "tests").rglob(name))
    return any(not test or f"def {test}(" in file.read_text(encoding="utf-8") for file in found)
