"""What a case may turn out to be."""

import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

Case: TypeAlias = dict[str, Any]


class Skipped(Exception):
    """The case needs what is not supported yet; the message names it."""


class Failed(Exception):
    """The result differs from the expected one; the message says where and how."""


@dataclass(frozen=True, slots=True)
class Verdict:
    """The line that is printed for a case."""

    name: str
    outcome: str  # passed, FAILED, skipped
    reason: str = ""

    def __str__(self) -> str:
        return f"{self.outcome:8}{self.name}" + (f": {self.reason}" if self.reason else "")


def find_cases(paths: list[Path]) -> list[Path]:
    """JSON files below the paths; each folder's in order of their names."""
    found: list[Path] = []
    for path in paths:
        found += [path] if path.is_file() else sorted(path.rglob("*.json"))
    if not found:
        raise SystemExit(f"no case in {', '.join(map(str, paths))}")
    return found


def read_case(path: Path) -> Case:
    case: Case = json.loads(path.read_text(encoding="utf-8"))
    return case
