"""docs/proofs.md names a test behind each statement of delivery.md and semantics.md, and all exist.

A statement is a paragraph, a list item or a table row, known by its first words or first cells.
"""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.kernel.oracle.__main__ import MAKERS

ROOT = Path(__file__).parents[3]
DOCS = ROOT / "docs"
STATING = ("delivery.md", "semantics.md")
DEFINING = {("semantics.md", "Words")}
WHOLE = "all of it"  # a section whose tests are named once
_MARKUP = re.compile(r"\]\([^)]*\)|[`*\[\]]")
_PROOF = re.compile(r"\[([\w.]+)\]\((\.\./tests/[\w/]+(?:\.\w+))\)(?: \((\w+)\))?")
_PICTURE = re.compile(r"\s*</?(?:p|picture|source|img)\b")
_CASE = r"[A-Z]\d+"


@dataclass(frozen=True)
class Statement:
    section: str
    text: str


def _plain(text: str) -> str:
    return " ".join(_MARKUP.sub("", text).split())


def _cells(row: str) -> list[str]:
    return [_plain(cell) for cell in row.strip().strip("|").split("|")]


def statements(page: str) -> Iterator[Statement]:
    """The blocks of a page, without headings, heads of tables, captions and pictures."""
    section, lines = "", page.splitlines()
    block: list[str] = []
    for number, line in enumerate([*lines, ""]):
        starts = not line.strip() or line.startswith(("#", "- ", "|")) or _PICTURE.match(line)
        if starts and block:
            text = " ".join(block)
            if not re.fullmatch(r"\*\*[^*]+\*\*", text):
                yield Statement(section, _plain(text))
            block = []
        if line.startswith("#"):
            section = _plain(line.lstrip("# "))
        elif line.startswith("|"):
            is_head = number + 1 < len(lines) and lines[number + 1].startswith("|---")
            if not is_head and not line.startswith("|---"):
                yield Statement(section, ", ".join(_cells(line)))
        elif line.strip() and not _PICTURE.match(line):
            block.append(line.removeprefix("- ").strip())


def _proofs() -> dict[str, dict[str, list[tuple[str, str]]]]:
    """By page and section: the first words of a statement, and the cell with its tests."""
    found: dict[str, dict[str, list[tuple[str, str]]]] = {}
    page = section = ""
    for line in (DOCS / "proofs.md").read_text(encoding="utf-8").splitlines():
        if line.startswith("## "):
            page = line.removeprefix("## ")
        elif line.startswith("### "):
            section = line.removeprefix("### ")
        elif line.startswith("| ") and not line.startswith("| statement |"):
            words, tests = line.strip("| ").split(" | ")
            known = found.setdefault(page, {}).setdefault(section, [])
            known.append((words.removesuffix(" ..."), tests))
    return found


def _stated(name: str) -> list[Statement]:
    found = statements((DOCS / name).read_text(encoding="utf-8"))
    return [s for s in found if (name, s.section) not in DEFINING]


def _begins(text: str, words: str) -> bool:
    ends = "," if re.fullmatch(_CASE, words) else r"(?!\w)"
    return re.match(re.escape(words) + ends, text) is not None


def _names(words: str) -> list[str]:
    """`R1, R2` are two rows of a table of cases; any other words are one statement's."""
    return words.split(", ") if re.fullmatch(f"{_CASE}(, {_CASE})*", words) else [words]


@pytest.mark.parametrize("name", STATING)
def test_every_statement_has_its_tests(name: str) -> None:
    proofs = _proofs()[name]
    known = {s: [w for words, _ in rows for w in _names(words)] for s, rows in proofs.items()}
    lacking = [
        f"{s.section}: {s.text[:60]}"
        for s in _stated(name)
        if known.get(s.section) != [WHOLE]
        and not any(_begins(s.text, words) for words in known.get(s.section, []))
    ]
    assert lacking == []


@pytest.mark.parametrize("name", STATING)
def test_every_proof_is_of_one_statement(name: str) -> None:
    stated = _stated(name)
    wrong = []
    for section, rows in _proofs()[name].items():
        for beginning in (n for words, _ in rows for n in _names(words)):
            of = [s for s in stated if s.section == section and _begins(s.text, beginning)]
            of = of or [s for s in stated if s.section == section and beginning == WHOLE][:1]
            if len(of) != 1:
                wrong.append(f"{section}: {beginning} ({len(of)} statements)")
    assert wrong == []


def test_every_test_exists() -> None:
    cells = [t for sections in _proofs().values() for rows in sections.values() for _, t in rows]
    wrong = [cell for cell in cells if _PROOF.sub("", cell).strip(", ")]
    assert wrong == []
    named = {found for cell in cells for found in _PROOF.findall(cell)}
    assert len(named) > 150
    assert [found for found in named if not _exists(*found)] == []


def _exists(test: str, path: str, machine: str) -> bool:
    file = (DOCS / path).resolve()
    if not file.is_file() or (machine and machine not in MAKERS):
        return False
    return file.name == test or f"def {test}(" in file.read_text(encoding="utf-8")


def test_what_a_statement_is() -> None:
    page = (
        "# A\ntwo\nlines `x | y`\n\n| a | b |\n|---|---|\n| `c` | d |\n\n"
        "**Caption**\n\n- one\n  [link](x.md)\n- two\n"
    )
    assert [s.text for s in statements(page)] == ["two lines x | y", "c, d", "one link", "two"]
